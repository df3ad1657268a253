package laptop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/providersim"
)

// simulator is a providersim at work.
type simulator struct {
	t   *testing.T
	d   *desk
	url string
}

const simLog = "requests.log"

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// simulate starts the providers on a free port.
func (d *desk) simulate(c providersim.Config) *simulator {
	d.t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		d.t.Fatal(err)
	}
	d.write("providers.json", string(b))
	p := d.start(nil, simProgram, "--listen", "127.0.0.1:0", "--config", "providers.json", "--log", simLog)
	eventually(d.t, 30*time.Second, "the simulator says where it serves", func() bool { return address.MatchString(p.err.String()) })
	return &simulator{d.t, d, address.FindString(p.err.String())}
}

func (s *simulator) report() (r providersim.Report) {
	s.t.Helper()
	s.get("/_report", "", &r)
	return r
}

func (s *simulator) get(path, key string, into any) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	return s.do(req, into)
}

func (s *simulator) post(path, body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if status := s.do(req, nil); status != http.StatusOK {
		s.t.Fatalf("POST %s: status %d", path, status)
	}
}

func (s *simulator) do(req *http.Request, into any) int {
	s.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err == nil && into != nil && res.StatusCode == http.StatusOK {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode
}

// request is one line of the simulator's log, which is written at the request's end.
type request struct {
	Time     time.Time
	Provider string
	Request  string
	Status   int
	Refusal  string
	Early    bool
	Cut      bool
}

// requests are all requests so far, by their end.
func (s *simulator) requests() (all []request) {
	s.t.Helper()
	lines := bufio.NewScanner(bytes.NewReader([]byte(s.d.read(simLog))))
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			break // the last line is being written
		}
		all = append(all, r)
	}
	return all
}

// neverTooFast fails the test where a provider saw more requests in a window than it allows, one that was too early, or
// was asked twice for something that it had answered.
func (s *simulator) neverTooFast() {
	s.t.Helper()
	for name, p := range s.report().Providers {
		if p.TooEarly != 0 {
			s.t.Errorf("%s: %d requests before an announced deadline", name, p.TooEarly)
		}
		if len(p.CompletedTwice) != 0 {
			s.t.Errorf("%s: paid twice for %v", name, p.CompletedTwice)
		}
	}
	s.withinLimits()
}

// withinLimits fails the test where a provider saw more requests in a window than it allows.
func (s *simulator) withinLimits() {
	s.t.Helper()
	for name, p := range s.report().Providers {
		arrivals, odd := s.arrivals(name), mishaps{t: s.t}
		for _, w := range p.Windows {
			per := time.Duration(w.Per)
			if w.Max <= w.Rate {
				continue
			}
			too := overfull(arrivals, w.Rate, per)
			for _, at := range too {
				odd.timing(at.Add(-per-jitter), at.Add(jitter), slack(per)/2, "%s: the request at %v is one more than %d within %v", name, at, w.Rate, per)
			}
			if w.Max > w.Rate+w.Rate/10+1 || len(too) > excusable(len(arrivals)) {
				s.t.Errorf("%s: up to %d requests within %v, %d are allowed; %d were too many", name, w.Max, per, w.Rate, len(too))
			}
		}
		odd.judge(len(arrivals))
	}
}

// excusable is how many of n calls may come at a wrong moment because of the machine.
func excusable(n int) int { return 2 + n/100 }

// jitter is how long before or after it a stall's effects may be seen.
const jitter = 50 * time.Millisecond

// arrivals are the times of all requests to a provider, in order.
func (s *simulator) arrivals(provider string) (times []time.Time) {
	s.t.Helper()
	for _, r := range s.requests() {
		if r.Provider == provider {
			times = append(times, r.Time)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// overfull returns the times that are one more than rate within a window that ends with them.
func overfull(times []time.Time, rate int, per time.Duration) (too []time.Time) {
	for i := rate; i < len(times); i++ {
		if times[i].Sub(times[i-rate]) < per {
			too = append(too, times[i])
		}
	}
	return too
}

// slack is how much of a window is kept free for jitter, as documented: 3 %, but between 10 and 250 ms.
func slack(per time.Duration) time.Duration {
	return min(max(per*3/100, 10*time.Millisecond), 250*time.Millisecond)
}
