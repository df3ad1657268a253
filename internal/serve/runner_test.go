package serve

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/start"
)

func (w *server) table(id, format string) string {
	w.t.Helper()
	r, err := w.client().Export(w.t.Context(), id, format)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func TestSeveralRunsAtOnceToTheirTables(t *testing.T) {
	p := newProvider(t)
	w := serving(t, t.TempDir(), "")
	w.run("slow", p.tools(), "ada", "wait")
	w.run("fast", p.tools(), "bob")
	w.until("fast", "completed")
	if v := w.view("slow"); v.Status != "running" {
		t.Errorf("%+v", v)
	}
	close(p.gate)
	v := w.until("slow", "completed")
	if v.Completed != 2 || v.Stats.Dispatched != 2 || v.Bill == nil {
		t.Errorf("%+v", v)
	}
	if got := w.table("slow", "csv"); got != "x,up\nada,ADA!\nwait,WAIT!\n" {
		t.Errorf("%q", got)
	}
	if got := w.table("fast", "jsonl"); got != `{"x":"bob","up":"BOB!"}`+"\n" {
		t.Errorf("%q", got)
	}
}

// What each run asked of the store is counted for itself.
func TestRunsAtOnceAreBilledApart(t *testing.T) {
	p := newProvider(t)
	w := serving(t, t.TempDir(), "")
	w.run("small", p.tools(), "ada", "wait")
	many := make([]string, 300)
	for i := range many {
		many[i] = "x" + strings.Repeat("y", i)
	}
	w.run("large", p.tools(), many...)
	w.until("large", "completed")
	close(p.gate)
	w.until("small", "completed")
	units := func(id string) float64 {
		for _, l := range w.view(id).Bill.Lines {
			if l.Name == "DynamoDB writes" {
				return l.Quantity
			}
		}
		return 0
	}
	if small, large := units("small"), units("large"); small < 1 || large < 3*small {
		t.Errorf("2 rows took %v write units, 300 rows %v", small, large)
	}
}

// A server that is stopped while runs are at work, held or not begun goes on with them when it comes back.
func TestRunsGoOnWhenTheServerComesBack(t *testing.T) {
	p, dir := newProvider(t), t.TempDir()
	w := serving(t, dir, "")
	w.run("held", p.toolsOf("other"), "hold")
	w.run("busy", p.tools(), "bob", "wait1")
	w.run("done", p.tools(), "eve")
	w.until("held", "parked")
	w.until("done", "completed")
	eventually(t, "the call is under way", func() bool { return p.calls("wait1") == 1 })
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.park() }()
	time.Sleep(10 * time.Millisecond)
	close(p.gate) // calls under way come to their end
	<-stopped

	again := serving(t, dir, "")
	again.until("busy", "completed")
	if v := again.until("held", "parked"); v.Holds[0].Provider != "other" {
		t.Errorf("%+v", v)
	}
	for x, want := range map[string]int{"bob": 1, "wait1": 1, "eve": 1, "hold": 1} {
		if n := p.calls(x); n != want {
			t.Errorf("%s was asked for %d times", x, n)
		}
	}
}

// A second server over the same state leaves the runs of the first alone, and takes them up when that one has gone.
func TestX2OneServerWorksOnARun(t *testing.T) {
	p, dir := newProvider(t), t.TempDir()
	one := serving(t, dir, "")
	one.run("busy", p.tools(), "wait1")
	one.run("held", p.toolsOf("other"), "hold")
	eventually(t, "the call is under way", func() bool { return p.calls("wait1") == 1 })
	one.until("held", "parked")
	two := serving(t, dir, "")
	if v := two.view("busy"); v.Status != "running" {
		t.Errorf("%+v", v)
	}
	if _, err := two.client().Pause(t.Context(), "held", "not now"); err != nil {
		t.Fatal(err)
	}
	if v := two.until("held", "paused"); v.Pause.Reason != "not now" {
		t.Errorf("%+v", v)
	}
	if _, err := two.client().Resume(t.Context(), "held", nil); err != nil { // the first one has let go of it
		t.Fatal(err)
	}
	two.until("held", "parked")
	close(p.gate)
	one.until("busy", "completed")
	one.kill()
	one.end()
	for x, want := range map[string]int{"wait1": 1, "hold": 1} {
		if n := p.calls(x); n != want {
			t.Errorf("%s was asked for %d times", x, n)
		}
	}
}

