package sqlite

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/core/table"
)

// BenchmarkPut64 is 64 callers that each put one small item after another, as rows do with their receipts.
func BenchmarkPut64(b *testing.B) {
	tab, err := Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer tab.Close()
	data := make([]byte, 300)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				item := table.Item{Key: table.Key{Part: "journal", Sort: fmt.Sprintf("%012d", n)}, Version: 1, Data: data}
				if err := tab.Put(b.Context(), item, table.Absent()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
	b.ReportMetric(float64(b.N)/float64(tab.queue.groups.Load()), "puts/commit")
}

// BenchmarkPutMany writes 100 items of 300 bytes with each call.
func BenchmarkPutMany(b *testing.B) {
	tab, err := Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer tab.Close()
	items := make([]table.Item, 100)
	data := make([]byte, 300)
	for i := range b.N {
		for j := range items {
			items[j] = table.Item{Key: table.Key{Part: "journal", Sort: fmt.Sprintf("%012d", i*len(items)+j)}, Version: 1, Data: data}
		}
		if err := tab.PutMany(b.Context(), items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(items))/b.Elapsed().Seconds(), "items/s")
}
