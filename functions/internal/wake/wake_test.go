package wake

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/functions/internal/bus"
	"sluice/functions/internal/ending"
	"sluice/functions/internal/machine"
	"sluice/functions/internal/steer"
	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/edge"
	"sluice/internal/memory"
	"sluice/internal/start"
)

// machines is Step Functions: the states of executions by name.
type machines struct {
	states  map[string]machine.State
	why     string
	started []string
	stopped []string
	down    error
	looking func() // called before a state is told
}

func (m *machines) Start(_ context.Context, run string, restarts int) error {
	m.started = append(m.started, machine.Name(run, restarts))
	return m.down
}

func (m *machines) Stop(_ context.Context, run string, execution int, _ string) error {
	m.stopped = append(m.stopped, machine.Name(run, execution))
	return m.down
}

func (m *machines) State(_ context.Context, run string, restarts int) (machine.State, string, error) {
	if m.looking != nil {
		m.looking()
	}
	s, ok := m.states[machine.Name(run, restarts)]
	if !ok {
		s = machine.Absent
	}
	return s, m.why, m.down
}

type board struct{ events []bus.Event }

func (b *board) Announce(_ context.Context, e bus.Event) error {
	b.events = append(b.events, e)
	return nil
}

type world struct {
	*Handler
	t        *testing.T
	st       *store.Store
	machines *machines
	board    *board
}

func newWorld(t *testing.T) *world {
	st, m, b := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}, &machines{states: map[string]machine.State{}}, &board{}
	end := &ending.Ending{Store: st, Announcer: b}
	return &world{t: t, st: st, machines: m, board: b, Handler: &Handler{
		Log: slog.New(slog.DiscardHandler), Starter: &start.Starter{Store: st, Executions: m, Accept: start.ForCloud(false)},
		Reaper: &Reaper{Store: st, Executions: m, Ending: end,
			Steer: &steer.Steer{Store: st, Executions: m, Ending: end, Settings: run.Settings{Keep: 48 * time.Hour}}},
	}}
}

func (w *world) send(raw string) (any, error) { return w.Handle(w.t.Context(), []byte(raw)) }

// reap plays the schedule.
func (w *world) reap() Report {
	w.t.Helper()
	raw, err := os.ReadFile("../../../events/wake-schedule.json")
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.send(string(raw))
	if err != nil {
		w.t.Fatal(err)
	}
	return got.(Report)
}

func (w *world) requested() string {
	w.t.Helper()
	raw, err := os.ReadFile("../../../events/sluice.run.requested.json")
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

func (w *world) record(id string) *sheet.Run {
	w.t.Helper()
	rec, err := sheet.Load(w.t.Context(), w.st, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// An event that asks for a run starts it once, however often it is delivered (X1).
func TestX1AnEventStartsOneRun(t *testing.T) {
	w := newWorld(t)
	first, err := w.send(w.requested())
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.send(w.requested())
	if err != nil || *again.(*Started) != *first.(*Started) {
		t.Errorf("%+v, %v", again, err)
	}
	id := first.(*Started).Run
	if w.record(id).Status != sheet.Staging || w.machines.started[0] != id {
		t.Errorf("%+v, %v", w.record(id), w.machines.started)
	}
	other, err := w.send(strings.Replace(w.requested(), `"id": "`, `"id": "2`, 1))
	if err != nil || other.(*Started).Run == id {
		t.Errorf("another event: %+v, %v", other, err)
	}
}

func TestEventsThatAreNotValid(t *testing.T) {
	w := newWorld(t)
	named := strings.Replace(w.requested(), `"detail": {`, `"detail": {"run": "mine",`, 1)
	if _, err := w.send(named); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{
		`[]`, `{"detail-type":"sluice.run.requested"}`, `{"detail-type":"weather","detail":{}}`,
		strings.Replace(w.requested(), `"detail": {`, `"detail": {"unknown": 1,`, 1),
		strings.Replace(named, "ada", "eve", 1), // the id is taken by another input
	} {
		if _, err := w.send(raw); err == nil || edge.Name(err) != "BadRequest" {
			t.Errorf("%.80s: %v", raw, err)
		}
	}
	w.machines.down = errors.New("throttled")
	if _, err := w.send(w.requested()); err == nil || edge.Name(err) != "Transient" {
		t.Errorf("%v", err)
	}
}

// A start that was cut off before its execution is completed, though not while it may still be under way.
func TestTheReaperCompletesAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.machines.down = errors.New("no answer")
		_, _ = w.send(strings.Replace(w.requested(), `"detail": {`, `"detail": {"run": "r",`, 1))
		w.machines.down, w.machines.started = nil, nil
		if got := w.reap(); got != (Report{Looked: 1}) || w.machines.started != nil {
			t.Errorf("%+v, %v", got, w.machines.started)
		}
		time.Sleep(Grace)
		if got := w.reap(); got != (Report{Looked: 1, Restarted: 1}) || w.machines.started[0] != "r" {
			t.Errorf("%+v, %v", got, w.machines.started)
		}
	})
}

