package pacer

import "time"

// A provider that declares neither limits nor concurrency has limits all the same, and nobody knows them. Its default
// pace is kept, as a rule like any other (H17); how many calls are in flight, and how far apart they are where that is
// still too fast, is found out: more with success, less with a refusal, and less when its answers become slow. What is
// found out is part of the scope's state, so that all runs share it.

const (
	// MaxAdaptive bounds what a provider can be found to take. Who needs more knows the provider well enough to declare it.
	MaxAdaptive = 64

	// cutBy is what is left after a refusal.
	cutBy = 0.75
	// firstStep is how much one success adds to the calls in flight before there was any refusal: half as many again each
	// time that all of them have been answered. Later it is one call.
	firstStep = 0.5
	// paceShare is how near to a pace that was refused one goes, until that is put to the test again.
	paceShare = 0.92
	// paceStep is how many successes take the pace up by the default pace.
	paceStep = 50
	// slowest is the longest distance between dispatches that is learned; holds are for what is longer.
	slowest = time.Minute

	// A limit that was found is put to the test again after firstProbe, and after each test that failed twice as late.
	firstProbe = 20 * time.Second
	lastProbe  = 5 * time.Minute

	// slowBy is how many times longer than at its best an answer may take on average, before calls are held back.
	slowBy = 2.0
	// fineBy is how many times longer it may take while more are tried out fast.
	fineBy = 1.25
	// slowCut is the most that one such finding takes away.
	slowCut = 0.8
	// average is over how many answers the average goes, and enough how many are needed for a first one. Answers of some
	// providers take ten times as long as others of theirs.
	average, enough = 64, 16
	// tightFor is for how long after its turn a call that had to wait for others shows that calls wait.
	tightFor = time.Second
	// forget is how long it takes the best average to rise by a tenth: providers change.
	forget = 10 * time.Minute
)

// adapt is what was found out about a scope. Moments and durations are nanoseconds.
type adapt struct {
	Limit float64 `json:"c"`               // calls in flight that are allowed
	Top   int     `json:"top,omitempty"`   // so many were refused; 0: not known
	Every int64   `json:"every,omitempty"` // between dispatches; 0: as the rules say
	Floor int64   `json:"floor,omitempty"` // at this distance they were refused; 0: not known
	CutAt int64   `json:"cutAt,omitempty"`
	Good  int     `json:"good,omitempty"` // so many were answered
	Test  int64   `json:"test,omitempty"` // when Top and Floor are put to the test
	Wait  int64   `json:"wait,omitempty"` // until the test after that, should it fail
	Lat   float64 `json:"lat,omitempty"`  // of answers, smoothed
	Best  float64 `json:"best,omitempty"` // the lowest that it was
	Seen  int     `json:"seen,omitempty"` // answers in Lat, as far as enough
	At    int64   `json:"at,omitempty"`   // when it last learned
}

// Sample is what an owner saw of a scope since its last write.
type Sample struct {
	N     int           // answers that were no refusals
	Peak  int           // most calls in flight when one left that was answered in time
	Total time.Duration // what they took
	Tight bool          // calls wait for others to end
}

// less is what is left when some of it has been taken into the state.
func (s Sample) less(taken Sample) Sample {
	left := Sample{N: s.N - taken.N, Total: s.Total - taken.Total, Peak: s.Peak}
	if left.N == 0 {
		left.Peak = 0
	}
	return left
}

// start is what is assumed of a provider that nobody knows yet.
func (s *State) start(concurrency int) *adapt {
	if s.Adapt == nil {
		return &adapt{Limit: float64(max(concurrency, 1))}
	}
	known := *s.Adapt // states are values
	return &known
}

// allowed is the number of calls in flight.
func (a *adapt) allowed() int { return max(1, min(int(a.Limit), MaxAdaptive)) }

// every is the least distance between dispatches. Where calls were refused that overlapped, they are spread evenly over
// the time that one of them takes: it may be their rate that was too much, and then a bunch of them is.
func (a *adapt) every() int64 {
	spread := int64(0)
	if a.Top > 0 {
		spread = min(int64((1+slackShare)*a.Lat/float64(a.allowed())), int64(slowest))
	}
	return max(a.Every, spread)
}

