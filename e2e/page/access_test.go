package page

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// heardBy is what a screen reader has to say of the page: role and name of each node.
func (b *tab) heardBy() []string {
	b.t.Helper()
	tree, err := chromedp.Run(b.ctx, chromedp.Action[accessibility.GetFullAXTreeResult](func(ctx context.Context, t *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	}))
	if err != nil {
		b.t.Fatal(err)
	}
	var said []string
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil || node.Name == nil {
			continue
		}
		said = append(said, unquoted(b.t, node.Role.Value)+" "+unquoted(b.t, node.Name.Value))
	}
	return said
}

func unquoted(t *testing.T, value []byte) (s string) {
	t.Helper()
	if err := json.Unmarshal(value, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAScreenReaderHearsWhatIsThere(t *testing.T) {
	w := newWorld(t)
	w.park(w.drive(w.started("monday", mapText, "x", "ok1", "hold2", "fail3")))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	b.sees("table.runs", "monday")
	said := b.heardBy()
	for _, want := range []string{"heading Runs", "link monday", "columnheader Status", "rowheader monday", "link Providers"} {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("not heard: %s, in:\n%s", want, strings.Join(said, "\n"))
		}
	}
	b.open(s.runPage("monday"))
	b.sees("table.rows", "fail3")
	said = b.heardBy()
	for _, want := range []string{"heading monday", "progressbar Rows that have ended", "heading Waiting for", "table Waiting for", "heading Rows",
		"button Row 1: show all of it", "button Pause", "button Cancel …", "navigation Which rows", "columnheader Status"} {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("not heard: %s, in:\n%s", want, strings.Join(said, "\n"))
		}
	}
	// A status is a word, not a colour alone.
	if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "StaticText parked") }) {
		t.Error("the status is not heard")
	}
	for _, sel := range []string{"button", "a", "input", "table", "[role=region]"} {
		nameless := eval[int](b, fmt.Sprintf(`[...document.querySelectorAll(%s)].filter((n) => n.checkVisibility() && !n.getAttribute("aria-label") && !n.getAttribute("aria-labelledby") && !n.caption && !n.textContent.trim() && !n.labels?.length).length`, quoted(sel)))
		if nameless > 0 {
			t.Errorf("%d of %s have no name", nameless, sel)
		}
	}
}

// All that can be done can be done without a mouse, and a refresh does not take the focus away.
func TestAKeyboardIsEnough(t *testing.T) {
	w := newWorld(t)
	w.park(w.drive(w.started("monday", mapText, "x", "ok1", "hold2")))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	b.sees("table.runs", "monday")
	focused := func(what, expression string) {
		t.Helper()
		for range 30 {
			if eval[bool](b, "Boolean("+expression+")") {
				return
			}
			b.keys(kb.Tab)
		}
		t.Fatalf("the focus never reaches %s", what)
	}
	b.keys(kb.Tab)
	if got := eval[string](b, `document.activeElement.textContent`); got != "Skip to the content" {
		t.Errorf("first comes %q", got)
	}
	focused("the run", `document.activeElement.textContent === "monday"`)
	b.keys(kb.Enter)
	b.sees("h1", "monday")
	b.sees("table.rows", "hold2")
	focused("a row", `document.activeElement.className === "row-number"`)
	b.keys(kb.Enter)
	b.sees(".row-detail", "Input")
	polls := len(b.asked())
	b.untilGo("two more requests", func() bool { return len(b.asked()) >= polls+2 })
	if !eval[bool](b, `document.activeElement.className === "row-number" && document.activeElement.getAttribute("aria-expanded") === "true" && document.querySelector(".row-detail") !== null`) {
		t.Error("a refresh took the focus, or closed what was open")
	}
	b.click("#rows-again")
	b.untilGo("rows that are read again", func() bool {
		return slices.ContainsFunc(b.asked()[polls:], func(s string) bool { return strings.Contains(s, "/rows?") })
	})
	if !eval[bool](b, `document.querySelector(".row-number").getAttribute("aria-expanded") === "true" && document.querySelector(".row-detail") !== null`) {
		t.Error("reading the rows again closed what was open")
	}
	b.do(chromedp.Focus(chromedp.CSS("#do-cancel")))
	b.keys(kb.Enter)
	b.sees("dialog", "can be resumed")
	if got := eval[string](b, `document.activeElement.textContent`); got != "Back" {
		t.Errorf("the dialog begins at %q: Enter must not cancel a run", got)
	}
	b.keys(kb.Enter)
	b.gone("dialog")
	b.sees(".head .badge", "parked")
	b.quiet(s.URL)
}

// It is read in the dark, on a telephone, and where every third person reads.
func TestItIsReadInTheDarkAndOnATelephone(t *testing.T) {
	w := newWorld(t)
	w.park(w.drive(w.started("monday", mapText, "x", "ok1", "hold2", "fail3")))
	w.completed("tuesday-with-a-name-that-goes-on-and-on-and-on-and-on-and-on-and-on", 3)
	s := newSite(t, "/", w.api)
	b := newTab(t)
	for _, scheme := range []string{"light", "dark"} {
		b.media("prefers-color-scheme", scheme)
		for _, width := range []int64{360, 1200} {
			b.do(chromedp.EmulateViewport(width, 800))
			for name, url := range map[string]string{"list": s.URL, "run": s.runPage("monday"), "providers": s.URL + "#/providers"} {
				b.open(url)
				b.until("the page", `document.querySelector("table.runs:not([hidden]), .content:not([hidden]), #providers-title + p + .scroll + .empty:not([hidden])")`)
				if wide := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
					t.Errorf("%s at %d is %d too wide", name, width, wide)
				}
				for _, pair := range eval[[]string](b, contrasts) {
					t.Errorf("%s, %s: too little contrast: %s", name, scheme, pair)
				}
				b.picture(fmt.Sprintf("%s-%d-%s", name, width, scheme))
			}
		}
	}
	b.quiet(s.URL)
}

// contrasts finds texts whose contrast with what is behind them is below 4.5 (WCAG 2.2, 1.4.3).
const contrasts = `(() => {
  const parse = (c) => c.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const f = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = (n) => { for (; n; n = n.parentElement) { const c = parse(getComputedStyle(n).backgroundColor); if (c[3] === undefined || c[3] === 1) return c; } return [255, 255, 255]; };
  const bad = new Set();
  for (const n of document.querySelectorAll("body *")) {
    if (!n.checkVisibility() || ![...n.childNodes].some((c) => c.nodeType === 3 && c.data.trim()) || n.closest(".unseen, .skip, noscript")) continue;
    const [a, b] = [light(parse(getComputedStyle(n).color)), light(behind(n))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(n.tagName + "." + n.className + " " + ratio.toFixed(2) + " " + n.textContent.slice(0, 40));
  }
  return [...bad];
})()`
