package laptop

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// A second process that looks on sees the run move forward, and never back.
func TestASecondProcessSeesProgress(t *testing.T) {
	t.Parallel()
	d, sim := limited(t, 40, time.Second)
	p := d.launch("r1", 0, 240) // 6 s
	eventually(t, soon, "a row is done", func() bool { return sim.report().Providers["alpha"].Completed > 0 })

	var last look
	seen := map[int]bool{}
	for !p.ended(100 * time.Millisecond) {
		now := d.look(t)
		now.notBefore(t, last)
		last = now
		seen[len(now.ended)] = true
	}
	p.want(0, soon)
	now := d.look(t)
	now.notBefore(t, last)
	if now.status != "completed" || len(now.ended) != 240 {
		t.Errorf("at the end a second process sees %d rows, status %s", len(now.ended), now.status)
	}
	if len(seen) < 4 {
		t.Errorf("it saw only %d states in 6 s", len(seen))
	}
	sim.neverTooFast()
}

// look is what a second process sees of a run.
type look struct {
	status     string
	dispatched int
	counted    int          // rows that ended, says `runs`
	ended      map[int]bool // rows that ended, says `rows`
}

func (d *desk) look(t *testing.T) look {
	t.Helper()
	s := d.sluice("runs", "r1", "--json").want(0, soon).summary()
	l := look{status: s.Status, dispatched: s.Calls.Dispatched, counted: s.Completed + s.Failed, ended: map[int]bool{}}
	if s.Completed+s.Failed+s.Waiting != 240 {
		t.Errorf("the rows do not add up: %+v", s)
	}
	rows := json.NewDecoder(bytes.NewReader(d.sluice("rows", "r1", "--json").want(0, soon).out.bytes()))
	for n := 0; rows.More(); n++ {
		var row struct{ Status string }
		if err := rows.Decode(&row); err != nil {
			t.Fatal(err)
		}
		if row.Status == "completed" || row.Status == "failed" {
			l.ended[n] = true
		}
	}
	return l
}

func (l look) notBefore(t *testing.T, before look) {
	t.Helper()
	if l.counted < before.counted || l.dispatched < before.dispatched {
		t.Errorf("`runs` went back: from %d rows and %d calls to %d and %d", before.counted, before.dispatched, l.counted, l.dispatched)
	}
	for n := range before.ended {
		if !l.ended[n] {
			t.Errorf("`rows` lost row %d, which had ended", n)
		}
	}
}
