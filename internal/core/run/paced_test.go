package run_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/pacer"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

// The whole engine with the real gateway and pacer; only the provider's site is played.

// site is a provider over HTTP. It notes when it was asked for what.
type site struct {
	t       *testing.T
	started time.Time
	latency time.Duration
	answer  func(path string, nth int) *gateway.Response // nth: how often this path was asked before; nil is 200

	mu    sync.Mutex
	asked []hit
	seen  map[string]int
}

type hit struct {
	path string
	at   time.Duration
}

func (s *site) Send(ctx context.Context, req *gateway.Request) (*gateway.Response, error) {
	path := req.URL[strings.Index(req.URL, ".example")+len(".example"):]
	s.mu.Lock()
	nth := s.seen[path]
	s.seen[path]++
	s.asked = append(s.asked, hit{path, time.Since(s.started)})
	s.mu.Unlock()
	select {
	case <-time.After(s.latency):
	case <-ctx.Done():
		return nil, &gateway.SendError{Code: "CANCELLED", Message: "cancelled", Sent: true}
	}
	if s.answer != nil {
		if res := s.answer(path, nth); res != nil {
			return res, nil
		}
	}
	return &gateway.Response{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"x":"` + path[1:] + `"}`)}, nil
}

func refusal(header ...string) *gateway.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &gateway.Response{Status: 429, Header: h}
}

func (s *site) hits() []hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]hit(nil), s.asked...)
}

// times is when the site was asked.
func (s *site) times() []time.Duration {
	var at []time.Duration
	for _, h := range s.hits() {
		at = append(at, h.at)
	}
	return at
}

// strict fails if any window of the given length saw more than rate requests.
func (s *site) strict(rate int, per time.Duration) {
	s.t.Helper()
	at := s.times()
	for i := rate; i < len(at); i++ {
		if d := at[i] - at[i-rate]; d < per {
			s.t.Fatalf("%d requests within %v, allowed are %d in %v", rate+1, d, rate, per)
		}
	}
}

// paced is a world with a site behind real gateways. Every process has a pacer of its own over the shared store.
type paced struct {
	*world
	site  *site
	tools string
	bulk  bool                            // as in the cloud
	wrap  func(call.Gateway) call.Gateway // nil: the gateway as it is
}

func newPaced(t *testing.T, tbl table.Table, provider string) *paced {
	return &paced{
		world: newWorld(t, tbl), site: &site{t: t, started: time.Now(), latency: 20 * time.Millisecond, seen: map[string]int{}},
		tools: "version: 1\nproviders:\n  a: {url: \"https://a.example\", " + provider + "}\n" +
			"tools:\n  a.get: {method: GET, path: \"/{x}\"}\n  a.post: {method: POST, path: \"/post\"}\n",
	}
}

func (p *paced) plan(id, mapText string, lines ...string) *run.Job {
	p.t.Helper()
	job, err := p.startOf(id, mapText, p.tools, lines...)
	if err != nil {
		p.t.Fatal(err)
	}
	return job
}

type noKeys struct{}

func (noKeys) Resolve(context.Context, string) (string, error) { return "", nil }

// process works slices to the end of the run, as one process does, and returns how often it parked.
func (p *paced) process(name string, job *run.Job) (parks int) {
	paces := pacer.New(p.tbl, name)
	paces.Bulk = p.bulk
	exec := gateway.New(gateway.Config{Catalogue: job.Tools, Sender: p.site, Secrets: noKeys{}, Pacer: paces})
	defer exec.Close(context.Background())
	for {
		ports := run.Ports{Store: p.st, Gateway: exec, Owner: name + itoa(parks)}
		if p.wrap != nil {
			ports.Gateway = p.wrap(exec)
		}
		res, err := job.Slice(p.t.Context(), ports, 0, p.settings)
		switch {
		case err != nil:
			p.t.Error(err)
			return parks
		case res.Outcome == run.Done:
			return parks
		case res.Outcome == run.Parked:
			parks++
		}
		time.Sleep(time.Until(res.WakeAt))
	}
}

func TestH17FiftyASecondForThreeThousandCalls(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 50, per: 1s}]")
		job := p.plan("r", callA, rows(3000)...)
		begun := time.Now()
		parks := p.process("one", job)
		if took := time.Since(begun); parks != 0 || took < 59*time.Second || took > 63*time.Second {
			t.Errorf("took %v with %d parks, want 60 s within 5 %%, and waiting for one's turn is no hold", took, parks)
		}
		p.site.strict(50, time.Second)
		if n := len(p.site.hits()); n != 3000 {
			t.Errorf("%d requests", n)
		}
		if s := p.checkpoint(job).Stats; s.Refused429 != 0 || s.Dispatched != 3000 || s.HeldMs != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestH17LongWindowIsUsedAsABurstAndParks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 600, per: 1m}]")
		job := p.plan("r", callA, rows(1200)...)
		begun := time.Now()
		parks := p.process("one", job)
		took := time.Since(begun)
		if parks != 1 || took < 60*time.Second || took > 64*time.Second {
			t.Errorf("took %v with %d parks, want two bursts a minute apart, and one park", took, parks)
		}
		at := p.site.times()
		if len(at) != 1200 || at[599] > 3*time.Second || at[1199]-at[600] > 3*time.Second {
			t.Errorf("%d requests; the bursts took %v and %v", len(at), at[599], at[len(at)-1]-at[len(at)/2])
		}
		p.site.strict(600, time.Minute)
	})
}

func TestH17TwoRunsShareOneLimit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 50, per: 1s}]")
		begun := time.Now()
		var wg sync.WaitGroup
		for _, id := range []string{"r1", "r2"} {
			job := p.plan(id, callA, rows(750)...)
			wg.Go(func() { p.process("process of "+id, job) })
		}
		wg.Wait()
		p.site.strict(50, time.Second)
		if took := time.Since(begun); took < 29*time.Second || took > 32*time.Second {
			t.Errorf("1,500 calls at 50/s took %v", took)
		}
	})
}

func TestH17SeveralRulesHoldTogether(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 20, per: 1s}, {rate: 100, per: 1m}]")
		p.process("one", p.plan("r", callA, rows(250)...))
		p.site.strict(20, time.Second)
		p.site.strict(100, time.Minute)
		if n := len(p.site.hits()); n != 250 {
			t.Errorf("%d requests", n)
		}
	})
}

// In every form in which a provider can say until when, the call is asked again then: not earlier, and soon after.
func TestH13RetryAfterIsAPointInTime(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for name, form := range map[string]func() (header, value string, wait time.Duration){
		"seconds":         func() (string, string, time.Duration) { return "Retry-After", "30", 30 * time.Second },
		"decimal seconds": func() (string, string, time.Duration) { return "Retry-After", "2.5", 2500 * time.Millisecond },
		"milliseconds":    func() (string, string, time.Duration) { return "Retry-After-Ms", "1500", 1500 * time.Millisecond },
		"IMF date": func() (string, string, time.Duration) {
			return "Retry-After", at(time.Minute).UTC().Format(http.TimeFormat), time.Minute
		},
		"RFC 850 date": func() (string, string, time.Duration) {
			return "Retry-After", at(time.Minute).UTC().Format("Monday, 02-Jan-06 15:04:05 GMT"), time.Minute
		},
		"asctime date": func() (string, string, time.Duration) {
			return "Retry-After", at(time.Minute).UTC().Format(time.ANSIC), time.Minute
		},
		"reset header": func() (string, string, time.Duration) { return "X-Reset", "1m30s", 90 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, tbl table.Table) {
				p := newPaced(t, tbl, "limits: [{rate: 1000, per: 1s}], resetHeaders: [x-reset]")
				var said, wait time.Duration
				p.site.answer = func(_ string, nth int) *gateway.Response {
					if nth > 0 {
						return nil
					}
					header, value, d := form()
					said, wait = time.Since(p.site.started), d
					return refusal(header, value)
				}
				p.process("one", p.plan("r", callA, rows(1)...))
				got := p.site.times()
				if len(got) != 2 || got[1]-said < wait-time.Second || got[1]-said > wait+time.Second {
					t.Errorf("asked at %v, the answer at %v said %v", got, said, wait)
				}
				if !strings.Contains(name, "date") && got[1]-said < wait { // dates have whole seconds
					t.Errorf("asked %v after an answer that said %v", got[1]-said, wait)
				}
			})
		})
	}
}

func TestH14BareRefusalCoolsDownLongerEachTime(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1000, per: 1s}], cooldown: 10s")
		p.site.answer = func(_ string, nth int) *gateway.Response {
			if nth < 3 {
				return refusal()
			}
			return nil
		}
		p.process("one", p.plan("r", callA, rows(1)...))
		at := p.site.times()
		if len(at) != 4 {
			t.Fatalf("asked at %v", at)
		}
		for i, base := range seconds(10, 20, 40) { // and up to a quarter of jitter
			if d := at[i+1] - at[i]; d < base || d > base*5/4+time.Second {
				t.Errorf("refusal %d was followed by %v, want %v and some jitter", i, d, base)
			}
		}
	})
}

// One answer says 30 s, a later one of the same moment says 5 s: nobody asks for 30 s, in neither run.
func TestH16HoldIsSharedAndOnlyMovesLater(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1000, per: 1s}]")
		p.site.answer = func(path string, nth int) *gateway.Response {
			switch {
			case path == "/r0" && nth == 0:
				return refusal("Retry-After", "30")
			case path == "/r1" && nth == 0:
				time.Sleep(10 * time.Millisecond)
				return refusal("Retry-After", "5")
			}
			return nil
		}
		first := p.plan("r1", callA, rows(2)...)
		second := p.plan("r2", callA, "x", "s0", "s1")
		var wg sync.WaitGroup
		wg.Go(func() { p.process("one", first) })
		wg.Go(func() { time.Sleep(time.Second); p.process("two", second) })
		wg.Wait()
		for _, h := range p.site.hits()[2:] {
			if h.at < 30*time.Second || h.at > 32*time.Second {
				t.Errorf("%s was asked for at %v, want at 30 s", h.path, h.at)
			}
		}
		if a, b := p.export(first), p.export(second); !strings.Contains(a, "r1,r1") || !strings.Contains(b, "s1,s1") {
			t.Errorf("got %q and %q", a, b)
		}
	})
}

// Rows in flight when the hold comes get their answers; of those that were not sent none is sent before its end.
func TestH16NothingIsDispatchedIntoAHold(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 20, per: 1s}]")
		p.site.answer = func(path string, nth int) *gateway.Response {
			if path == "/r30" && nth == 0 {
				return refusal("Retry-After", "40")
			}
			return nil
		}
		job := p.plan("r", callA, rows(100)...)
		parks := p.process("one", job)
		var said time.Duration
		for _, h := range p.site.hits() {
			if h.path == "/r30" && said == 0 {
				said = h.at + p.site.latency
			} else if said > 0 && h.at > said && h.at < said+40*time.Second {
				t.Errorf("%s was asked for %v into the hold", h.path, h.at-said)
			}
		}
		if n := len(p.site.hits()); n != 101 || parks == 0 {
			t.Errorf("%d requests and %d parks", n, parks)
		}
		if s := p.checkpoint(job).Stats; s.Refused429 != 1 {
			t.Errorf("%d refusals are counted, there was one", s.Refused429)
		}
		p.site.strict(20, time.Second)
	})
}

// A 429 says that nothing was done: even a call that must not be repeated blindly is made again.
func TestH15ProvidersRefusalIsRetriedWhateverTheTool(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1000, per: 1s}]")
		p.site.answer = func(_ string, nth int) *gateway.Response {
			if nth < 3 { // of three rows at once
				return refusal("Retry-After", "60")
			}
			return nil
		}
		job := p.plan("r", posting, rows(3)...)
		p.process("one", job)
		if got := p.export(job); strings.Contains(got, "failed") || len(p.site.hits()) != 6 {
			t.Errorf("%d requests, table %q", len(p.site.hits()), got)
		}
	})
}

// A 503 without a deadline, of a call that must not be repeated, is an unknown outcome; of one that may, it is a retry.
func TestT2OnlyRepeatableCallsAreSentAgain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1000, per: 1s}]")
		p.site.answer = func(_ string, nth int) *gateway.Response {
			if nth == 0 {
				return &gateway.Response{Status: 503}
			}
			return nil
		}
		posts, gets := p.plan("posts", posting, rows(1)...), p.plan("gets", callA, rows(1)...)
		p.process("one", posts)
		if got := p.export(posts); !strings.Contains(got, "OUTCOME_UNKNOWN") || len(p.site.hits()) != 1 {
			t.Errorf("%d requests, table %q", len(p.site.hits()), got)
		}
		p.process("two", gets)
		if got := p.export(gets); strings.Contains(got, "failed") || len(p.site.hits()) != 3 {
			t.Errorf("%d requests, table %q", len(p.site.hits()), got)
		}
	})
}

// A provider is out for three minutes and says so in small portions. Each slice stays for its 5 s at most, however many
// rows are left that have a budget of their own.
func TestQ3OutageInSmallPortionsParks(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 50, per: 1s}]")
		p.site.answer = func(string, int) *gateway.Response {
			if time.Since(p.site.started) < 3*time.Minute {
				return refusal("Retry-After", "4")
			}
			return nil
		}
		job := p.plan("r", callA, rows(300)...)
		parks := p.process("one", job)
		stats := p.checkpoint(job).Stats
		if parks < 10 || stats.ResidentWaitMs > int64(parks+1)*5000 {
			t.Errorf("%d parks, %d ms waited inside slices", parks, stats.ResidentWaitMs)
		}
		if n := len(p.site.hits()); n > 300+50*64 {
			t.Errorf("%d requests", n)
		}
		p.export(job)
	})
}

var _ call.Gateway = (*gateway.Executor)(nil)

// Two runs ask the same 60 questions of a provider that takes one a second. However long a question waits for its turn,
// only one of the runs asks it.
func TestH10ClaimLastsAsLongAsTheQueue(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		p := newPaced(t, tbl, "limits: [{rate: 1, per: 1s}]")
		p.tools = strings.Replace(p.tools, "path: \"/{x}\"}", "path: \"/{x}\", cache: 30d}", 1)
		var wg sync.WaitGroup
		for _, id := range []string{"r1", "r2"} {
			job := p.plan(id, callA, rows(60)...)
			wg.Go(func() { p.process("process of "+id, job) })
		}
		wg.Wait()
		if n := len(p.site.hits()); n != 60 {
			t.Errorf("%d requests for 60 questions", n)
		}
	})
}
