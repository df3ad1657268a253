package laptop

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/providersim"
)

// The message at the end of a run meets an outage, the process is killed while it waits, and when the wait is over the
// outage has grown: the message is sent once, after the table was there and the report before the run was complete.
func TestH9FinishThroughTwoOutagesAndAKill(t *testing.T) {
	t.Parallel()
	const first, second = 8 * time.Second, 16 * time.Second // after the first announcement
	d := newDesk(t)
	sim := d.simulate(providersim.Demo())
	d.write("tools.yaml", strings.ReplaceAll(read(t, filepath.Join(examples, "report.tools.yaml")), "http://127.0.0.1:8089", sim.url))
	d.write("report.map.yaml", read(t, filepath.Join(examples, "report.map.yaml")))
	d.write("leads.csv", read(t, filepath.Join(examples, "leads.csv")))

	sim.post("/_control/outage", `{"provider": "chat", "seconds": 8}`)
	began := time.Now()
	p := d.sluice("run", "report.map.yaml", "--tools", "tools.yaml", "--in", "leads.csv", "--out", "clean.csv", "--run", "report")
	eventually(t, first, "the run waits with its table written", func() bool { return strings.Contains(p.err.String(), "finishing: parked until ") })
	table := d.read("clean.csv")
	if lines := strings.Count(table, "\n"); lines != 627 {
		t.Errorf("%d lines while the message waits, want 626 contacts and a header", lines)
	}
	sim.post("/_control/outage", `{"provider": "chat", "seconds": 16}`)
	p.kill()

	p = d.sluice("resume", "report", "--json").want(0, second+time.Minute)
	if took := time.Since(began); took < second {
		t.Errorf("it ended after %v, in the middle of the outage", took)
	}
	chat := sim.report().Providers["chat"]
	if chat.Completed != 1 || chat.TooEarly != 0 || chat.Received != 3 {
		t.Errorf("the chat was asked %d times, %d times too early, and has %d messages", chat.Received, chat.TooEarly, chat.Completed)
	}
	told := 0
	for _, r := range sim.requests() {
		if r.Provider == "chat" && r.Status == 200 && strings.Contains(r.Request, "clean-leads: 626 contacts, 16 were entered twice") {
			told++
		}
	}
	var end struct {
		Status string
		Parks  int
		Finish []struct{ Call, Publish, Result, At string }
	}
	if err := json.Unmarshal(p.out.bytes(), &end); err != nil || end.Status != "completed" || len(end.Finish) != 2 || end.Parks < 2 || told != 1 {
		t.Fatalf("%v, told %d times, %s", err, told, p.out)
	}
	if step := end.Finish[0]; step.Call != "chat.post" || !strings.HasPrefix(step.Result, "m-") {
		t.Errorf("%+v", step)
	}
	if got := read(t, end.Finish[1].At); got != `{"contacts":626,"failed":0,"twice":16}`+"\n" || end.Finish[1].Publish != "summary.json" {
		t.Errorf("published %q", got)
	}
	if again := d.read("clean.csv"); again != table {
		t.Error("the table is another one than before the message")
	}
}
