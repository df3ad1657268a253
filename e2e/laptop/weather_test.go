package laptop

import (
	"sync"
	"testing"
	"time"
)

// weather is what the machine was like: the moments at which a goroutine that wanted to run every few milliseconds did
// not get to.
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
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-time.After(probeEvery):
			}
			now := time.Now()
			if late := now.Sub(last) - probeEvery; late > worstCalm {
				weather.mu.Lock()
				weather.stalls = append(weather.stalls, stall{now, late})
				weather.mu.Unlock()
			}
			last = now
		}
	}()
	return func() { close(stop) }
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
