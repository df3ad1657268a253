package runmap

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/functions/internal/bus"
	"sluice/functions/internal/ending"
	"sluice/internal/active"
	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/edge"
	"sluice/internal/memory"
)

// provider answers calls: the first ones with a hold.
type provider struct {
	mu    sync.Mutex
	holds int
	until time.Duration
	takes time.Duration
	asked int
}

func (p *provider) Execute(_ context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for i := range batch {
		p.mu.Lock()
		p.asked++
		held := p.asked <= p.holds
		p.mu.Unlock()
		if held {
			deliver(i, call.Answer{Outcome: call.Held, Until: time.Now().Add(p.until), Scope: "a-1", Dispatched: true, Status: 429})
			continue
		}
		time.Sleep(p.takes)
		deliver(i, call.Answer{Outcome: call.Result, Value: json.RawMessage(`"y"`), Dispatched: true, Status: 200})
	}
	return nil
}

// board keeps the events that were announced.
type board struct {
	events []bus.Event
	broken error
}

func (b *board) Announce(_ context.Context, e bus.Event) error {
	if b.broken == nil {
		b.events = append(b.events, e)
	}
	return b.broken
}

type world struct {
	*Handler
	t     *testing.T
	board *board
}

func newWorld(t *testing.T, gw call.Gateway) *world {
	st, b := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &board{}
	return &world{t: t, board: b, Handler: &Handler{
		Store: st, Gateway: func(*run.Job) call.Gateway { return gw }, Settings: Settings(),
		Ending: &ending.Ending{Store: st, Announcer: b}, Log: slog.New(slog.DiscardHandler),
	}}
}

const calling = "version: 1\ncolumns:\n  - {name: y, call: a.get, with: {x: \"${row.x}\"}}\n"

// register leaves a run as a start does.
func (w *world) register(id, rows string) {
	w.t.Helper()
	w.registerMap(id, calling, rows)
}

func (w *world) registerMap(id, mapText, rows string) {
	w.t.Helper()
	w.registerTools(id, mapText, "version: 1\nproviders: {a: {url: \"https://a.example\", noProgress: 30d}}\ntools: {a.get: {path: \"/{x}\", timeout: 10s}}\n", rows)
}

