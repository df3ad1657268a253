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
	Streak  int       // refusals in a row without a deadline
	Granted time.Time // the latest grant
	Rules   []RuleStanding
	Leases  []LeaseStanding
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
	out := Standing{Scope: name, Streak: s.Streak}
	if s.Last != 0 {
		out.Granted = time.Unix(0, s.Last).UTC()
	}
	if held := time.Unix(0, s.Hold).UTC(); held.After(now) {
		out.Held = held
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
