package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for something to be seen.
const patience = 30 * time.Second

// tab is a page in the browser, and all that went on in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []*network.Request
	dialogs  []string
	problems []string // exceptions, and what the browser complains about: refusals of the policy are among it
}

// newTab opens an empty tab in a profile of its own.
func newTab(t *testing.T) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.heard); err != nil {
		t.Fatal(err)
	}
	b.do(command(network.Enable, network.EnableParams{}), command(page.Enable, page.EnableParams{}), command(log.Enable, cdp.Empty{}), chromedp.EmulateViewport(1200, 900))
	return b
}

func command[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cmd, params)
		return err
	})
}

func (b *tab) heard(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, ev.Request)
	case *page.EventJavascriptDialogOpening:
		b.dialogs = append(b.dialogs, ev.Message)
		go func() { // a dialog that stays open stops everything
			_ = chromedp.Do(b.ctx, command(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}))
		}()
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+ev.ExceptionDetails.Text+" "+ev.ExceptionDetails.URL)
	case *log.EventEntryAdded:
		if ev.Entry.Source != "network" { // answers that are errors are told there, too
			b.problems = append(b.problems, fmt.Sprintf("%s: %s", ev.Entry.Source, ev.Entry.Text))
		}
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(url string) { b.t.Helper(); b.do(chromedp.Navigate(url)) }

// eval returns what an expression comes to in the page, through JSON.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until the expression is true.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if eval[bool](b, "Boolean("+expression+")") {
			return
		}
		if time.Now().After(end) {
			b.picture("failed")
			b.t.Fatalf("%s: not seen within %s; the page says:\n%s", what, patience, b.text("body"))
		}
	}
}

// untilGo waits for something that this process knows.
func (b *tab) untilGo(what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// sees waits until the element has a text that contains the words.
func (b *tab) sees(selector, words string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%s with %q", selector, words), fmt.Sprintf(
		`[...document.querySelectorAll(%s)].some((node) => node.checkVisibility() && node.textContent.includes(%s))`, quoted(selector), quoted(words)))
}

// gone waits until nothing of the kind can be seen.
func (b *tab) gone(selector string) {
	b.t.Helper()
	b.until("no "+selector, fmt.Sprintf(`![...document.querySelectorAll(%s)].some((node) => node.checkVisibility())`, quoted(selector)))
}

// text is what a person reads of the first such element; empty if there is none.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`document.querySelector(%s)?.innerText ?? ""`, quoted(selector)))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// choose takes an option of a list, as a person does.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), value))
	_ = eval[bool](b, fmt.Sprintf(`document.querySelector(%s).dispatchEvent(new Event("change", { bubbles: true }))`, quoted(selector)))
}

func (b *tab) keys(text string) { b.t.Helper(); b.do(chromedp.KeyEvent(text)) }

// media sets what the system prefers, such as prefers-color-scheme: dark.
func (b *tab) media(name, value string) {
	b.t.Helper()
	b.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}}))
}

// asked are the paths that were requested, with their queries.
func (b *tab) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var paths []string
	for _, r := range b.requests {
		paths = append(paths, r.Method+" "+r.URL)
	}
	return paths
}

// quiet checks that nothing happened that should not: no dialog, no exception, no refusal of the policy, no request to
// anywhere but the site.
func (b *tab) quiet(site string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if !strings.HasPrefix(r.URL, site) {
			b.t.Errorf("a request to %.200s", r.URL)
		}
	}
	for _, d := range b.dialogs {
		b.t.Errorf("a dialog: %s", d)
	}
	for _, p := range b.problems {
		b.t.Errorf("the browser says: %s", p)
	}
}

// picture leaves a screenshot, if they are wanted.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("SLUICE_E2E_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// quoted is a text as a literal of JavaScript.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}
