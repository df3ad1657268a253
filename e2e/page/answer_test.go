package page

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"sluice/internal/core/run"
)

const askingMap = `
version: 1
name: approvals
columns:
  - name: approved
    event: {key: "approve-${row.x}", expires: 72h, onTimeout: {value: false}}
  - name: rest
    sleep: 2h
    when: ${row.x == "sleeper"}
`

// What rows wait for is seen, answered, and goes on: with the answer that was given first.
func TestARowThatWaitsIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.park(w.drive(w.started("monday", askingMap, "x", "ada", "<b>bob</b>", "eve")))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".others", "3 rows wait for an answer.")
	b.sees(".notice", "The run goes on with an answer, or by itself")
	b.click(".others a")
	b.sees("table.rows", "approved: waits for an answer to approve-<b>bob</b>, until")
	b.picture("waiting")

	b.click(`button[aria-label="Answer approve-<b>bob</b>"]`)
	b.sees("dialog", "Row 2 waits in approved for an answer to approve-<b>bob</b>.")
	b.keys(kb.Escape)
	b.gone("dialog")
	b.click(`button[aria-label="Answer approve-<b>bob</b>"]`)
	b.sees("dialog", "The first answer counts")
	b.keys(`{"by": "<i>me</i>"}`)
	b.picture("answering")
	b.click("dialog button.primary")
	b.gone("dialog")
	b.until("it is read out", `document.getElementById("announcer").textContent === "1 row goes on with the answer."`)
	b.sees(".figures", "1 of 3 rows")
	b.sees(".others", "2 rows wait for an answer.")

	// Somebody else was faster.
	if _, err := run.Answer(t.Context(), w.st, "approve-ada", json.RawMessage(`true`), run.Whose{}); err != nil {
		t.Fatal(err)
	}
	b.click(`button[aria-label="Answer approve-ada"]`)
	b.keys("false")
	b.click("dialog button.primary")
	b.until("either is told", `/already|no longer|There was an answer|NOBODY|nobody/.test(document.getElementById("announcer").textContent + (document.querySelector("dialog .error")?.textContent ?? ""))`)
	b.keys(kb.Escape)
	b.gone("dialog")
	b.sees(".figures", "2 of 3 rows")

	b.click(".tabs a:first-child")
	b.do(chromedp.Reload())
	b.sees("table.rows", `{"by":"<i>me</i>"}`)
	b.until("the first answer stands", `[...document.querySelectorAll("table.rows tbody")][0].textContent.includes("true")`)
	b.click(`button[aria-label="Answer approve-eve"]`)
	b.keys("not JSON, a text")
	b.click("dialog button.primary")
	b.sees(".head .badge", "completed")
	b.sees("table.rows", "not JSON, a text")
	b.gone(".waits")
	nothingRan(b, s.URL)
}

func TestFailedRowsAreRetried(t *testing.T) {
	w := newWorld(t)
	if err := w.end(w.drive(w.started("monday", mapText, "x", "ok1", "once2", "fail3"))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".notice", "2 rows of 3 failed")
	b.click("#do-retry")
	b.sees("dialog", "2 rows are run again from the call that failed")
	b.picture("asked")
	b.click("dialog button.primary")
	b.sees(".notice", "1 row of 3 failed")
	b.sees(".head .badge", "completed")
	b.until("the rows are read again", `document.querySelectorAll("table.rows tbody .s-completed").length === 2`)
	b.quiet(s.URL)
}

// A run whose budget is spent says so, and goes on with a greater one.
func TestABudgetIsRaised(t *testing.T) {
	w := newWorld(t)
	if err := w.end(w.drive(w.started("monday", mapText+"budget: {calls: 2}\nconcurrency: 1\n", "x", "ok1", "ok2", "ok3", "ok4"))); err == nil {
		t.Fatal("the budget stopped nothing")
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".head .badge", "paused")
	b.sees(".notice", "Paused: the budget of 2 calls is spent; raise it to go on.")
	b.sees(".budget", "2 of 2 calls")
	b.looks("spent")
	b.click("#do-resume")
	b.sees("dialog", "Its budget is spent.")
	b.until("the bounds as they are", `document.querySelector("#dialog-field-0").placeholder === "as it is: 2" && document.querySelector("#dialog-field-1").placeholder === "not bounded"`)
	b.keys("a lot" + kb.Enter)
	b.sees("dialog .error", "a number above 0")
	b.picture("raising")
	b.do(chromedp.SetValue(chromedp.CSS("#dialog-field-0"), "100"))
	b.click("dialog button.primary")
	b.sees(".head .badge", "completed")
	b.sees(".figures", "4 of 4 rows (100%)")
	b.sees(".budget", "4 of 100 calls")
	b.quiet(s.URL)
}

// What is done at the end of a run is told, with what went wrong, and what was published can be fetched.
func TestTheStepsAtTheEndAreTold(t *testing.T) {
	w := newWorld(t)
	if err := w.end(w.drive(w.started("monday", mapText+`
finish:
  - {call: acme.get, with: {x: "fail <b>now</b>"}}
  - publish: {name: report.txt, public: false, content: "done"}
`, "x", "ok1"))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".head .badge", "completed")
	b.sees(".notice.n-warn", "of the steps at the end of the run, some failed")
	b.sees("table.finish", "acme.get")
	b.sees("table.finish", "HTTP_422: acme answered 422 Unprocessable Entity: fail <b>now</b>")
	b.sees("table.finish", "publish report.txt")
	b.sees("table.finish button", "Download")
	b.picture("steps")
	nothingRan(b, s.URL)
}

// Rows of which nobody knows whether their call was executed are repaired from the page: the call is made again, or taken for
// executed with a value, and neither happens unasked.
func TestUnknownOutcomesAreRepaired(t *testing.T) {
	w := newWorld(t)
	kept := strings.Replace(mapText, `call: acme.get, with: {x: "${row.x}"}}`, `call: acme.get, with: {x: "${row.x}"}, result: "${result.name}"}`, 1)
	for _, id := range []string{"again", "taken"} {
		if err := w.end(w.drive(w.started(id, kept, "x", "ok1", "lost-"+id))); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("again"))
	b.sees("table.rows td.bad", "OUTCOME_UNKNOWN")
	b.click(`button[aria-label="Row 2: show all of it"]`)
	b.sees(".row-detail", "Nobody knows whether this call was executed")
	b.picture("detail")
	b.click("#do-retry")
	b.looks("asked")
	b.click("dialog button.primary") // as it stands, nothing is done about them
	b.gone("dialog")
	b.until("it is over again", `document.querySelector(".head .badge").textContent === "completed" && document.querySelector(".notice").textContent.includes("1 row of 2 failed")`)
	b.click("#do-retry")
	b.choose("#dialog-field-0", "repeat")
	b.click("dialog button.primary")
	b.sees(".notice.n-good", "Every row is complete.")
	b.sees("table.rows", "lost-again")

	b.open(s.runPage("taken"))
	b.click("#do-retry")
	b.gone("#dialog-field-1")
	b.choose("#dialog-field-0", "accept")
	b.do(chromedp.SetValue(chromedp.CSS("#dialog-field-1"), "sent"))
	b.looks("taken")
	b.click("dialog button.primary")
	b.sees("dialog .error", "the value is JSON")
	b.do(chromedp.SetValue(chromedp.CSS("#dialog-field-1"), "9007199254740993")) // a double would round it
	b.click("dialog button.primary")
	b.sees(".notice.n-good", "Every row is complete.")
	b.sees("table.rows", "9007199254740993")
	nothingRan(b, s.URL)
}
