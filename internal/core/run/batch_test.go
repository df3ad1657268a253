package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

// Rows that come together share requests, however few places there are; each gets its own answer, and each request is
// counted and paid for once.
func TestBatchManyCallsAreOneRequest(t *testing.T) {
	for _, places := range []int{1, 2, 64} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newBulkWorld(t, tbl, "many", 40)
			w.settings.Concurrency = places
			lines := rows(100)
			job := w.plan(lines...)
			if got := w.work(job); got != echoed(lines) {
				t.Errorf("got %s", got)
			}
			if got := w.bulk.sizes(); !slices.Equal(got, []int{40, 40, 20}) {
				t.Errorf("with %d places the requests carried %v calls, want 40, 40, 20", places, got)
			}
			if s := w.checkpoint(job).Stats; s.Logical != 100 || s.Dispatched != 3 || s.CostMicros != 30_000 {
				t.Errorf("%+v", s)
			}
			if took := time.Since(w.bulk.started); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Calls that come in drops wait a moment for company, and no longer.
func TestBatchLingersForCompany(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "many", 40)
		w.text = strings.Replace(w.text, "columns:\n", "columns:\n  - {name: zero, call: a.get, with: {x: \"${row.x}\"}}\n", 1)
		w.bulk.latency = 0
		w.bulk.answer = func(r bulkRequest, nth int) *call.Answer {
			if r.Tool == "a.get" {
				var n time.Duration
				fmt.Sscanf(r.xs[0], "r%d", &n)
				time.Sleep(4 * time.Millisecond * n)
			}
			return nil
		}
		w.work(w.plan(rows(20)...))
		var sizes []int
		for _, r := range w.bulk.log() {
			if r.Tool == "a.many" {
				sizes = append(sizes, len(r.xs))
			}
		}
		if !slices.Equal(sizes, []int{13, 7}) { // one every 4 ms, and 50 ms after the first
			t.Errorf("the requests carried %v calls", sizes)
		}
	})
}

// Identical calls are shared before they travel: each question is in one request, once.
func TestBatchMembersAreSharedBefore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "many", 40)
		lines := []string{"x"}
		for i := range 100 {
			lines = append(lines, fmt.Sprint("q", i%7))
		}
		if got := w.work(w.plan(lines...)); got != echoed(lines) {
			t.Errorf("got %s", got)
		}
		if got := w.bulk.sizes(); !slices.Equal(got, []int{7}) {
			t.Errorf("the requests carried %v calls, want 7 in one", got)
		}
	})
}

// Some are answered, some are not there, some fail: each row has what is its own.
func TestBatchPartialFailure(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "many", 40)
		got := w.work(w.plan("x", "a", "bad1", "none", "b", "bad2"))
		want := "x,one,after,_status,_error\na,a,a!,completed,\nbad1,,,failed,one: FAILED_ANSWER: no bad1\nnone,,-,completed,\nb,b,b!,completed,\nbad2,,,failed,one: FAILED_ANSWER: no bad2\n"
		if got != want || len(w.bulk.log()) != 1 {
			t.Errorf("%d requests, got\n%s", len(w.bulk.log()), got)
		}
	})
}

