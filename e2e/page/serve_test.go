package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var program struct {
	once sync.Once
	path string
	err  error
}

// sluice is the built program.
func sluice(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		dir, err := os.MkdirTemp("", "sluice-page") //nolint:usetesting // for all tests; TestMain removes it
		if err == nil {
			program.path = filepath.Join(dir, "sluice")
			var out []byte
			if out, err = exec.Command("go", "build", "-o", program.path, "sluice/cmd/sluice").CombinedOutput(); err != nil {
				t.Log(string(out))
			}
		}
		program.err = err
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// served is `sluice serve` over a state folder.
type served struct {
	t   *testing.T
	cmd *exec.Cmd
	URL string
}

func serve(t *testing.T, state, addr string, env ...string) *served {
	t.Helper()
	cmd := exec.Command(sluice(t), "serve", "--addr", addr, "--state", state)
	cmd.Env = append(os.Environ(), env...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, cmd: cmd}
	t.Cleanup(s.kill)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if m := regexp.MustCompile(`serving (http://\S+),`).FindStringSubmatch(lines.Text()); m != nil {
			s.URL = m[1] + "/"
			break
		}
	}
	if s.URL == "" {
		t.Fatal("sluice serve does not say where it is: ", lines.Text())
	}
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	return s
}

// kill is what a power cut does.
func (s *served) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// start begins a run of two columns by the API.
func (s *served) start(id, provider, key string, rows ...string) {
	s.t.Helper()
	var objects []map[string]string
	for _, x := range rows {
		objects = append(objects, map[string]string{"x": x})
	}
	s.post(key, map[string]any{
		"run": id, "rows": objects,
		"map":   "version: 1\nname: upper\ncolumns:\n  - {name: answer, call: acme.up, with: {x: \"${row.x}\"}}\n",
		"tools": "version: 1\nproviders: {acme: {url: \"" + provider + "\", allowPrivate: true, limits: [{rate: 1000, per: 1s}]}}\ntools: {acme.up: {path: \"/up/{x}\", input: {x: string}}}\n",
	})
}

// post asks for a run.
func (s *served) post(key string, run map[string]any) {
	s.t.Helper()
	body, err := json.Marshal(run)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+"runs", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		s.t.Fatal(res.Status)
	}
}

// upper answers with its input in capitals; inputs that begin with `wait` when the channel is closed.
func upper(t *testing.T, until <-chan struct{}) string {
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := strings.TrimPrefix(r.URL.Path, "/up/")
		if strings.HasPrefix(x, "wait") {
			select {
			case <-until:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(strings.ToUpper(x))
	}))
	t.Cleanup(p.Close)
	return p.URL
}

// The program itself: a run is started beside the open page, watched, survives the death of the server, and is downloaded.
func TestARunOfSluiceServeIsWatchedOverAKillAndDownloaded(t *testing.T) {
	state, release := filepath.Join(t.TempDir(), "state"), make(chan struct{})
	provider := upper(t, release)
	s := serve(t, state, "127.0.0.1:0")
	b := newTab(t)
	b.open(s.URL)
	b.sees(".empty", "There are no runs yet.")
	s.start("monday", provider, "", "ada", "wait-bob")
	b.sees("table.runs", "monday")
	b.click(`a[href="#/runs/monday"]`)
	b.sees(".figures", "1 of 2 rows (50%)")
	b.click(`.top nav a[href="#/providers"]`)
	b.sees("table.providers", "acme")
	b.sees("table.providers", "of 1,000 per second")
	b.picture("providers")
	b.do(chromedp.NavigateBack())

	s.kill()
	b.sees("#trouble", "The server cannot be reached.")
	close(release)
	serve(t, state, strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/"))
	b.sees(".head .badge", "completed")
	b.gone("#trouble")
	b.sees("table.rows", "WAIT-BOB")

	dir := t.TempDir()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID, DownloadPath: dir,
		})
		return err
	}))
	b.click("#do-download")
	file := filepath.Join(dir, "monday.csv")
	b.untilGo("the table", func() bool { _, err := os.Stat(file); return err == nil })
	got, err := os.ReadFile(file)
	if want := "x,answer\nada,ADA\nwait-bob,WAIT-BOB\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	b.quiet(s.URL)
}

// A server that other machines can reach asks for its key, as a deployment does.
func TestSluiceServeWithAKeyIsAskedForIt(t *testing.T) {
	const key = "0123456789abcdef-key"
	s := serve(t, filepath.Join(t.TempDir(), "state"), "127.0.0.1:0", "SLUICE_SERVE_KEY="+key)
	s.start("monday", upper(t, nil), key, "ada")
	b := newTab(t)
	b.open(s.URL)
	b.sees("h1", "asks for its key")
	b.keys(key + kb.Enter)
	b.sees("table.runs", "monday")
	b.quiet(s.URL)
}