func TestPausedRunsStayPausedAndCancelledOnesEnd(t *testing.T) {
	p, dir := newProvider(t), t.TempDir()
	w := serving(t, dir, "")
	for _, id := range []string{"r1", "r2", "r3"} {
		w.run(id, p.tools(), "hold")
		w.until(id, "parked")
	}
	for _, id := range []string{"r1", "r2"} {
		if _, err := w.client().Pause(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		w.until(id, "paused")
	}
	if _, err := w.client().Pause(t.Context(), "r1", "again"); err != nil { // it is paused already
		t.Fatal(err)
	}
	if _, err := w.client().Cancel(t.Context(), "r3"); err != nil {
		t.Fatal(err)
	}
	w.until("r3", "cancelled")
	w.park()
	w = serving(t, dir, "")
	if _, err := w.client().Cancel(t.Context(), "r2"); err != nil {
		t.Fatal(err)
	}
	w.until("r2", "cancelled")
	if v := w.view("r1"); v.Status != "paused" {
		t.Errorf("%+v", v)
	}
	if _, err := w.client().Resume(t.Context(), "r1", nil); err != nil {
		t.Fatal(err)
	}
	w.until("r1", "parked") // the provider's hold is not over
	if _, err := w.client().Pause(t.Context(), "r3", ""); client.Code(err) != "ENDED" {
		t.Errorf("%v", err)
	}
}

func TestAnInputThatCannotBeReadEndsTheRun(t *testing.T) {
	p := newProvider(t)
	w := serving(t, t.TempDir(), "")
	name := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(name, []byte("x\n\"ada\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	key, err := w.client().Upload(t.Context(), file, "in.csv")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client().Start(t.Context(), start.Request{Run: "r", Map: mapText, Tools: p.tools(), Upload: key}); err != nil {
		t.Fatal(err)
	}
	if v := w.until("r", "failed"); !strings.Contains(v.Error, "in.csv:2:1") {
		t.Errorf("%q", v.Error)
	}
}

// A run whose secrets this machine does not have is refused before anything is written.
func TestASecretThatIsMissingRefusesTheRun(t *testing.T) {
	p := newProvider(t)
	w := serving(t, t.TempDir(), "")
	_, err := w.client().Start(t.Context(), start.Request{Run: "r", Map: mapText, Tools: strings.ReplaceAll(p.tools(), "env:ACME", "env:OTHER"), Rows: rowsOf("a")})
	if client.Code(err) != "BAD_REQUEST" || !strings.Contains(err.Error(), "provider acme: env:OTHER is not set") {
		t.Errorf("%v", err)
	}
	if _, err := w.client().Run(t.Context(), "r"); client.Code(err) != "NOT_FOUND" {
		t.Errorf("%v", err)
	}
}

// Failed rows are run again, and no others.
func TestX4FailedRowsAreRunAgain(t *testing.T) {
	p := newProvider(t)
	w := serving(t, t.TempDir(), "")
	w.run("r", p.tools(), "ada", "bad")
	if v := w.until("r", "completed"); v.Failed != 1 {
		t.Fatalf("%+v", v)
	}
	if _, err := w.client().Retry(t.Context(), "r", api.RetryRequest{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it was asked again", func() bool { return p.calls("bad") == 2 })
	if v := w.until("r", "completed"); v.Failed != 1 || v.Completed != 1 || p.calls("ada") != 1 {
		t.Errorf("%+v, %d calls", v, p.calls("ada"))
	}
	w.run("good", p.tools(), "ada")
	w.until("good", "completed")
	if _, err := w.client().Retry(t.Context(), "good", api.RetryRequest{}); client.Code(err) != "ENDED" {
		t.Errorf("%v", err)
	}
}