func (w *world) running(id string) {
	w.t.Helper()
	if err := errors.Join(active.Add(w.t.Context(), w.st.Table, id),
		sheet.Create(w.t.Context(), w.st, &sheet.Run{ID: id, Name: "m", Status: sheet.Running, Shards: 1})); err != nil {
		w.t.Fatal(err)
	}
}

// An execution that died without a word is followed by another, so often and no more.
func TestTheReaperRestartsWhatDied(t *testing.T) {
	w := newWorld(t)
	w.running("r")
	w.machines.why = "TIMED_OUT States.Timeout"
	w.machines.states["r"] = machine.Running
	if got := w.reap(); got != (Report{Looked: 1}) {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"r", "r--1", "r--2"} {
		w.machines.states[name] = machine.Ended
		if got := w.reap(); got != (Report{Looked: 1, Restarted: 1}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := strings.Join(w.machines.started, " "); got != "r--1 r--2 r--3" {
		t.Error(got)
	}
	w.machines.states["r--3"] = machine.Ended
	if got := w.reap(); got != (Report{Looked: 1, Failed: 1}) {
		t.Errorf("%+v", got)
	}
	if rec := w.record("r"); rec.Status != sheet.Failed || !strings.HasPrefix(rec.Error, "its execution died 4 times: TIMED_OUT States.Timeout;") {
		t.Errorf("%+v", rec)
	}
	if len(w.board.events) != 1 || w.board.events[0].Type != bus.Failed {
		t.Errorf("%+v", w.board.events)
	}
	if got := w.reap(); got != (Report{}) {
		t.Errorf("still listed: %+v", got)
	}
}

// Whoever stops an execution means it.
func TestTheReaperFailsWhatWasAborted(t *testing.T) {
	w := newWorld(t)
	w.running("r")
	w.machines.states["r"] = machine.Aborted
	if got := w.reap(); got != (Report{Looked: 1, Failed: 1}) || w.record("r").Status != sheet.Failed {
		t.Errorf("%+v, %s", got, w.record("r").Status)
	}
}

// The record is read once more after the execution: it may have been made true in between.
func TestTheReaperDoesNotOvertakeAnEnd(t *testing.T) {
	w := newWorld(t)
	w.running("r")
	w.machines.states["r"] = machine.Ended
	w.machines.looking = func() {
		rec := w.record("r")
		rec.Status = sheet.Completed
		if err := sheet.Save(t.Context(), w.st, rec); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.reap(); got != (Report{Looked: 1, Cleared: 1}) || w.record("r").Status != sheet.Completed || w.machines.started != nil {
		t.Errorf("%+v, %+v", got, w.record("r"))
	}
	if len(w.board.events) != 1 || w.board.events[0].Type != bus.Completed {
		t.Errorf("%+v", w.board.events)
	}
}

// A run that never came to be leaves the list, after a while; one that cannot be judged keeps no other from it.
func TestTheReaperClearsItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := active.Add(t.Context(), w.st.Table, "ghost"); err != nil {
			t.Fatal(err)
		}
		if got := w.reap(); got != (Report{Looked: 1}) {
			t.Errorf("%+v", got)
		}
		time.Sleep(Grace)
		w.running("a")
		w.machines.down = errors.New("throttled")
		if _, err := w.send(`{"detail-type":"Scheduled Event"}`); err == nil || edge.Name(err) != "Transient" {
			t.Errorf("%v", err)
		}
		w.machines.down = nil
		if got := w.reap(); got != (Report{Looked: 1}) {
			t.Errorf("the ghost is still listed: %+v", got)
		}
	})
}