// A page of another site cannot make the browser of this machine cancel a run.
func TestAForeignPageCannotAct(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "state"), "127.0.0.1:0")
	release := make(chan struct{})
	defer close(release)
	s.start("monday", upper(t, release), "", "wait-ada")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>evil</title>"))
	}))
	defer evil.Close()
	b := newTab(t)
	b.open(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)) // another site
	for _, options := range []string{
		`{method: "POST", mode: "no-cors"}`,
		`{method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: "{}"}`,
		`{method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}`,
	} {
		_ = eval[string](b, `fetch(`+quoted(s.URL+"runs/monday/cancel")+`, `+options+`).then((r) => r.type, (e) => String(e))`)
	}
	read := eval[string](b, `fetch(`+quoted(s.URL+"runs")+`).then((r) => r.text(), (e) => "refused")`)
	if read != "refused" {
		t.Errorf("a foreign page reads %q", read)
	}
	framed := eval[bool](b, `new Promise((done) => { const f = document.createElement("iframe"); f.onload = () => { try { done(f.contentDocument !== null && f.contentDocument.title === "Sluice"); } catch { done(false); } }; f.src = `+quoted(s.URL)+`; document.body.append(f); })`)
	if framed {
		t.Error("the page lets itself be framed")
	}
	own := newTab(t)
	own.open(s.URL)
	own.sees("table.runs", "monday")
	time.Sleep(1500 * time.Millisecond) // a cancellation is heard within a second
	if text := own.text("table.runs tbody"); !strings.Contains(text, "running") {
		t.Errorf("the run is no longer at work: %s", text)
	}
}

// What a provider really says, and what its limits are, comes through to the page: the gateway, the pacer, the engine and the store
// all pass the reason on.
func TestSluiceServeSaysWhyRowsWait(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/asks":
			w.Header().Set("Retry-After", "1200")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/silent":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/down":
			w.Header().Set("Retry-After", "900")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`"yes"`))
		}
	}))
	defer provider.Close()
	var columns, providers, tools strings.Builder
	var objects []map[string]string
	for _, name := range []string{"asks", "silent", "down", "limited"} {
		limits := "{rate: 1000, per: 1s}"
		if name == "limited" {
			limits = "{rate: 1, per: 1h}"
			objects = append(objects, map[string]string{"x": name, "n": "1"})
		}
		objects = append(objects, map[string]string{"x": name, "n": "2"})
		fmt.Fprintf(&columns, "  - {name: %s, call: %s.get, with: {n: \"${row.n}\"}, when: \"${row.x == '%s'}\"}\n", name, name, name)
		fmt.Fprintf(&providers, "  %s: {url: %q, allowPrivate: true, cooldown: 10m, limits: [%s]}\n", name, provider.URL, limits)
		fmt.Fprintf(&tools, "  %s.get: {path: /%s, query: {n: \"${input.n}\"}, input: {n: string}}\n", name, name)
	}
	s := serve(t, filepath.Join(t.TempDir(), "state"), "127.0.0.1:0")
	s.post("", map[string]any{"run": "monday", "rows": objects,
		"map":   "version: 1\ncolumns:\n" + columns.String(),
		"tools": "version: 1\nproviders:\n" + providers.String() + "tools:\n" + tools.String()})
	b := newTab(t)
	b.open(s.URL + "#/runs/monday")
	b.sees(".head .badge", "parked")
	said := map[string]string{
		"asks": "it answered 429 and asked to wait", "silent": "it answered 429 and did not say how long to wait",
		"down": "it answered 503 and asked to wait", "limited": "as many calls as its limits allow have been made",
	}
	for name, words := range said {
		b.sees("table.held tr", name)
		b.until(name+" with its reason", fmt.Sprintf(`[...document.querySelectorAll("table.held tbody tr")].some((tr) => tr.children[0].textContent === %s && tr.children[2].textContent.startsWith(%s))`, quoted(name), quoted(words)))
		b.sees("table.rows td.wide", words)
	}
	b.looks("reasons")
	b.click(`.top nav a[href="#/providers"]`)
	for _, name := range []string{"asks", "silent", "down"} {
		b.until(name+" among the providers", fmt.Sprintf(`[...document.querySelectorAll("table.providers tbody tr")].some((tr) => tr.children[0].textContent.startsWith(%s) && tr.children[2].textContent.includes(%s))`, quoted(name), quoted(said[name])))
	}
	b.quiet(s.URL)
}
