package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/local"
)

func open(t *testing.T, dir string) *local.State {
	t.Helper()
	st, err := local.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func TestStateFolderIsForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	if _, err := local.OpenExisting(t.Context(), dir); !errors.Is(err, local.ErrNoState) {
		t.Errorf("opened what is not there: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("looking for a state made one")
	}
	st := open(t, dir)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err != nil || string(b) != "*\n" {
		t.Errorf("not kept out of version control: %q, %v", b, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := local.OpenExisting(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Owner == st.Owner {
		t.Error("two processes with one name")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestClaimIsExclusive(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	lock, err := one.Claim("my run_1.x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Claim("my run_1.x"); !errors.Is(err, local.ErrAtWork) || !two.AtWork("my run_1.x") {
		t.Errorf("claimed twice: %v", err)
	}
	other, err := two.Claim("another")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lock.Release(), other.Release()); err != nil {
		t.Fatal(err)
	}
	if lock, err = two.Claim("my run_1.x"); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestStoreFailedTellsTheMachineFromTheUser(t *testing.T) {
	st := open(t, t.TempDir())
	_, err := sheet.Load(t.Context(), st.Store, "none")
	for err, want := range map[error]bool{
		err: false, fmt.Errorf("x: %w", table.ErrConflict): true, errors.New("row 3: the key is empty"): false,
	} {
		if got := local.StoreFailed(err); got != want {
			t.Errorf("StoreFailed(%v) = %v", err, got)
		}
	}
}
