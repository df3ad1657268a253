package run

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/sheet"
)

// progress follows, for each rate scope, since when it has given nothing but "wait" (R5). A scope that goes on like that
// for its provider's noProgress, or asks to wait past that moment, is exhausted: the calls that wait for it end. Waiting
// for one's turn under a limit of the catalogue is no such streak, however long it takes.
type progress struct {
	some    atomic.Bool // there are streaks
	mu      sync.Mutex
	streaks map[string]sheet.Streak // by scope
}

func newProgress(earlier []sheet.Streak) *progress {
	p := &progress{streaks: map[string]sheet.Streak{}}
	for _, s := range earlier {
		p.streaks[s.Scope] = s
	}
	p.some.Store(len(p.streaks) > 0)
	return p
}

// scopeOf is the scope that an answer speaks of.
func scopeOf(p *mapspec.Provider, a call.Answer) string { return cmp.Or(a.Scope, p.Name) }

// learn takes in an answer, and reports whether its scope has become exhausted with it.
func (p *progress) learn(provider *mapspec.Provider, a call.Answer, now time.Time) bool {
	until := a.HoldUntil
	if a.Outcome == call.Held && a.Dispatched {
		until = later(until, a.Until)
	}
	if until.IsZero() {
		p.succeeded(provider, a)
		return false
	}
	scope := scopeOf(provider, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.streaks[scope]
	// A streak that nobody has looked at for as long as it may last says nothing of today.
	if !ok || now.Sub(s.Until) > provider.NoProgress {
		s = sheet.Streak{Scope: scope, Since: now.UTC()}
	}
	before := exhausted(s, provider)
	s.Until = later(s.Until, until.UTC())
	p.streaks[scope] = s
	p.some.Store(true)
	return !before && exhausted(s, provider)
}

// succeeded clears the streak of a scope that has answered a call, be it with a result or with a "no".
func (p *progress) succeeded(provider *mapspec.Provider, a call.Answer) {
	if !p.some.Load() || !a.Dispatched {
		return
	}
	switch a.Outcome {
	case call.Result, call.Missing, call.Failed:
		p.mu.Lock()
		delete(p.streaks, scopeOf(provider, a))
		p.some.Store(len(p.streaks) > 0)
		p.mu.Unlock()
	}
}

func exhausted(s sheet.Streak, p *mapspec.Provider) bool {
	return s.Until.After(s.Since.Add(p.NoProgress))
}

// over returns the end of a call that waits for a scope, if that is exhausted.
func (p *progress) over(provider *mapspec.Provider, scope string) *call.Error {
	if !p.some.Load() {
		return nil
	}
	p.mu.Lock()
	s, ok := p.streaks[cmp.Or(scope, provider.Name)]
	p.mu.Unlock()
	if !ok || !exhausted(s, provider) {
		return nil
	}
	return &call.Error{Code: "PROVIDER_EXHAUSTED", Message: fmt.Sprintf(
		"%s has answered no call since %s and asks to wait until %s, which is longer than its noProgress of %s; what was completed is saved, "+
			"and the failed rows can be run again later", provider.Name, s.Since.Format(time.RFC3339), s.Until.Format(time.RFC3339), mapspec.DurationText(provider.NoProgress))}
}

// list is what the checkpoint keeps.
func (p *progress) list() []sheet.Streak {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []sheet.Streak
	for _, s := range p.streaks {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b sheet.Streak) int { return cmp.Compare(a.Scope, b.Scope) })
	return list
}