// The first failed row ends the run: the others of its request have their answers on record all the same.
func TestH11BatchSettlesWholeBeforeTheFirstErrorEndsTheRun(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "posts", 40)
		w.text = strings.Replace(w.text, "columns:", "onRowError: fail\ncolumns:", 1)
		job := w.plan("x", "bad", "a", "b", "c")
		if _, err := w.tryWork(job); err == nil || !strings.Contains(err.Error(), "no bad") {
			t.Fatal(err)
		}
		job = w.reload(job)
		for v, err := range job.Rows(t.Context(), w.ports()) {
			if err != nil {
				t.Fatal(err)
			}
			if v.Input["x"] != "bad" && v.Status != run.StatusCompleted {
				t.Errorf("row %v is %s", v.Input["x"], v.Status)
			}
		}
		if n := len(w.bulk.log()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// A request that meets a hold holds every call in it, until the same moment; then they travel together again.
func TestH11BatchThatMeetsAHoldHoldsAllOfIt(t *testing.T) {
	for _, tool := range []string{"many", "posts", "fenced"} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newBulkWorld(t, tbl, tool, 40)
			w.bulk.answer = func(r bulkRequest, nth int) *call.Answer {
				if nth == 0 {
					a := heldFor(time.Hour)
					return &a
				}
				return nil
			}
			lines := rows(10)
			job := w.plan(lines...)
			ports := w.ports()
			ports.Gateway = w.bulk
			res, err := job.Slice(t.Context(), ports, 0, w.settings)
			cp := w.checkpoint(job)
			if err != nil || res.Outcome != run.Parked || len(cp.Pending) != 10 || cp.Stats.Refused429 != 1 {
				t.Fatalf("%+v, %v, %d rows held, %d refusals", res, err, len(cp.Pending), cp.Stats.Refused429)
			}
			for _, p := range cp.Pending {
				if !p.Until.Equal(cp.Pending[0].Until) {
					t.Errorf("row %d is held until %v, another until %v", p.Row, p.Until, cp.Pending[0].Until)
				}
			}
			time.Sleep(time.Until(res.WakeAt))
			if got := w.work(w.reload(job)); got != echoed(lines) {
				t.Errorf("got %s", got)
			}
			if got := w.bulk.sizes(); !slices.Equal(got, []int{10, 10}) {
				t.Errorf("the requests carried %v calls", got)
			}
			log := w.bulk.log()
			if same := log[0].Fence == log[1].Fence; !same {
				t.Error("the same calls together have another fence")
			}
			if same := log[0].RequestID == log[1].RequestID; same != (tool == "fenced") {
				t.Errorf("%s: after a refusal the request id is the same: %v", tool, same)
			}
		})
	}
}

// A batch that is too large for the provider is halved until it fits; what was found out is kept in mind, and tried again
// with care. A call that is too large by itself fails alone.
func TestBatchTooLargeIsHalved(t *testing.T) {
	for _, tool := range []string{"many", "posts", "fenced"} {
		onEveryStore(t, func(t *testing.T, tbl table.Table) {
			w := newBulkWorld(t, tbl, tool, 64)
			w.bulk.answer = func(r bulkRequest, _ int) *call.Answer {
				if len(r.xs) > 16 || slices.Contains(r.xs, "huge") {
					return tooLarge()
				}
				return nil
			}
			lines := append(rows(200), "huge")
			got := w.work(w.plan(lines...))
			if n := strings.Count(got, ",completed,"); n != 200 || !strings.Contains(got, "huge,,,failed,one: HTTP_413: too large") {
				t.Errorf("%d rows completed: %s", n, got)
			}
			for x, n := range w.bulk.executed {
				if n != 1 {
					t.Errorf("%s: %s was executed %d times", tool, x, n)
				}
			}
			if n := len(w.bulk.log()); n > 50 {
				t.Errorf("%s: %d requests for 201 calls: %v", tool, n, w.bulk.sizes())
			}
		})
	}
}

// An answer that gives another number of parts than there were calls is an error of all of them.
func TestBatchAnswersAreNeverMisassigned(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "many", 40)
		w.bulk.answer = func(r bulkRequest, _ int) *call.Answer {
			return &call.Answer{Outcome: call.Result, Dispatched: true, Status: 200, Members: []call.Answer{part("a"), part("c")}}
		}
		if got := w.work(w.plan("x", "a", "b", "c")); strings.Count(got, "BAD_RESULT") != 3 || strings.Contains(got, "completed") {
			t.Errorf("got %s", got)
		}
	})
}

