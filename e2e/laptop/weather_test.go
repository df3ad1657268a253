package laptop

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// weather is what the machine was like: the times for which a goroutine of this process, or any process of the machine,
// wanted to run and was not let.
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
		queue, _ := os.Open("/proc/pressure/cpu") // Linux; elsewhere this process's own stalls must do
		var waiting time.Duration                 // without a break
		before, last := pressure(queue), time.Now()
		for {
			select {
			case <-stop:
				return
			case <-time.After(probeEvery):
			}
			total, now := pressure(queue), time.Now()
			if passed := now.Sub(last); total-before > passed*8/10 {
				waiting += passed
			} else {
				waiting = 0
			}
			if worst := max(now.Sub(last)-probeEvery, waiting); worst > worstCalm {
				weather.mu.Lock()
				weather.stalls = append(weather.stalls, stall{now, worst})
				weather.mu.Unlock()
			}
			before, last = total, now
		}
	}()
	return func() { close(stop) }
}

// pressure is for how long, in all, a process that could have run had to wait for a processor.
func pressure(queue *os.File) time.Duration {
	var text [256]byte
	n, err := queue.ReadAt(text[:], 0)
	if err != nil && n == 0 {
		return 0
	}
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	_, total, _ := strings.Cut(line, "total=")
	micros, _ := strconv.ParseInt(total, 10, 64)
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
	if worst := worstStall(from, to); worst > tolerable {
		t.Logf("excused, because the machine stood still for %v: "+format, append([]any{worst}, args...)...)
		return
	}
	t.Errorf(format, args...)
}
