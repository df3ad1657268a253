package laptop

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// weather is what the machine was like: the times for which a goroutine of this process, or any process of the machine,
// wanted to run and was not let, or waited for the disk.
var weather struct {
	mu     sync.Mutex
	stalls []stall
}

type stall struct {
	end    time.Time
	length time.Duration
}

// Shorter stalls than this harm nobody.
const (
	probeEvery = 2 * time.Millisecond
	worstCalm  = 8 * time.Millisecond
)

// watchWeather measures until the returned function is called.
func watchWeather() func() {
	stop := make(chan struct{})
	go func() {
		queues := []*queue{openQueue("cpu"), openQueue("io")}
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-time.After(probeEvery):
			}
			now := time.Now()
			worst := now.Sub(last) - probeEvery
			for _, q := range queues {
				worst = max(worst, q.waiting(now.Sub(last)))
			}
			if worst > worstCalm {
				weather.mu.Lock()
				weather.stalls = append(weather.stalls, stall{now, worst})
				weather.mu.Unlock()
			}
			last = now
		}
	}()
	return func() { close(stop) }
}

// queue is what Linux tells of processes that wait for a resource. Elsewhere it is silent, and this process's own stalls
// must do.
type queue struct {
	file   *os.File
	before time.Duration // of total
	span   time.Duration // for how long somebody has been waiting without a break
}

func openQueue(resource string) *queue {
	file, err := os.Open("/proc/pressure/" + resource)
	if err != nil {
		return &queue{}
	}
	return &queue{file: file}
}

// waiting is for how long some process has been waiting without a break, as of now. It is to be asked again and again.
func (q *queue) waiting(passed time.Duration) time.Duration {
	total := q.total()
	if total-q.before > passed*8/10 {
		q.span += passed
	} else {
		q.span = 0
	}
	q.before = total
	return q.span
}

// total is for how long, in all, at least one process was waiting.
func (q *queue) total() time.Duration {
	if q.file == nil {
		return 0
	}
	var text [256]byte
	n, err := q.file.ReadAt(text[:], 0)
	if err != nil && n == 0 {
		return 0
	}
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	_, number, _ := strings.Cut(line, "total=")
	micros, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(micros) * time.Microsecond
}

// worstStall is the longest stall that touched the time between from and to.
func worstStall(from, to time.Time) time.Duration {
	weather.mu.Lock()
	defer weather.mu.Unlock()
	var worst time.Duration
	for _, s := range weather.stalls {
		if s.end.After(from) && s.end.Add(-s.length).Before(to) {
			worst = max(worst, s.length)
		}
	}
	return worst
}

// timing reports a failure of something that depends on the machine's timeliness, unless the machine stalled for
// longer than tolerable between from and to.
func timing(t *testing.T, from, to time.Time, tolerable time.Duration, format string, args ...any) {
	t.Helper()
	if !excused(t, from, to, tolerable, format, args...) {
		t.Errorf(format, args...)
	}
}

// excused tells, and says, whether the machine stalled for longer than tolerable between from and to.
func excused(t *testing.T, from, to time.Time, tolerable time.Duration, format string, args ...any) bool {
	t.Helper()
	worst := worstStall(from, to)
	if worst > tolerable {
		t.Logf("excused, because the machine stood still for %v: "+format, append([]any{worst}, args...)...)
	}
	return worst > tolerable
}

// mishaps gathers what happened at wrong moments with no stall to show for it. A processor that is taken away from one
// of two programs for 30 ms shows in neither, so a few in thousands of calls are let pass; a pacing that is wrong makes
// many.
type mishaps struct {
	t    *testing.T
	list []string
}

func (m *mishaps) timing(from, to time.Time, tolerable time.Duration, format string, args ...any) {
	m.t.Helper()
	if !excused(m.t, from, to, tolerable, format, args...) {
		m.list = append(m.list, fmt.Sprintf(format, args...))
	}
}

// judge fails the test if there were more than could be by chance among n calls.
func (m *mishaps) judge(n int) {
	m.t.Helper()
	report := m.t.Logf
	if len(m.list) > 1+n/1000 {
		report = m.t.Errorf
	}
	for _, what := range m.list {
		report("%s", what)
	}
}
