package memory_test

import (
	"fmt"
	"testing"

	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
)

func open(*testing.T) table.Table { return memory.New() }

func TestTableContract(t *testing.T)         { tabletest.Run(t, open) }
func TestTableContractInBubble(t *testing.T) { tabletest.RunInBubble(t, open) }

// BenchmarkPut puts small items with keys in order, as a journal does.
func BenchmarkPut(b *testing.B) {
	tab := memory.New()
	data := make([]byte, 300)
	sorts := make([]string, b.N)
	for i := range sorts {
		sorts[i] = fmt.Sprintf("%012d", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, sort := range sorts {
		item := table.Item{Key: table.Key{Part: "journal", Sort: sort}, Version: 1, Data: data}
		if err := tab.Put(b.Context(), item, table.Absent()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
}
