package page

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// Ten thousand rows are gone through a page at a time, and the way back is the browser's own.
func TestTenThousandRowsArePaged(t *testing.T) {
	w := newWorld(t)
	const text = `
version: 1
columns:
  - {name: double, value: "${int(row.x) * 2}"}
  - {name: checked, value: "${int(row.x) % 1000 == 999 ? int(row.x + 'x') : 1}"}
`
	lines := []string{"x"}
	for i := range 10_000 {
		lines = append(lines, fmt.Sprint(i))
	}
	if err := w.end(w.drive(w.started("monday", text, lines...))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	rows := func(first, last, number int) {
		t.Helper()
		b.until(fmt.Sprintf("rows %d to %d", first, last), fmt.Sprintf(
			`(() => { const n = [...document.querySelectorAll("table.rows button.row-number")].map((b) => Number(b.textContent.replaceAll(",", ""))); return n[0] === %d && n.at(-1) === %d && n.length === %d; })()`,
			first, last, number))
	}
	rows(1, 50, 50)
	b.click("#rows-next")
	rows(51, 100, 50)
	b.sees(".where", "rows 51 to 100")
	b.sees("table.rows", "198") // twice the input of row 100, which is 99
	b.click("#rows-next")
	rows(101, 150, 50)
	b.do(chromedp.NavigateBack())
	rows(51, 100, 50)
	b.do(chromedp.Reload())
	rows(51, 100, 50)
	b.click("#rows-first")
	rows(1, 50, 50)

	b.click(".tabs a:nth-child(2)") // failed: every thousandth
	rows(1000, 10_000, 10)
	b.sees("table.rows td.bad", "checked: ")
	b.gone("#rows-next")
	b.picture("failed")
	b.click(".tabs a:nth-child(3)")
	b.sees(".rows-card .empty", "No rows are held.")

	// Each page that was asked for is a question of its own, and none asks for more than it shows.
	for _, r := range s.requests() {
		if r.URL.Path == "/runs/monday/rows" && r.URL.Query().Get("limit") != "50" {
			t.Errorf("%s", r.URL)
		}
	}
	b.quiet(s.URL)
}
