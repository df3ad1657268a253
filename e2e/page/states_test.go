package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// runPage is the address of a run's page.
func (s *site) runPage(id string) string { return s.URL + "#/runs/" + id }

func TestAListSaysHowEachRunStands(t *testing.T) {
	w := newWorld(t)
	w.completed("clean", 3)
	if err := w.end(w.drive(w.started("mixed", mapText, "x", "ok1", "fail2", "ok3", "fail4"))); err != nil {
		t.Fatal(err)
	}
	w.park(w.drive(w.started("parked", mapText, "x", "ok1", "hold2", "hold3")))
	w.gate.keep()
	w.drive(w.started("working", mapText, "x", "ok1", "wait2", "wait3"))
	defer w.gate.open()
	s := newSite(t, "/v1", w.api)
	b := newTab(t)
	b.open(s.URL)
	line := func(id string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("table.runs tbody tr")].find((tr) => tr.querySelector("a").textContent === %s)?.innerText.replace(/\s+/g, " ") ?? ""`, quoted(id))
	}
	for id, wants := range map[string][]string{
		"clean":   {"completed", "3 of 3", "0.03", "ended"},
		"mixed":   {"completed", "4 of 4", " 2 ", "0.02"},
		"parked":  {"parked", "1 of 3", "goes on in ", " min "},
		"working": {"running", "of 3"},
	} {
		b.until("the run "+id, line(id))
		text := eval[string](b, line(id))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q lacks %q", id, text, want)
			}
		}
	}
	b.until("progress of the run at work", line("working")+`.includes("1 of 3")`)
	b.picture("list")
	b.click(`a[href="#/runs/mixed"]`)
	b.sees("h1", "mixed")
	b.do(chromedp.NavigateBack())
	b.sees("h1", "Runs")
	b.quiet(s.URL)
}

// A run is watched from its first rows to its end, without the reader doing anything.
func TestARunIsWatchedToItsEnd(t *testing.T) {
	w := newWorld(t)
	w.gate.keep()
	w.drive(w.started("monday", mapText, "x", "ok1", "ok2", "fail3", "wait4"))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".head .badge", "running")
	b.sees(".figures", "3 of 4 rows (75%)")
	b.sees(".l-completed", "2")
	b.until("the title", `document.title === "75% · monday · Sluice"`)
	b.gone("#do-download")
	b.gone("#do-retry")
	marked := eval[bool](b, `(document.querySelector(".head .badge").dataset.mark = "same", document.querySelector("table.rows tbody tr").dataset.mark = "same", true)`)
	w.gate.open()
	b.sees(".head .badge", "completed")
	b.sees(".figures", "4 of 4 rows (100%)")
	b.sees(".notice", "1 row of 4 failed")
	b.sees("#do-download", "Download")
	b.sees("table.rows", "fail3")
	b.sees("table.rows td.bad", "company: HTTP_422: acme answered 422")
	b.until("rows that are read again at the end", `document.querySelectorAll("table.rows tbody .s-completed").length === 3`)
	if !marked || !eval[bool](b, `document.querySelector(".head .badge").dataset.mark === "same" && document.querySelector("table.rows tbody tr").dataset.mark === "same"`) {
		t.Error("a refresh made the page anew, instead of changing what has changed")
	}
	b.until("the end is read out", `document.getElementById("announcer").textContent === "Run monday is completed."`)
	b.picture("end")
	b.quiet(s.URL)
}

func TestAParkedRunSaysWhatItWaitsForAndUntilWhen(t *testing.T) {
	w := newWorld(t)
	w.park(w.drive(w.started("monday", mapText, "x", "ok1", "hold2", "hold3")))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".notice", "Everything that is left has to wait, and all results are saved. The run goes on by itself")
	b.until("the time left", `/\(in (19|20) min \d+ s\)/.test(document.querySelector(".notice").textContent)`)
	b.sees("table.held", "beta")
	until := eval[string](b, `document.querySelector("table.held time").dateTime`)
	at, err := time.Parse(time.RFC3339, until)
	if left := time.Until(at); err != nil || left < 18*time.Minute || left > 21*time.Minute {
		t.Errorf("held until %s, %v", until, err)
	}
	if got := eval[string](b, `document.querySelector("table.held tbody tr").lastElementChild.textContent`); got != "2" {
		t.Errorf("%s rows are held", got)
	}
	b.sees("table.rows .badge", "held")
	before := b.text(".notice")
	b.until("the countdown", fmt.Sprintf(`document.querySelector(".notice").innerText !== %s`, quoted(before)))
	b.picture("parked")
	b.quiet(s.URL)
}

func TestARunIsPausedResumedAndCancelled(t *testing.T) {
	w := newWorld(t)
	w.park(w.drive(w.started("monday", mapText, "x", "ok1", "hold2")))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.click("#do-pause")
	b.sees(".head .badge", "paused")
	b.sees(".notice", "goes on when it is resumed")
	b.picture("paused")
	b.click("#do-resume")
	b.until("it goes on", `/running|parked/.test(document.querySelector(".head .badge").textContent)`)
	b.sees("#do-pause", "Pause")

	b.click("#do-cancel")
	b.sees("dialog", "can be resumed")
	b.picture("asked")
	b.keys("\x1b")
	b.gone("dialog")
	if got := eval[string](b, `document.activeElement.id`); got != "do-cancel" {
		t.Errorf("after the dialog the focus is on %q", got)
	}
	b.click("#do-cancel")
	b.click("dialog button.danger")
	b.sees(".head .badge", "cancelled")
	b.gone("#do-cancel")
	b.gone("#do-download")
	b.sees("table.rows .badge", "completed")
	b.picture("cancelled")
	b.quiet(s.URL)
}

func TestARunThatFailedSaysWhy(t *testing.T) {
	w := newWorld(t)
	job := w.started("monday", mapText, "x", "ok1")
	if err := job.Fail(t.Context(), w.st, errorText("page 3 <b>is</b> missing")); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".notice.n-bad", "page 3 <b>is</b> missing")
	b.gone("#do-download")
	b.open(s.runPage("nobody"))
	b.sees("#trouble", "no such run")
	b.quiet(s.URL)
}

type errorText string

func (e errorText) Error() string { return string(e) }
