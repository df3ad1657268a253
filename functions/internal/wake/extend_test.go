package wake

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice/functions/internal/machine"
	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
)

// extending leaves a run that stands so, and whose extension is noted.
func (w *world) extending(id string, status sheet.Status) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	err := errors.Join(active.Add(ctx, w.st.Table, id),
		sheet.Create(ctx, w.st, &sheet.Run{ID: id, Name: "m", Status: status, Shards: 1, StartedAt: time.Now()}))
	if err == nil {
		_, err = run.AskExtend(ctx, w.st, id, "k", sheet.More{Source: sheet.Source{Object: "uploads/x"}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Whoever is asked starts the next execution, and no harm is done if he does it again.
func TestX4AnExtensionStartsTheNextExecution(t *testing.T) {
	w := newWorld(t)
	for _, status := range []sheet.Status{sheet.Completed, sheet.Failed, sheet.Cancelled, sheet.Paused} {
		w.machines.started = nil
		w.extending(string(status), status)
		for range 2 {
			if err := w.Reaper.Steer.Kick(t.Context(), string(status)); err != nil {
				t.Fatal(err)
			}
		}
		name := string(status) + "--1"
		if got := strings.Join(w.machines.started, " "); got != name+" "+name || w.record(string(status)).Status != status || w.machines.stopped != nil {
			t.Errorf("%s: started %s, stopped %v", status, got, w.machines.stopped)
		}
	}
}

// Whoever asked died before the execution was started: the reaper does it, though the run has ended. An execution that dies with the
// extension undone is followed by another, so often and no more; the run stays as it was, and says why.
func TestX4TheReaperCompletesAnExtension(t *testing.T) {
	for _, status := range []sheet.Status{sheet.Completed, sheet.Paused} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.extending("r", status)
			if got := w.reap(); got != (Report{Looked: 1}) {
				t.Errorf("it may be under way: %+v", got)
			}
			time.Sleep(Grace)
			for _, name := range []string{"r--1", "r--2", "r--3", "r--4"} {
				if got := w.reap(); got != (Report{Looked: 1, Restarted: 1}) || w.machines.started[len(w.machines.started)-1] != name {
					t.Errorf("%s: %+v, %v", name, got, w.machines.started)
				}
				w.machines.states[name] = machine.Running
				if got := w.reap(); got != (Report{Looked: 1}) {
					t.Errorf("%s is at work: %+v", name, got)
				}
				w.machines.states[name] = machine.Ended
			}
			if got := w.reap(); got != (Report{Looked: 1, Failed: 1}) {
				t.Errorf("%+v", got)
			}
			if rec := w.record("r"); rec.Status != status || !strings.Contains(rec.Extension.Error, "its execution died 4 times; the run is as it was") {
				t.Errorf("%s %+v", rec.Status, rec.Extension)
			}
		})
	}
}

// Whoever stops the execution means it.
func TestX4TheReaperRefusesAnExtensionThatWasAborted(t *testing.T) {
	w := newWorld(t)
	w.extending("r", sheet.Completed)
	w.machines.states["r--1"] = machine.Aborted
	if got := w.reap(); got != (Report{Looked: 1, Failed: 1}) || w.record("r").Extension.Error == "" {
		t.Errorf("%+v, %+v", got, w.record("r").Extension)
	}
	if got := w.reap(); got != (Report{}) {
		t.Errorf("still listed: %+v", got)
	}
}
