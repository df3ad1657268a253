package providersim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// DefaultGrace is ample for requests under way on a local network, and far below the shortest announced hold (1 s).
const DefaultGrace = 250 * time.Millisecond

// maxBody bounds request bodies.
const maxBody = 1 << 20

// Sim is a set of simulated providers. It is safe for concurrent use.
type Sim struct {
	scopes map[string]*scope
	mux    *http.ServeMux

	logMu sync.Mutex
	log   io.Writer
}

// New returns the simulator of a configuration.
func New(c Config) (*Sim, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Sim{scopes: map[string]*scope{}, mux: http.NewServeMux()}
	grace := time.Duration(cmp.Or(c.Grace, Duration(DefaultGrace)))
	for _, p := range c.Providers {
		sc := newScope(p, grace)
		s.scopes[p.Name] = sc
		s.mux.HandleFunc("/"+p.Name+"/", func(w http.ResponseWriter, r *http.Request) { s.serve(sc, w, r) })
	}
	s.mux.HandleFunc("GET /_report", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, s.Report()) })
	s.mux.HandleFunc("POST /_reset", func(w http.ResponseWriter, _ *http.Request) { s.Reset(); write(w, http.StatusOK, object{}) })
	s.mux.HandleFunc("POST /_control/outage", s.control)
	return s, nil
}

// LogTo makes the simulator write one line of JSON for each request, at its end. Call it before serving.
func (s *Sim) LogTo(w io.Writer) { s.log = w }

// Handler serves the providers under their names, and the simulator's own operations: GET /_report, POST /_reset, and
// POST /_control/outage {"provider": "alpha", "seconds": 180, "announce": "seconds"}.
func (s *Sim) Handler() http.Handler { return s.mux }

// Reset forgets everything that happened.
func (s *Sim) Reset() {
	for _, sc := range s.scopes {
		sc.reset()
	}
}

// StartOutage refuses all requests to a provider for a time, and announces its end with each refusal.
func (s *Sim) StartOutage(provider string, d time.Duration, a Announce) error {
	sc := s.scopes[provider]
	if sc == nil || d <= 0 || !a.valid() {
		return fmt.Errorf("an outage needs a provider (there is %q), a time above 0, and announce seconds, date or reset", s.names())
	}
	sc.startOutage(Outage{For: Duration(d), Announce: a})
	return nil
}

func (s *Sim) names() []string {
	var out []string
	for name := range s.scopes {
		out = append(out, name)
	}
	return out
}

func (s *Sim) control(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Provider string   `json:"provider"`
		Seconds  float64  `json:"seconds"`
		Announce Announce `json:"announce"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&in); err != nil {
		write(w, http.StatusBadRequest, object{"error": err.Error()})
		return
	}
	if err := s.StartOutage(in.Provider, time.Duration(in.Seconds*float64(time.Second)), in.Announce); err != nil {
		write(w, http.StatusBadRequest, object{"error": err.Error()})
		return
	}
	write(w, http.StatusOK, object{})
}

// serve handles one request to a provider.
func (s *Sim) serve(sc *scope, w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	a, id, err := read(sc.cfg.Name, r)
	if err != nil {
		sc.turnAway(http.StatusBadRequest)
		write(w, http.StatusBadRequest, object{"error": "the body is not a JSON object"})
		return
	}
	line := logLine{Time: start, Provider: sc.cfg.Name, Request: id}
	defer func() { s.logRequest(line, start) }()

	v := sc.arrive(id, w.Header())
	line.Attempt, line.Early, line.Refusal = v.attempt, v.early, v.refusal
	if v.refusal != "" {
		line.Status = http.StatusTooManyRequests
		sc.turnAway(line.Status)
		write(w, line.Status, object{"error": "too many requests: " + v.refusal})
		return
	}
	e := sc.answer(r, a, v.attempt)
	sc.depart(id, e) // before it is written: who has the answer may come again at once, and may ask for the report
	line.Status, line.Cut, line.Aborted = e.status, e.cut, e.aborted
	switch {
	case e.aborted:
	case e.cut:
		writeHalf(w, e.status, e.body)
	default:
		write(w, e.status, e.body)
	}
}

// answer decides on the answer, or on the trouble that is due.
func (sc *scope) answer(r *http.Request, a asked, attempt int) end {
	if sc.cfg.Key != "" && credential(r) != sc.cfg.Key {
		return end{status: http.StatusUnauthorized, body: object{"error": "wrong credential"}}
	}
	id := identity(a)
	if int(sum("slow", id)%1000) < sc.cfg.Slow && !pause(r, time.Duration(sc.cfg.SlowBy)) {
		return end{aborted: true}
	}
	e := end{fence: r.Header.Get("Idempotency-Key")}
	if attempt == 0 {
		switch due := int(sum("trouble", id) % 1000); {
		case due < sc.cfg.Bare:
			return end{status: http.StatusTooManyRequests, bare: true, body: object{"error": "too many requests"}}
		case due < sc.cfg.Bare+sc.cfg.Unavailable:
			return end{status: http.StatusServiceUnavailable, body: object{"error": "try again"}}
		default:
			e.cut = due < sc.cfg.Bare+sc.cfg.Unavailable+sc.cfg.Cut
		}
	}
	e.status, e.body = kinds[sc.cfg.Kind](a)
	return e
}

// pause waits, and reports whether the client did so too.
func pause(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// logLine is one request in the log.
type logLine struct {
	Time     time.Time `json:"time"`
	Provider string    `json:"provider"`
	Request  string    `json:"request"`
	Attempt  int       `json:"attempt"`
	Status   int       `json:"status"`
	Refusal  string    `json:"refusal,omitempty"`
	Early    bool      `json:"early,omitempty"`
	Cut      bool      `json:"cut,omitempty"`
	Aborted  bool      `json:"aborted,omitempty"`
	Millis   int64     `json:"millis"`
}

func (s *Sim) logRequest(line logLine, start time.Time) {
	if s.log == nil {
		return
	}
	line.Millis = time.Since(start).Milliseconds()
	b, err := json.Marshal(line)
	if err != nil {
		return
	}
	s.logMu.Lock()
	defer s.logMu.Unlock()
	_, _ = s.log.Write(append(b, '\n'))
}
