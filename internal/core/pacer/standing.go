package pacer

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"sluice/internal/core/table"
)

// Standing is how a rate scope stands, for who looks at it.
type Standing struct {
	Scope   string
	Held    time.Time // the provider wants nothing before this; zero: it is not held
	HeldBy  Cause     // and why
	Streak  int       // refusals in a row without a deadline
	Granted time.Time // the latest grant
	Rules   []RuleStanding
	Leases  []LeaseStanding
	Found   *Found // of a scope whose provider declares nothing; nil: nothing is known yet
}

// Found is what was found out about a provider that declares neither limits nor concurrency.
type Found struct {
	Concurrency int           // calls in flight that are allowed now
	Refused     int           // so many in flight were refused; 0: none were
	Every       time.Duration // between dispatches, where the default pace is too fast; 0: it is not
	RefusedAt   time.Duration // at this distance they were refused; 0: they were not
	Test        time.Time     // when what was refused is put to the test again; zero: nothing was refused
	Latency     time.Duration // of answers, smoothed
	Best        time.Duration // the lowest that it was; 0: too few answers
}

// found is what is told of a.
func (a *adapt) found() *Found {
	if a == nil {
		return nil
	}
	f := &Found{Concurrency: a.allowed(), Refused: a.Top, Every: time.Duration(a.every()), RefusedAt: time.Duration(a.Floor),
		Latency: time.Duration(a.Lat), Best: time.Duration(a.Best)}
	if a.Top > 0 || a.Floor > 0 {
		f.Test = time.Unix(0, a.Test).UTC()
	}
	return f
}

// RuleStanding is how much of a rule is used.
type RuleStanding struct {
	Rule
	Recent int64 // grants within one window up to now
}

// LeaseStanding is what one owner, a process, may have in flight.
type LeaseStanding struct {
	Owner string
	Calls int
	Until time.Time // it ends by itself
}

const listPart = "paced"

// enlist keeps the scope's name where List finds it. It is only for people: a failure costs them a line, and no call.
func enlist(ctx context.Context, tbl table.Table, name string) {
	_ = tbl.Put(ctx, table.Item{Key: table.Key{Part: listPart, Sort: name}, Version: 1, Data: []byte(name)}, table.Always())
}

// List yields how the scopes stand that anybody has used, by name. Scopes that have been idle for days are left out.
func List(ctx context.Context, tbl table.Table) iter.Seq2[Standing, error] {
	return func(yield func(Standing, error) bool) {
		for item, err := range tbl.Query(ctx, table.Query{Part: listPart}) {
			var version int64
			var s State
			if err == nil {
				version, s, err = load(ctx, tbl, item.Sort)
			}
			if err == nil && version == 0 {
				continue
			}
			if !yield(s.standing(item.Sort, time.Now()), err) || err != nil {
				return
			}
		}
	}
}

func (s *State) standing(name string, now time.Time) Standing {
	out := Standing{Scope: name, Streak: s.Streak, Found: s.Adapt.found()}
	if s.Last != 0 {
		out.Granted = time.Unix(0, s.Last).UTC()
	}
	if held := time.Unix(0, s.Hold).UTC(); held.After(now) {
		out.Held, out.HeldBy = held, s.HeldBy
	}
	for _, r := range s.Rules {
		rule := r.rule()
		out.Rules = append(out.Rules, RuleStanding{rule, s.Log.since(now.Add(-rule.Per).UnixNano(), now.UnixNano())})
	}
	for owner, l := range s.Leases {
		if until := time.Unix(0, l.Until).UTC(); l.N > 0 && until.After(now) {
			out.Leases = append(out.Leases, LeaseStanding{owner, l.N, until})
		}
	}
	slices.SortFunc(out.Leases, func(a, b LeaseStanding) int { return cmp.Compare(a.Owner, b.Owner) })
	return out
}

// since counts the grants after one moment and up to another.
func (l grantLog) since(after, until int64) (n int64) {
	for _, r := range l {
		for i := range r.count {
			if at := r.at(i); at > after && at <= until {
				n++
			}
		}
	}
	return n
}
