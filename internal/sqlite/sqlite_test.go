package sqlite

import (
	"path/filepath"
	"testing"

	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

func open(t *testing.T) table.Table { return openAt(t, filepath.Join(t.TempDir(), "state.db")) }

func openAt(t *testing.T, path string) *Table {
	t.Helper()
	tab, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	})
	return tab
}

func TestTableContract(t *testing.T)         { tabletest.Run(t, open) }
func TestTableContractInBubble(t *testing.T) { tabletest.RunInBubble(t, open) }
