package cloud

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/e2e/demo"
	"sluice/internal/providersim"
)

// providers are simulated, and served by the test.
type providers struct {
	t   *testing.T
	sim *providersim.Sim
	url string

	mu      sync.Mutex
	log     bytes.Buffer
	arrival func(*http.Request)
}

// onArrival has f see each request before it is answered.
func (p *providers) onArrival(f func(*http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrival = f
}

// ServeHTTP serves the simulator.
func (p *providers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	arrival := p.arrival
	p.mu.Unlock()
	if arrival != nil {
		arrival(r)
	}
	p.sim.Handler().ServeHTTP(w, r)
}

// Write takes the simulator's log.
func (p *providers) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// grace is how long after a provider's first refusal calls may still come: other processes learn of a hold within a
// second, and have their calls under way then.
const grace = 1500 * time.Millisecond

// simulate serves providers until the test ends.
func simulate(t *testing.T, list ...providersim.Provider) *providers {
	t.Helper()
	sim, err := providersim.New(providersim.Config{Providers: list, Grace: providersim.Duration(grace)})
	if err != nil {
		t.Fatal(err)
	}
	const here = "127.0.0.1"
	host := cmp.Or(os.Getenv("SLUICE_E2E_HOST"), here)
	at := here + ":0"
	if host != here { // functions in containers come from elsewhere
		at = ":0"
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	p := &providers{t: t, sim: sim, url: "http://" + net.JoinHostPort(host, port)}
	sim.LogTo(p)
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

// request is one line of the simulator's log.
type request struct {
	Time     time.Time
	Provider string
	Request  string
	Refusal  string
	Status   int
	Millis   int64
}

func (r request) end() time.Time { return r.Time.Add(time.Duration(r.Millis) * time.Millisecond) }

// requests are all requests so far, by their end.
func (p *providers) requests() (all []request) {
	p.t.Helper()
	p.mu.Lock()
	lines := json.NewDecoder(bytes.NewReader(bytes.Clone(p.log.Bytes())))
	p.mu.Unlock()
	for lines.More() {
		var r request
		if err := lines.Decode(&r); err != nil {
			p.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// times counts how often each of a provider's requests came.
func (p *providers) times(provider string) map[string]int {
	n := map[string]int{}
	for _, r := range p.requests() {
		if r.Provider == provider {
			n[r.Request]++
		}
	}
	return n
}

// verifies is the request for one address, as the log has it.
func verifies(provider, email string) string {
	return fmt.Sprintf(`POST /%s/verify {"email":%q}`, provider, email)
}

func (p *providers) report(provider string) providersim.ProviderReport {
	return p.sim.Report().Providers[provider]
}

// named makes a provider's name that no other test and no earlier run of the tests shares, since limits are
// shared by all runs that use a provider.
func named(test string) string { return test + "-" + unique }

// verifying is a run that asks a verifier once for each row. The provider's limit is declared.
func (p *providers) verifying(run, provider string, rate int, per time.Duration, rows []map[string]any) order {
	return order{Run: run, Rows: rows, Map: fmt.Sprintf(`version: 1
name: verify
key: email
columns:
  - {name: ok, call: %s.verify, with: {email: "${row.email}"}, onError: {value: refused}}
`, provider), Tools: fmt.Sprintf(`version: 1
providers:
  %[1]s: {url: "%[2]s/%[1]s", allowPrivate: true, limits: [{rate: %[3]d, per: %[4]v}]}
tools:
  %[1]s.verify: {method: POST, path: /verify, body: {email: "${input.email}"}, input: {email: string}, fence: Idempotency-Key, result: "${body.deliverable}"}
`, provider, p.url, rate, per)}
}

// people are rows with n addresses that no other test has.
func people(test string, n int) (rows []map[string]any) {
	for i := range n {
		rows = append(rows, map[string]any{"email": fmt.Sprintf("p%d@%s.example", i, test)})
	}
	return rows
}

// verified checks the table of such a run, in the order of its rows, against what the provider says when it is asked directly.
func (p *providers) verified(provider, table string, rows []map[string]any) {
	p.t.Helper()
	got := demo.Records(p.t, table)
	if len(got) != len(rows)+1 || strings.Join(got[0], ",") != "email,ok" {
		p.t.Fatalf("%d lines, want %d and a header; they begin %v", len(got), len(rows)+1, got[0])
	}
	var wg sync.WaitGroup
	for i, row := range rows {
		wg.Go(func() {
			email := row["email"].(string)
			if want := p.ask(provider, email); got[i+1][0] != email || got[i+1][1] != want {
				p.t.Errorf("row %d is %v, want %s,%s", i+1, got[i+1], email, want)
			}
		})
	}
	wg.Wait()
}

// ask asks the provider itself. It may have to wait for its turn, as everybody.
func (p *providers) ask(provider, email string) string {
	p.t.Helper()
	for {
		req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+"/"+provider+"/verify", strings.NewReader(`{"email":"`+email+`"}`))
		if err != nil {
			p.t.Fatal(err)
		}
		status, b := exchange(p.t, req)
		switch status {
		case http.StatusOK:
			var answer struct{ Deliverable bool }
			if err := json.Unmarshal(b, &answer); err != nil {
				p.t.Fatal(err)
			}
			return fmt.Sprint(answer.Deliverable)
		case http.StatusUnprocessableEntity:
			return "refused"
		}
		time.Sleep(100 * time.Millisecond)
	}
}
