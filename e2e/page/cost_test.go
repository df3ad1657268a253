package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// perRefresh is what one refresh of a run's page asks of the store, for a run of one shard: the record, the shard's
// checkpoint, the last group of its journal, and what is asked of the run. docs/page.md says so.
const perRefresh = 4

// What a page costs that is left open does not depend on how many rows the run has: it is watched while 5,000 are in work.
func TestARefreshIsAFewReadsHoweverManyRows(t *testing.T) {
	w := newWorld(t)
	lines := []string{"x"}
	for i := range 5000 {
		lines = append(lines, fmt.Sprint("slow", i))
	}
	d := w.drive(w.started("monday", mapText, lines...))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees("table.rows", "slow0")

	// The rows have been read; from here on it is refreshes alone.
	refreshes := func() (n int64) {
		for _, r := range s.requests() {
			if r.URL.Path == "/runs/monday" {
				n++
			}
		}
		return n
	}
	before, usage := refreshes(), w.looks.Usage()
	b.untilGo("three refreshes", func() bool { return refreshes() >= before+3 })
	// A refresh under way is waited for: the next one is at least two seconds away.
	time.Sleep(500 * time.Millisecond)
	used, n := w.looks.Usage().Sub(usage), refreshes()-before
	if len(d.ended) > 0 {
		t.Fatal("the run was over before it was watched")
	}
	if used.Operations != n*perRefresh || used.ItemsWritten != 0 {
		t.Errorf("%d refreshes took %+v; want %d operations each", n, used, perRefresh)
	}
	t.Logf("5,000 rows in work: a refresh takes %d operations and %.1f read units", used.Operations/n, float64(used.ReadUnits)/float64(n))

	b.quiet(s.URL)

	// A run that is over takes two reads, its record and what is asked of it, once nobody looks any more at how it came to its end.
	if err := w.end(d); err != nil {
		t.Fatal(err)
	}
	b.open("about:blank")
	usage = w.looks.Usage()
	res := httptest.NewRecorder()
	w.api.ServeHTTP(res, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/runs/monday", http.NoBody))
	if used := w.looks.Usage().Sub(usage); res.Code != http.StatusOK || used.Operations != 2 {
		t.Errorf("%d: %+v", res.Code, used)
	}
}
