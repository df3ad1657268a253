package wake

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/functions/internal/bus"
	"sluice/functions/internal/machine"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// worked leaves a run whose only shard is owned by a slice, until the lease is over.
func (w *world) worked(id string) {
	w.t.Helper()
	w.planned(id)
	cp := sheet.Checkpoint{Status: sheet.ShardRunning, Epoch: 1, Owner: "slice", LeaseUntil: time.Now().Add(run.Lease), EndPage: 1, From: sheet.Position{Epoch: 1}, Counted: sheet.Position{Epoch: 1}}
	if err := cp.Save(w.t.Context(), w.st, id, 0); err != nil {
		w.t.Fatal(err)
	}
}

// planned leaves a run that has been started and planned.
func (w *world) planned(id string) {
	w.t.Helper()
	if _, err := w.send(strings.Replace(w.requested(), `"detail": {`, `"detail": {"run": "`+id+`",`, 1)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := run.Plan(w.t.Context(), w.st, id); err != nil {
		w.t.Fatal(err)
	}
	w.machines.states[id] = machine.Running
}

// Whoever asked for a cancellation died before it was carried out; slices were still at work then, or had died themselves.
func TestX4TheReaperCarriesACancellationOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worked("r")
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
			t.Fatal(err)
		}
		if got := w.reap(); got != (Report{Looked: 1}) || w.record("r").Status != sheet.Running || w.machines.stopped[0] != "r" {
			t.Errorf("a slice may be at work: %+v, %s", got, w.record("r").Status)
		}
		time.Sleep(run.Lease)
		w.machines.states["r"] = machine.Aborted // which is no failure
		if got := w.reap(); got != (Report{Looked: 1, Halted: 1}) || w.record("r").Status != sheet.Cancelled {
			t.Errorf("%+v, %s", got, w.record("r").Status)
		}
		if len(w.board.events) != 1 || w.board.events[0].Type != bus.Cancelled {
			t.Errorf("%+v", w.board.events)
		}
		if got := w.reap(); got != (Report{}) {
			t.Errorf("still listed: %+v", got)
		}
	})
}

// A run that is cancelled before its input was sealed has nothing at work.
func TestX4TheReaperCancelsWhatIsStaging(t *testing.T) {
	w := newWorld(t)
	if _, err := w.send(strings.Replace(w.requested(), `"detail": {`, `"detail": {"run": "r",`, 1)); err != nil {
		t.Fatal(err)
	}
	if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
		t.Fatal(err)
	}
	if got := w.reap(); got != (Report{Looked: 1, Halted: 1}) || w.record("r").Status != sheet.Cancelled {
		t.Errorf("%+v, %s", got, w.record("r").Status)
	}
}

// A pause is carried out like a cancellation. After that the run needs nothing, whatever has become of its execution,
// until somebody continues it: if they die before they have started the new execution, the reaper does it.
func TestX4TheReaperLeavesPausedRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.planned("r")
		if err := run.Pause(t.Context(), w.st, "r", "lunch"); err != nil {
			t.Fatal(err)
		}
		if got := w.reap(); got != (Report{Looked: 1, Halted: 1}) || w.record("r").Status != sheet.Paused {
			t.Errorf("%+v, %s", got, w.record("r").Status)
		}
		time.Sleep(24 * time.Hour)
		stopped, started := len(w.machines.stopped), len(w.machines.started)
		for _, state := range []machine.State{machine.Running, machine.Aborted, machine.Ended, machine.Absent} {
			w.machines.states["r"] = state
			if got := w.reap(); got != (Report{Looked: 1}) || len(w.machines.stopped) != stopped || len(w.machines.started) != started {
				t.Errorf("%s: %+v, %+v", state, got, w.machines)
			}
		}
		if _, err := run.Continue(t.Context(), w.st, "r", sheet.Budget{}); err != nil {
			t.Fatal(err)
		}
		if got := w.reap(); got != (Report{Looked: 1, Restarted: 1}) || w.machines.started[started] != "r--1" {
			t.Errorf("%+v, %v", got, w.machines.started)
		}
		if err := run.Pause(t.Context(), w.st, "r", ""); err != nil {
			t.Fatal(err)
		}
		w.reap()
		if err := run.Cancel(t.Context(), w.st, "r"); err != nil { // paused runs can be cancelled
			t.Fatal(err)
		}
		if got := w.reap(); got != (Report{Looked: 1, Halted: 1}) || w.record("r").Status != sheet.Cancelled {
			t.Errorf("%+v, %s", got, w.record("r").Status)
		}
	})
}

// Whoever asked for a retry died before the execution was started that does it.
func TestX4TheReaperStartsARetry(t *testing.T) {
	synctest.Test(t, theReaperStartsARetry)
}

func theReaperStartsARetry(t *testing.T) {
	w := newWorld(t)
	w.planned("r")
	rec := w.record("r")
	cp := sheet.Checkpoint{Status: sheet.ShardDone, Epoch: 1, EndPage: 1, Counts: sheet.Counts{Failed: 1}, From: sheet.Position{Epoch: 1}, Counted: sheet.Position{Epoch: 1}}
	rec.Status = sheet.Completed
	rec.Counts.Failed = 1
	if err := errors.Join(cp.Save(t.Context(), w.st, "r", 0), sheet.Save(t.Context(), w.st, rec)); err != nil {
		t.Fatal(err)
	}
	if _, err := run.AskRetry(t.Context(), w.st, "r", run.RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	started := len(w.machines.started)
	time.Sleep(Grace)
	if got := w.reap(); got != (Report{Looked: 1, Restarted: 1}) || w.machines.started[started] != "r--1" {
		t.Errorf("%+v, %v", got, w.machines.started)
	}
	if err := run.Cancel(t.Context(), w.st, "r"); err != nil {
		t.Fatal(err)
	}
	if got := w.reap(); got != (Report{Looked: 1, Halted: 1}) || w.record("r").Status != sheet.Cancelled {
		t.Errorf("%+v, %s", got, w.record("r").Status)
	}
}

// What an execution can leave behind, besides a run that is at work: a staging that nobody goes on with, and a shard that
// is parked with nobody to wake it.
func TestTheReaperRestartsStagingAndParkedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.send(strings.Replace(w.requested(), `"detail": {`, `"detail": {"run": "staging",`, 1)); err != nil {
			t.Fatal(err)
		}
		w.planned("parked")
		cp := sheet.Checkpoint{Status: sheet.ShardParked, Epoch: 1, WakeAt: time.Now().Add(time.Hour), EndPage: 1, From: sheet.Position{Epoch: 1}, Counted: sheet.Position{Epoch: 1}}
		if err := cp.Save(t.Context(), w.st, "parked", 0); err != nil {
			t.Fatal(err)
		}
		w.machines.states["staging"], w.machines.states["parked"], w.machines.started = machine.Ended, machine.Ended, nil
		if got := w.reap(); got != (Report{Looked: 2, Restarted: 2}) {
			t.Errorf("%+v", got)
		}
		if got := strings.Join(w.machines.started, " "); got != "parked--1 staging--1" {
			t.Error(got)
		}
	})
}
