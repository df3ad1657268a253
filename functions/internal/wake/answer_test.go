package wake

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"sluice/internal/answers"
	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/edge"
)

// bell keeps whom it rang for.
type bell struct {
	rang   []run.ShardOf
	broken error
}

func (b *bell) Ring(_ context.Context, at run.ShardOf) error {
	b.rang = append(b.rang, at)
	return b.broken
}

// asking starts a run whose only row waits for the answer in events/.
func (w *world) asking() *bell {
	w.t.Helper()
	b := &bell{}
	w.Desk = &answers.Desk{Store: w.st, Bell: b}
	job, err := run.Start(w.t.Context(), w.st, run.Request{
		ID: "r", InputName: "in.csv", Format: intake.Options{Format: "csv"},
		Documents: sheet.Documents{MapFile: "m.yaml", Map: []byte("version: 1\ncolumns:\n  - {name: ok, event: {key: \"approve-${row.email}\"}, result: \"${result.by}\"}\n")},
		Input: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("email\nann@acme.example\n")), nil
		},
	})
	if err == nil {
		_, err = job.Slice(w.t.Context(), run.Ports{Store: w.st, Owner: "s"}, 0, run.Settings{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) answered() string {
	w.t.Helper()
	raw, err := os.ReadFile("../../../events/sluice.event.answered.json")
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

// An event that answers reaches the row and wakes its shard; delivered again it changes nothing, and wakes it again, in
// case that was what went wrong the first time.
func TestE2AnEventAnswers(t *testing.T) {
	w := newWorld(t)
	b := w.asking()
	for n, want := range []run.Answered{{Taken: 1}, {Already: 1}} {
		res, err := w.send(w.answered())
		if err != nil {
			t.Fatal(err)
		}
		if got := res.(*run.Answered); got.Taken != want.Taken || got.Already != want.Already || got.Key != "approve-ann@acme.example" {
			t.Errorf("delivery %d: %+v", n, got)
		}
	}
	if want := []run.ShardOf{{Run: "r"}, {Run: "r"}}; !slices.Equal(b.rang, want) {
		t.Errorf("rang for %v", b.rang)
	}
	job, err := run.LoadJob(t.Context(), w.st, "r")
	if err != nil {
		t.Fatal(err)
	}
	if res, err := job.Slice(t.Context(), run.Ports{Store: w.st, Owner: "t"}, 0, run.Settings{}); err != nil || res.Outcome != run.Done {
		t.Fatalf("%+v, %v", res, err)
	}
	for v, err := range job.Rows(t.Context(), run.Ports{Store: w.st}) {
		if err != nil || v.Cells["ok"] != "Eve" {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// What cannot be taken, and never will be, ends in the dead-letter queue with the reason; what may pass is delivered again.
func TestEventsThatCannotAnswer(t *testing.T) {
	w := newWorld(t)
	b := w.asking()
	for detail, want := range map[string]string{
		`{"key":"approve-bob","value":1}`: "nobody waits", `{"value":1}`: "the key must be text", `{"key":"k"}`: "it is not JSON",
		`{"key":"approve-ann@acme.example","value":1,"run":"s"}`: "nobody waits", `{"key":"k","valeu":1}`: "valeu",
	} {
		_, err := w.send(`{"detail-type":"sluice.event.answered","detail":` + detail + `}`)
		var bad *edge.BadRequest
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", detail, err, want)
		}
	}
	b.broken = errors.New("no bell")
	if _, err := w.send(w.answered()); err == nil || edge.Name(err) == "BadRequest" {
		t.Errorf("with a broken bell: %v", err)
	}
	b.broken = nil
	if res, err := w.send(w.answered()); err != nil || res.(*run.Answered).Already != 1 {
		t.Errorf("again: %+v, %v", res, err)
	}
}

// The store fails at each write of an answer; the event is delivered again.
func TestE3AnEventIsDeliveredAgain(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		for n := 1; n <= 2; n++ {
			w := newWorld(t)
			b := w.asking()
			faulty := tabletest.NewFaulty(w.st.Table)
			w.st.Table = faulty
			faulty.Inject(tabletest.Fault{Kind: kind, Skip: n - 1, Times: 1, On: func(op tabletest.Op, _ table.Key) bool { return op.IsWrite() }})
			var err error
			for range 3 {
				if _, err = w.send(w.answered()); err == nil {
					break
				}
			}
			mail, _ := run.Mail(t.Context(), w.st, run.ShardOf{Run: "r"})
			if err != nil || !mail || len(b.rang) == 0 {
				t.Errorf("kind %d, write %d: %v, mail %v, rang %v", kind, n, err, mail, b.rang)
			}
		}
	}
}
