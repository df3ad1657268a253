package pacer_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/pacer"
	"sluice/internal/core/table"
)

func TestScopesAreListedAsTheyStand(t *testing.T) {
	onStores(t, func(t *testing.T, tbl table.Table) {
		began := time.Now().UTC()
		a, b := pacer.New(tbl, "a"), pacer.New(tbl, "b")
		rules := []pacer.Rule{{Rate: 5, Per: time.Minute}, {Rate: 8, Per: time.Hour}}
		for _, ask := range []struct {
			p     *pacer.Pacer
			scope string
			n     int
		}{{a, "acme-1", 3}, {b, "acme-1", 1}, {a, "mail-2", 2}} {
			if g, err := ask.p.Acquire(t.Context(), ask.scope, pacer.Want{N: ask.n, Rules: rules, Concurrency: 10, Longest: 20 * time.Second}); err != nil || len(g.Permits) != ask.n {
				t.Fatal(g, err)
			}
		}
		time.Sleep(2 * time.Minute) // the shorter window has passed, and so have the leases of 80 s
		if _, err := b.Acquire(t.Context(), "mail-2", pacer.Want{N: 1, Rules: rules, Concurrency: 10, Longest: 20 * time.Second}); err != nil {
			t.Fatal(err)
		}
		until, err := b.Report(t.Context(), "mail-2", pacer.Observation{Limited: true, Deadline: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]pacer.Standing{}
		for s, err := range pacer.List(t.Context(), tbl) {
			if err != nil {
				t.Fatal(err)
			}
			got[s.Scope] = s
		}
		counts := func(s pacer.Standing) (n []int64) {
			for _, r := range s.Rules {
				n = append(n, r.Recent)
			}
			return n
		}
		acme, mail := got["acme-1"], got["mail-2"]
		if len(got) != 2 || !acme.Held.IsZero() || !mail.Held.Equal(until) || len(acme.Leases) != 0 {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff([][]int64{{0, 4}, {1, 3}}, [][]int64{counts(acme), counts(mail)}); diff != "" {
			t.Errorf("grants within the windows: %s", diff)
		}
		if len(mail.Leases) != 1 || mail.Leases[0].Owner != "b" || mail.Leases[0].Calls != 1 {
			t.Errorf("in flight %+v", mail.Leases)
		}
		if acme.Granted.Before(began) || acme.Granted.Sub(began) > time.Second {
			t.Errorf("granted at %v, asked at %v", acme.Granted, began)
		}
		time.Sleep(10 * 24 * time.Hour)
		for s := range pacer.List(t.Context(), tbl) {
			t.Errorf("an idle scope is listed: %+v", s)
		}
	})
}
