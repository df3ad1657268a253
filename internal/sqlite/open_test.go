package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/core/table"
)

func TestOpenRefusesForeignFiles(t *testing.T) {
	exec := func(path string, statements ...string) {
		t.Helper()
		c, err := openConn(path, "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		for _, statement := range statements {
			if _, err := c.exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	text := strings.Repeat("id,name\n1,Zo\u00eb\n", 500)
	if err := os.WriteFile(at("people.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	exec(at("other.db"), "CREATE TABLE t (x)")
	newer := openAt(t, at("newer.db"))
	if err := newer.Close(); err != nil {
		t.Fatal(err)
	}
	exec(at("newer.db"), fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1))
	if err := os.WriteFile(at("short.db"), []byte("SQLite format 3\x00"+strings.Repeat("\x7f", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"people.csv":          "people.csv is damaged or not a SQLite database; restore a copy or choose another path",
		"short.db":            "short.db is damaged or not a SQLite database",
		"other.db":            "other.db is a database of another program; choose another path",
		"newer.db":            "newer.db was written by a newer version of this program (format 2, this one knows up to 1); update the program",
		".":                   "cannot be opened",
		"people.csv/state.db": "people.csv",
	} {
		before, _ := os.ReadFile(at(name))
		_, err := Open(t.Context(), at(name))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one sentence with %q", name, err, want)
		}
		if after, _ := os.ReadFile(at(name)); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestDamageFoundLaterIsExplained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	tab := openAt(t, path)
	for i := range 100 {
		item := item1(fmt.Sprint(i))
		item.Data = make([]byte, 900)
		if err := tab.Put(t.Context(), item, table.Always()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * 4096; i < len(content); i++ { // behind the header and the schema
		content[i] = 0x5a
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var last error
	damaged := openAt(t, path)
	for _, last = range damaged.Query(t.Context(), table.Query{Part: "p"}) {
		if last != nil {
			break
		}
	}
	if last == nil || !strings.Contains(last.Error(), "is damaged") {
		t.Errorf("got %v", last)
	}
}

func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a?mode=memory", "b#c", "d%20e", "f g'h", "\u00e4/\u65e5.db"} {
		path := filepath.Join(t.TempDir(), "made", name)
		tab := openAt(t, path)
		if err := tab.Put(t.Context(), item1("a"), table.Absent()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := tab.Get(t.Context(), item1("a").Key); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestEveryCommitIsSynced(t *testing.T) {
	tab := openAt(t, filepath.Join(t.TempDir(), "state.db"))
	err := tab.queue.submit(t.Context(), 0, func(c *conn, _ int64) error {
		mode, err := c.text("PRAGMA journal_mode")
		if err != nil {
			return err
		}
		level, err := c.number("PRAGMA synchronous")
		if mode != "wal" || level != 2 { // 2 is FULL
			t.Errorf("journal mode %q, synchronous %d", mode, level)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadersCannotWrite(t *testing.T) {
	tab := openAt(t, filepath.Join(t.TempDir(), "state.db"))
	err := tab.read(t.Context(), func(c *conn) error {
		_, err := c.exec("DELETE FROM items")
		return err
	})
	if err == nil {
		t.Error("a reader's connection wrote")
	}
}
