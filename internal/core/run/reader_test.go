package run_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

// A run of 2,500 rows on three pages, some of them held while the others are done, is read in parts of any size and
// from any place: together they are what is read at once.
func TestRowsAreReadInPartsFromAnyPlace(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "b.get" {
				return heldFor(time.Hour)
			}
			return echo(a, nth)
		}
		const some = `
version: 1
columns:
  - {name: up, call: a.get, with: {x: "${row.x}"}}
  - {name: late, when: "${row.x in ['r7', 'r1500', 'r2499']}", call: b.get, with: {x: "${row.x}"}}
`
		job := w.start("r", some, rows(2500)...)
		w.parked(job)
		job = w.reload(job)
		var all []string
		for v, err := range job.Rows(t.Context(), w.ports()) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(v.Place, v.Row, v.Status, v.Input, v.Cells))
		}
		if len(all) != 2500 {
			t.Fatalf("%d rows", len(all))
		}
		for _, q := range []struct {
			from   int64
			most   int
			status string
			want   []string
		}{
			{0, 0, "", all},
			{0, 7, "", all},
			{1499, 300, "", all[1499:]},
			{2499, 1, "", all[2499:]},
			{2500, 1, "", nil},
			{0, 1, run.StatusHeld, []string{all[7], all[1500], all[2499]}},
			{8, 0, run.StatusHeld, []string{all[1500], all[2499]}},
			{0, 0, run.StatusFailed, nil},
		} {
			var got []string
			reader, parts := job.Reader(w.ports()), 0
			for at := q.from; at < 2500; parts++ {
				rows, next, err := reader.Page(t.Context(), run.RowQuery{From: at, Status: q.status, Most: q.most})
				if err != nil || next <= at || q.most > 0 && len(rows) > q.most {
					t.Fatalf("%+v: from %d to %d, %d rows, %v", q, at, next, len(rows), err)
				}
				for _, v := range rows {
					got = append(got, fmt.Sprint(v.Place, v.Row, v.Status, v.Input, v.Cells))
				}
				at = next
			}
			if diff := cmp.Diff(q.want, got); diff != "" {
				t.Errorf("from %d, at most %d, %q: %s", q.from, q.most, q.status, diff)
			}
		}
	})
}