// learn takes answers into account. rule is the distance between dispatches at the default pace, others is how many calls
// others may have had in flight.
func (a *adapt) learn(now int64, rule int64, others int, seen Sample) {
	if seen.N == 0 {
		return
	}
	if seen.Peak > 0 {
		a.Good = max(a.Good, seen.Peak+others)
	}
	mean := float64(seen.Total) / float64(seen.N)
	if a.Seen == 0 {
		a.Lat = mean
	} else {
		a.Lat += (mean - a.Lat) * min(1, float64(seen.N)/average, float64(seen.N)/float64(a.Seen))
	}
	a.Seen = min(a.Seen+seen.N, average)
	if a.Best > 0 {
		a.Best *= 1 + 0.1*float64(max(now-a.At, 0))/float64(forget)
	}
	a.At = now
	if a.Seen >= enough && (a.Best == 0 || a.Lat < a.Best) {
		a.Best = a.Lat
	}
	settled := now-a.CutAt > int64(a.Lat) // answers of before the last cut say nothing of after it
	switch {
	case a.Best > 0 && a.Lat > slowBy*a.Best:
		if settled && a.Limit > 1 {
			a.Limit = max(1, a.Limit*max(slowBy*a.Best/a.Lat, slowCut))
			a.CutAt = now
		}
	case settled:
		a.grow(now, rule, seen)
	}
}

// grow allows one more call in flight for as many successes as are allowed, if calls wait for that, and a faster pace.
func (a *adapt) grow(now int64, rule int64, seen Sample) {
	testing := now >= a.Test
	most := float64(MaxAdaptive)
	if a.Top > 0 && !testing {
		most = float64(max(a.Top-1, 1))
	}
	if seen.Tight && a.Limit < most {
		step := 1 / max(a.Limit, 1)
		if a.CutAt == 0 && (a.Best == 0 || a.Lat < fineBy*a.Best) { // nothing has spoken against it yet
			step = firstStep
		}
		a.Limit = min(most, a.Limit+float64(seen.N)*step)
	}
	if a.Every > 0 {
		rate := 1/float64(a.Every) + float64(seen.N)/paceStep/float64(rule)
		if a.Floor > 0 && !testing {
			rate = min(rate, paceShare/float64(a.Floor))
		}
		if a.Every = min(int64(1/rate), int64(slowest)); a.Every <= rule {
			a.Every = 0
		}
	}
	if testing && a.Top > 0 && int(a.Limit) > a.Top { // it takes more by now
		a.Top, a.Wait = 0, 0
	}
	if testing && a.Floor > 0 && (a.Every == 0 || a.Every < a.Floor*3/4) {
		a.Floor, a.Wait = 0, 0
	}
}

// refuse takes a refusal into account, whose call left with so many in flight, itself included: several at once make one.
// If never so many have been answered, they were too many; otherwise they came too fast.
func (a *adapt) refuse(now int64, rule int64, dispatched int64, inFlight int) bool {
	if dispatched <= a.CutAt {
		return false
	}
	a.Wait = min(max(2*a.Wait, int64(firstProbe)), int64(lastProbe))
	a.CutAt, a.Test = now, now+a.Wait
	if inFlight > max(a.Good, 1) {
		a.tooMany(inFlight)
	} else {
		a.tooFast(rule)
		a.Good = inFlight - 1
	}
	return true
}

func (a *adapt) tooMany(inFlight int) {
	inFlight = min(inFlight, MaxAdaptive+1)
	if a.Top > 0 && inFlight >= a.Top { // it was put to the test, and is as it was
		a.Limit = float64(max(a.Top-1, 1))
		return
	}
	a.Top = inFlight
	a.Limit = max(1, cutBy*min(a.Limit, float64(inFlight)))
}

func (a *adapt) tooFast(rule int64) {
	every, share := max(a.every(), rule), cutBy
	if a.Floor > 0 && every < a.Floor*21/20 { // as above
		every, share = a.Floor, paceShare
	}
	a.Floor = every
	a.Every = min(int64(float64(every)/share), int64(slowest))
}

// pace is the distance between dispatches that the state's rules amount to.
func (s *State) pace() int64 {
	every := int64(1)
	for _, r := range s.Rules {
		every = max(every, r.rule().interval())
	}
	return every
}