func (w *world) registerTools(id, mapText, tools, rows string) {
	w.t.Helper()
	p, err := run.Prepare(run.Request{
		ID: id, InputName: "in.csv", Source: &sheet.Source{Object: "uploads/in.csv"}, Seal: intake.SealOptions{Fingerprint: "f"},
		Documents: sheet.Documents{MapFile: "m.yaml", Map: []byte(mapText), ToolsFile: "t.yaml", Tools: []byte(tools)},
	})
	if err == nil {
		err = errors.Join(active.Add(w.t.Context(), w.Store.Table, id),
			w.Store.Blobs.Put(w.t.Context(), "uploads/in.csv", strings.NewReader(rows)))
	}
	if err == nil {
		_, err = p.Register(w.t.Context(), w.Store)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// ask sends JSON and reads JSON, as the platform does.
func (w *world) ask(ctx context.Context, raw string, into any) error {
	w.t.Helper()
	res, err := w.Handle(ctx, []byte(raw))
	if err != nil {
		return err
	}
	b, err := json.Marshal(res)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := edge.Decode(b, into); err != nil {
		w.t.Fatalf("%s: %v", b, err)
	}
	return nil
}

func (w *world) must(raw string, into any) {
	w.t.Helper()
	if err := w.ask(w.t.Context(), raw, into); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) record(id string) *sheet.Run {
	w.t.Helper()
	rec, err := sheet.Load(w.t.Context(), w.Store, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

func (w *world) listed() (n int) {
	for range active.All(w.t.Context(), w.Store.Table) {
		n++
	}
	return n
}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../../events/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// expect holds an answer against a message of events/, word by word.
func expect(t *testing.T, name string, got any) {
	t.Helper()
	var want, have any
	b, err := json.Marshal(got)
	if err == nil {
		err = errors.Join(json.Unmarshal(b, &have), json.Unmarshal([]byte(sample(t, name)), &want))
	}
	if d := cmp.Diff(want, have); d != "" || err != nil {
		t.Errorf("%s: %v %s", name, err, d)
	}
}

// The whole way of a run, by the messages in events/, with the machine's part played by the test: a hold of an hour
// parks the shard, nothing runs until wakeAt, and the table is whole before the record says completed.
func TestARunFromPlanToFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		p := &provider{holds: 1, until: time.Hour}
		w := newWorld(t, p)
		w.Settings.Linger = 0      // so that the moments are whole seconds
		w.Settings.Concurrency = 1 // the second row comes when the first is held
		w.register("leads-2026-01", "x\n1\n2\n")
		var plan PlanResult
		for range 2 { // repeating it is harmless
			w.must(sample(t, "runmap-plan-request.json"), &plan)
			expect(t, "runmap-plan-response.json", plan)
		}
		var slice SliceResult
		w.must(sample(t, "runmap-slice-request.json"), &slice)
		expect(t, "runmap-slice-response-parked.json", slice)
		wake, err := time.Parse(time.RFC3339, slice.WakeAt)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(wake))
		w.must(`{"op":"slice","run":"leads-2026-01","shard":0,"slices":1}`, &slice)
		expect(t, "runmap-slice-response-done.json", slice)
		var fin FinishResult
		for range 2 {
			w.must(sample(t, "runmap-finish-request.json"), &fin)
			expect(t, "runmap-finish-response.json", fin)
		}
		object, err := w.Store.Blobs.Get(t.Context(), ending.Export("leads-2026-01"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(object)
		if err != nil || string(text) != "x,y\n1,y\n2,y\n" {
			t.Errorf("%q, %v", text, err)
		}
		if len(w.board.events) != 2+1 { // finished twice
			t.Fatalf("told %+v", w.board.events)
		}
		expect(t, "sluice.run.parked.json", w.board.events[0].Detail)
		expect(t, "sluice.run.completed.json", w.board.events[1].Detail)
		if w.listed() != 0 {
			t.Error("still listed as active")
		}
		w.must(`{"op":"slice","run":"leads-2026-01","shard":0,"slices":7}`, &slice)
		if slice.Outcome != "done" || p.asked != 3 {
			t.Errorf("after the end: %+v, %d calls", slice, p.asked)
		}
	})
}

// Invoked twice at the same time, one slice works and the other leaves without effect (X2).
func TestX2ASecondInvocationLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{takes: 8 * time.Second}
		w := newWorld(t, p)
		w.register("r", "x\n1\n")
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		var both [2]SliceResult
		var wg sync.WaitGroup
		for i := range both {
			wg.Go(func() { w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &both[i]) })
		}
		wg.Wait()
		if both[0].Outcome == "parked" {
			both[0], both[1] = both[1], both[0]
		}
		if both[0].Outcome != "done" || both[1].Outcome != "parked" || p.asked != 1 {
			t.Fatalf("%+v, %d calls", both, p.asked)
		}
		wake, err := time.Parse(time.RFC3339, both[1].WakeAt)
		if err != nil || time.Until(wake) > run.Lease {
			t.Errorf("comes again at %v, %v", wake, err)
		}
	})
}

// A slice ends before its invocation does: it stops admitting, drains, saves, and says that there is more.
func TestASliceEndsBeforeItsInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{takes: 4 * time.Second}
		w := newWorld(t, p)
		w.Settings.Concurrency = 1
		w.register("r", "x\n"+strings.Join(strings.Split("abcdefghijklmnopqrst", ""), "\n")+"\n") // 80 s of calls
		w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
		slices := 0
		for outcome := ""; outcome != "done"; slices++ {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			var s SliceResult
			if err := w.ask(ctx, `{"op":"slice","run":"r","shard":0,"slices":0}`, &s); err != nil {
				t.Fatal(err)
			}
			if ctx.Err() != nil || slices > 10 {
				t.Fatalf("slice %d: %+v, %v", slices, s, ctx.Err())
			}
			cancel()
			if outcome = s.Outcome; outcome == "parked" {
				t.Fatalf("%+v", s)
			}
		}
		if slices < 2 || w.record("r").Counts.Completed != 20 {
			t.Errorf("%d slices, %+v", slices, w.record("r").Counts)
		}
	})
}

