package link_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/link"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

var (
	secret = link.Secret("0123456789abcdef0123456789abcdef")
	place  = link.Place{Run: "r", Row: 7, Column: 2, Step: 1, Key: "approve-ann@acme.example"}
	noon   = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
)

func TestLinksLeadToTheirPlaceUntilTheirTime(t *testing.T) {
	for _, c := range []struct {
		until, now time.Time
		want       error
	}{
		{noon, noon.Add(-time.Second), nil}, {noon, noon, link.ErrExpired}, {noon, noon.Add(time.Hour), link.ErrExpired},
		{noon.Add(time.Millisecond), noon, nil}, {noon.Add(time.Millisecond), noon.Add(time.Second), link.ErrExpired},
		{time.Time{}, noon.Add(1000 * time.Hour), nil},
	} {
		got, err := secret.Open(secret.Sign(place, c.until), c.now)
		if !errors.Is(err, c.want) || got != place {
			t.Errorf("until %v, at %v: %+v, %v", c.until, c.now, got, err)
		}
	}
}

// Whatever is changed of a link, or put together from two, it is worth nothing. So is a link of another deployment.
func TestLinksCannotBeMadeUp(t *testing.T) {
	good := secret.Sign(place, noon)
	other := place
	other.Row = 8
	body, mac, _ := strings.Cut(good, ".")
	otherBody, otherMac, _ := strings.Cut(secret.Sign(other, noon), ".")
	forged := []string{
		"", ".", body, body + ".", "." + mac, body + "." + otherMac, otherBody + "." + mac, good + ".", good + "=", good + "A", " " + good,
		good + "\n", link.Secret("0123456789abcdef0123456789abcdeF").Sign(place, noon), strings.Repeat("A", 7000) + "." + mac, body + "." + mac[:10],
	}
	for i := range good {
		for _, c := range []byte{'A', '_', '.'} {
			if good[i] != c {
				forged = append(forged, good[:i]+string(c)+good[i+1:])
			}
		}
	}
	for _, f := range forged {
		if _, err := secret.Open(f, noon.Add(-time.Hour)); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("%q: %v", f, err)
		}
	}
	if strings.Trim(good, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		t.Errorf("%q does not fit a path", good)
	}
}

// The first who needs the secret makes it; all others take the same, also when two need it at the same moment, and when
// the write goes wrong.
func TestSecretIsMadeOnce(t *testing.T) {
	for name, tbl := range stores(t) {
		t.Run(name, func(t *testing.T) {
			f := tabletest.NewFaulty(tbl)
			st := &store.Store{Table: f}
			for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
				f.Inject(tabletest.Fault{Kind: kind, Times: 1})
				if _, err := link.Load(t.Context(), st); err == nil && kind == tabletest.NotDone {
					t.Error("a lost write was not told")
				}
			}
			f.Heal()
			got := make(chan string, 10)
			for range cap(got) {
				go func() {
					s, err := link.Load(t.Context(), st)
					if err != nil {
						t.Error(err)
					}
					got <- string(s)
				}()
			}
			first := <-got
			for range cap(got) - 1 {
				if s := <-got; s != first || len(s) != 32 {
					t.Errorf("%x and %x", first, s)
				}
			}
		})
	}
}

func stores(t *testing.T) map[string]table.Table {
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return map[string]table.Table{"memory": memory.New(), "sqlite": file}
}

func TestSecretsOfTwoStoresDiffer(t *testing.T) {
	a, err1 := link.Load(t.Context(), &store.Store{Table: memory.New()})
	b, err2 := link.Load(t.Context(), &store.Store{Table: memory.New()})
	if err1 != nil || err2 != nil || string(a) == string(b) {
		t.Error(err1, err2)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(secret.Sign(place, noon))
	f.Add("e30.AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := secret.Open(text, noon)
		if err == nil && secret.Sign(p, time.Time{}) == "" {
			t.Fatal(p)
		}
		if err != nil && !errors.Is(err, link.ErrInvalid) && !errors.Is(err, link.ErrExpired) {
			t.Fatal(err)
		}
	})
}
