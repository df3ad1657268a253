package page

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/pacer"
)

// looks takes a picture of the page as it is on a desk and on a phone.
func (b *tab) looks(name string) {
	b.t.Helper()
	b.picture(name + "-wide")
	b.do(chromedp.EmulateViewport(390, 800))
	if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		b.t.Errorf("%s: on a phone the page is %d pixels too wide", name, over)
	}
	b.picture(name + "-narrow")
	b.do(chromedp.EmulateViewport(1200, 900))
}

// What is held says until when and why: for the run by provider, and for each row.
func TestWhatIsHeldSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.park(w.drive(w.started("monday", mapText, "x", "ok1", "hold2", "hold3")))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees("table.held", "it answered 429 and asked to wait")
	b.sees("table.rows td.wide", "beta: not before")
	b.sees("table.rows td.wide", "; it answered 429 and asked to wait")
	b.looks("held")
	b.quiet(s.URL)
}

// A provider says what holds it, and what was found out about one that declares no limits.
func TestProvidersSayWhyTheyWaitAndWhatWasFoundOut(t *testing.T) {
	w := newWorld(t)
	p := pacer.New(w.st.Table, "one")
	minutes := []pacer.Rule{{Rate: 60, Per: time.Minute}}
	acquire := func(scope string, want pacer.Want) {
		if g, err := p.Acquire(t.Context(), scope, want); err != nil || len(g.Permits) == 0 {
			t.Fatal(g, err)
		}
	}
	report := func(scope string, o pacer.Observation) {
		o.Limited, o.Status, o.Dispatched = true, 429, time.Now()
		if _, err := p.Report(t.Context(), scope, o); err != nil {
			t.Fatal(err)
		}
	}
	acquire("asked-0123456789ab", pacer.Want{N: 3, Rules: minutes})
	report("asked-0123456789ab", pacer.Observation{Deadline: time.Now().Add(20 * time.Minute)})
	acquire("bare-0123456789ab", pacer.Want{N: 1, Rules: minutes})
	report("bare-0123456789ab", pacer.Observation{Cooldown: 10 * time.Minute})
	acquire("unknown-0123456789ab", pacer.Want{N: 1, Rules: minutes, Concurrency: 4, Adaptive: true})
	report("unknown-0123456789ab", pacer.Observation{Deadline: time.Now(), Adaptive: true, InFlight: 4, Start: 4})

	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL + "#/providers")
	b.sees("table.providers", "it answered 429 and asked to wait")
	b.sees("table.providers", "it answered 429 and did not say how long to wait")
	b.sees("table.providers", "1 refusal in a row")
	b.sees("table.providers .found", "Found out: 3 calls at once (4 were refused); more is tried in ")
	b.looks("providers")
	b.quiet(s.URL)
}

// Rows that are at work are counted, and those whose slice has ended in the middle.
func TestRowsAtWorkAndInterruptedOnesAreCounted(t *testing.T) {
	w := newWorld(t)
	w.gate.keep()
	w.lease = 3 * time.Second
	d := w.drive(w.started("monday", mapText, "x", "ok1", "wait2", "wait3"))
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.runPage("monday"))
	b.sees(".l-working dd", "2")
	b.click(`.tabs a[href="#/runs/monday?rows=working"]`)
	b.until("the rows at work", `document.querySelectorAll("table.rows tbody .s-working").length === 2`)
	b.gone(`.tabs a[href="#/runs/monday?rows=interrupted"]`)
	b.looks("working")

	d.kill()
	b.sees(".l-interrupted dd", "2")
	b.sees(".notice", "Nobody is at work on the run at the moment")
	b.click(`.tabs a[href="#/runs/monday?rows=interrupted"]`)
	b.until("the interrupted rows", `document.querySelectorAll("table.rows tbody .s-interrupted").length === 2`)
	b.looks("interrupted")
	w.gate.open()
	if err := w.end(w.drive(w.loaded("monday"))); err != nil {
		t.Fatal(err)
	}
	b.sees(".head .badge", "completed")
	b.gone(".l-interrupted")
	b.quiet(s.URL)
}

// Every reason that the API may give has words on the page, and what is no reason has none.
func TestThePageHasWordsForEveryReason(t *testing.T) {
	spec, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`enum: \[(retryAfter,[^\]]*)\]`).FindSubmatch(spec)
	if list == nil {
		t.Fatal("the documentation lists no reasons")
	}
	w := newWorld(t)
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	said := map[string]string{}
	for _, reason := range strings.Split(string(list[1]), ", ") {
		words := eval[string](b, fmt.Sprintf(`import("./page/why.js").then(({ why }) => why({ reason: %s, code: "HTTP_503" }))`, quoted(reason)))
		if before, twice := said[words]; twice || words == "" {
			t.Errorf("%s and %s are both %q", reason, before, words)
		}
		said[words] = reason
	}
	for _, reason := range []string{"toString", "constructor", "<b>", ""} {
		if words := eval[string](b, fmt.Sprintf(`import("./page/why.js").then(({ why }) => why({ reason: %s }))`, quoted(reason))); words != "" {
			t.Errorf("%q has the words %q", reason, words)
		}
	}
	b.quiet(s.URL)
}

// Of rows that go on one after the other the first and the last are told, and since when their provider has answered nothing.
func TestHoldsSayHowLongTheyLastAndHaveLasted(t *testing.T) {
	w := newWorld(t)
	s := newSite(t, "/", w.api)
	b := newTab(t)
	b.open(s.URL)
	got := eval[[]string](b, `import("./page/waits.js").then(({ waits }) => {
		const view = waits("r"), at = new Date(2026, 2, 1, 12, 0, 0);
		const after = (s) => new Date(at.getTime() + s * 1000).toISOString();
		view.update({ holds: [
			{ provider: "acme", scope: "acme-1", reason: "limit", until: after(60), last: after(600), since: after(-180), rows: 7, shards: 2 },
			{ provider: "retry", reason: "backoff", code: "TIMEOUT", until: after(9), last: after(10), rows: 0, shards: 1 },
		] });
		view.tick(at);
		return [...view.node.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => [...cell.querySelectorAll("bdi, time, .note, div > span:not(.note)")].map((n) => n.textContent).filter(Boolean).join(" / ")).join(" | "));
	})`)
	want := []string{
		"acme | 12:01:00, in 1 min 0 s / the last of them 12:10:00 | as many calls as its limits allow have been made / it has answered no call for 3 min 0 s | 7",
		"another attempt | 12:00:09, in 9 s | another attempt follows after TIMEOUT | –",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.quiet(s.URL)
}