// Nobody knows whether the request was executed: no call of it is made again, and each row says which request it is.
func TestT2BatchWithAnUnknownOutcome(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "posts", 40)
		w.bulk.answer = func(r bulkRequest, nth int) *call.Answer { return w.bulk.lost(r) }
		job := w.plan("x", "a", "b", "c")
		if got := w.work(job); strings.Count(got, "OUTCOME_UNKNOWN") != 3 || len(w.bulk.log()) != 1 {
			t.Errorf("%d requests, got %s", len(w.bulk.log()), got)
		}
		for v := range w.reload(job).Rows(t.Context(), w.ports()) {
			if d := v.Error.Dispatch; d == nil || d.Request != w.bulk.log()[0].RequestID || d.Tool != "a.posts" || d.At.IsZero() {
				t.Errorf("dispatch %+v", d)
			}
		}
	})
}

// The retry cursor is each call's own: a call that joins others that have failed before has all of its attempts.
func TestR7BatchMembersCountTheirOwnAttempts(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "many", 40)
		tries := map[string]int{}
		w.bulk.answer = func(r bulkRequest, nth int) *call.Answer {
			w.bulk.mu.Lock()
			defer w.bulk.mu.Unlock()
			for _, x := range r.xs {
				tries[x]++
			}
			return &call.Answer{Outcome: call.Retry, Dispatched: true, Status: 503, Error: &call.Error{Code: "HTTP_503", Message: "busy"}}
		}
		got := w.work(w.plan(rows(10)...))
		if strings.Count(got, "HTTP_503") != 10 {
			t.Errorf("got %s", got)
		}
		for x, n := range tries {
			if n != 4 {
				t.Errorf("%s was tried %d times", x, n)
			}
		}
		if got := w.bulk.sizes(); !slices.Equal(got, []int{10, 10, 10, 10}) { // they come back together
			t.Errorf("the requests carried %v calls", got)
		}
	})
}

// A fenced batch whose answer was lost is sent again as it was, also over a park, and while fresh calls come by.
func TestT2FencedBatchIsRepeatedAsItWas(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "fenced", 5)
		w.bulk.answer = func(r bulkRequest, nth int) *call.Answer {
			switch {
			case nth < 2 && slices.Contains(r.xs, "r3"):
				return w.bulk.lost(r)
			case nth == 2 && slices.Contains(r.xs, "r3"):
				a := heldFor(time.Hour)
				return &a
			}
			return nil
		}
		lines := rows(23)
		if got := w.work(w.plan(lines...)); got != echoed(lines) {
			t.Errorf("got %s", got)
		}
		if len(w.parks) == 0 {
			t.Error("no park")
		}
		var again []bulkRequest
		for _, r := range w.bulk.log() {
			if slices.Contains(r.xs, "r3") {
				again = append(again, r)
			}
		}
		for _, r := range again {
			if !slices.Equal(r.xs, again[0].xs) || r.Fence != again[0].Fence || len(again) != 4 {
				t.Errorf("%d times, %v under %s and %v under %s", len(again), again[0].xs, again[0].Fence, r.xs, r.Fence)
			}
		}
		for x, n := range w.bulk.executed {
			if n != 1 {
				t.Errorf("%s was executed %d times", x, n)
			}
		}
	})
}

// When the attempts are used up, nobody knows what became of a fenced batch: by itself, a call would be another request.
func TestT2FencedBatchThatIsGivenUpIsUnknown(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newBulkWorld(t, tbl, "fenced", 5)
		w.bulk.answer = func(r bulkRequest, nth int) *call.Answer { return w.bulk.lost(r) }
		job := w.plan(rows(5)...)
		if got := w.work(job); strings.Count(got, "OUTCOME_UNKNOWN: no answer") != 5 || len(w.bulk.log()) != 4 {
			t.Errorf("%d requests, got %s", len(w.bulk.log()), got)
		}
		for v := range w.reload(job).Rows(t.Context(), w.ports()) {
			if d := v.Error.Dispatch; d == nil || d.Request != w.bulk.log()[0].Fence {
				t.Errorf("dispatch %+v", d)
			}
		}
	})
}