func TestErrorsHaveTheirNames(t *testing.T) {
	w := newWorld(t, &provider{})
	w.register("staging", "x\n1\n")
	w.register("failed", "x\n1\n")
	w.must(`{"op":"fail","run":"failed","error":"RunFailed","cause":"no"}`, &FailResult{})
	for raw, want := range map[string]string{
		`{"op":"plan","run":"nobody"}`:             "RunNotFound",
		`{"op":"slice","run":"nobody","shard":0}`:  "RunNotFound",
		`{"op":"finish","run":"nobody"}`:           "RunNotFound",
		`{"op":"fail","run":"nobody"}`:             "RunNotFound",
		`{"op":"plan","run":"failed"}`:             "RunFailed",
		`{"op":"slice","run":"failed","shard":0}`:  "RunFailed",
		`{"op":"finish","run":"failed"}`:           "RunFailed",
		`{"op":"slice","run":"staging","shard":0}`: "BadRequest",
		`{"op":"finish","run":"staging"}`:          "BadRequest",
		`{"op":"dance","run":"staging"}`:           "BadRequest",
		`{"op":"plan"}`:                            "BadRequest",
		`{"op":"plan","run":"staging","x":1}`:      "BadRequest",
	} {
		if _, err := w.Handle(t.Context(), []byte(raw)); err == nil || edge.Name(err) != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	w.must(`{"op":"plan","run":"staging"}`, &PlanResult{})
	for raw, want := range map[string]string{
		`{"op":"slice","run":"staging","shard":1}`:             "BadRequest",
		`{"op":"slice","run":"staging","shard":0,"slices":-1}`: "BadRequest",
		`{"op":"finish","run":"staging"}`:                      "RunFailed", // H8: rows have not ended
	} {
		if _, err := w.Handle(t.Context(), []byte(raw)); err == nil || edge.Name(err) != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	if _, err := w.Store.Blobs.Get(t.Context(), ending.Export("staging")); err == nil {
		t.Error("a run that is not whole was exported")
	}
}

// An input that cannot become a run's ends the run, with the reason where the user looks for it.
func TestARefusedInputFailsTheRun(t *testing.T) {
	w := newWorld(t, &provider{})
	w.register("r", "x\n1,2\n")
	_, err := w.Handle(t.Context(), []byte(`{"op":"plan","run":"r"}`))
	if err == nil || edge.Name(err) != "RunFailed" {
		t.Fatal(err)
	}
	report, _ := json.Marshal(map[string]string{"errorType": "RunFailed", "errorMessage": err.Error()})
	b, _ := json.Marshal(Request{Op: Fail, Run: "r", Error: "RunFailed", Cause: string(report)})
	w.must(string(b), &FailResult{})
	if rec := w.record("r"); rec.Status != sheet.Failed || !strings.Contains(rec.Error, "in.csv:2") || w.listed() != 0 {
		t.Errorf("%+v, %d listed", rec, w.listed())
	}
}

// The first reason is the right one, a run that is whole stays so, and a bus that is down keeps no record from being true.
func TestFailMakesTheRecordTrue(t *testing.T) {
	w := newWorld(t, &provider{})
	w.register("leads-2026-01", "x\n1\n")
	w.board.broken = errors.New("no bus")
	var res FailResult
	w.must(sample(t, "runmap-fail-request.json"), &res)
	expect(t, "runmap-fail-response.json", res)
	if w.listed() != 1 {
		t.Error("an end that nobody was told of is forgotten")
	}
	w.board.broken = nil
	w.must(`{"op":"fail","run":"leads-2026-01","error":"States.Timeout","cause":""}`, &res)
	if rec := w.record("leads-2026-01"); rec.Error != "the function ran out of memory" || w.listed() != 0 {
		t.Errorf("%+v", rec)
	}
	expect(t, "sluice.run.failed.json", w.board.events[0].Detail)

	w.register("whole", "x\n1\n")
	w.must(`{"op":"plan","run":"whole"}`, &PlanResult{})
	w.must(`{"op":"slice","run":"whole","shard":0,"slices":0}`, &SliceResult{})
	w.must(`{"op":"finish","run":"whole"}`, &FinishResult{})
	w.must(`{"op":"fail","run":"whole","error":"X","cause":"late"}`, &res)
	if res.Status != sheet.Completed || w.record("whole").Error != "" {
		t.Errorf("%+v", res)
	}
}

// A table that cannot be written leaves the run as it is: to be finished again.
func TestAFinishWithoutItsTableIsTriedAgain(t *testing.T) {
	w := newWorld(t, &provider{})
	w.register("r", "x\n1\n")
	w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
	w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &SliceResult{})
	blobs := w.Store.Blobs
	w.Store.Blobs = full{blobs.(*memory.Blobs)}
	if _, err := w.Handle(t.Context(), []byte(`{"op":"finish","run":"r"}`)); err == nil || edge.Name(err) != "Transient" {
		t.Errorf("%v", err)
	}
	if got := w.record("r").Status; got != sheet.Running || len(w.board.events) != 0 {
		t.Errorf("status %s, %d events", got, len(w.board.events))
	}
	w.Store.Blobs = blobs
	w.must(`{"op":"finish","run":"r"}`, &FinishResult{})
}

type full struct{ *memory.Blobs }

func (full) Put(context.Context, string, io.Reader) error { return errors.New("no space") }

func TestReason(t *testing.T) {
	inner := `{"Error":"RunFailed","Cause":"{\"errorMessage\":\"row 3 is bad\",\"errorType\":\"RunFailed\"}","Status":"FAILED"}`
	for _, tt := range []struct{ name, cause, want string }{
		{"RunFailed", `{"errorMessage":"page 3 is missing","errorType":"RunFailed","stackTrace":[]}`, "page 3 is missing"},
		{"Transient", `{"errorMessage":"busy","errorType":"Transient"}`, "Transient: busy"},
		{"States.TaskFailed", inner, "row 3 is bad"},
		{"States.Timeout", "", "States.Timeout"},
		{"", "", "the execution failed and gave no reason"},
		{"X", "plain", "X: plain"},
		{"X", `{"other":1}`, `X: {"other":1}`},
		{"RunFailed", "a\xffb", "a?b"},
		{"RunFailed", strings.Repeat("é", 1500), strings.Repeat("é", 1000) + "..."},
	} {
		if got := reason(tt.name, tt.cause); got != tt.want {
			t.Errorf("reason(%q, %q) = %q, want %q", tt.name, tt.cause, got, tt.want)
		}
	}
}

func FuzzReason(f *testing.F) {
	f.Add("RunFailed", `{"Cause":"{\"errorMessage\":\"x\"}"}`)
	f.Fuzz(func(t *testing.T, name, cause string) {
		if got := reason(name, cause); got == "" || len(got) > maxReason+3 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// Wait states take whole seconds; a time is never rounded into the past.
func TestH4WakeAtIsRoundedUp(t *testing.T) {
	at := time.Date(2026, 1, 2, 4, 4, 4, 1, time.FixedZone("CET", 3600))
	if got := stamp(at); got != "2026-01-02T03:04:05Z" {
		t.Error(got)
	}
	if got := stamp(at.Truncate(time.Second)); got != "2026-01-02T03:04:04Z" {
		t.Error(got)
	}
}

func TestX3ALongExecutionIsFollowedByAnother(t *testing.T) {
	for slices, want := range map[int]bool{0: false, RolloverAfter - 2: false, RolloverAfter - 1: true, 5000: true} {
		got := answer(Request{Slices: slices}, run.Result{Outcome: run.More})
		if got.Rollover != want || got.Slices != slices+1 {
			t.Errorf("after %d: %+v", slices, got)
		}
	}
	if answer(Request{Slices: 5000}, run.Result{Outcome: run.Done}).Rollover {
		t.Error("a shard that is done needs no execution")
	}
}
