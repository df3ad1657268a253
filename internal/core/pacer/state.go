package pacer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice/internal/core/frame"
)

// State is the shared state of a scope, as stored. Moments are nanoseconds of the Unix epoch; 0 is never.
type State struct {
	By       string           `json:"by"`                 // who wrote it, and that writer's sequence number
	Rules    []ruleState      `json:"rules,omitempty"`    // all that are declared by anybody
	Last     int64            `json:"last,omitempty"`     // the latest grant: grants are never out of order
	Hold     int64            `json:"hold,omitempty"`     // nothing before this, says the provider
	HeldBy   Cause            `json:"heldBy,omitzero"`    // and why
	Streak   int              `json:"streak,omitempty"`   // refusals in a row without a deadline
	StreakAt int64            `json:"streakAt,omitempty"` // when the streak last grew
	Leases   map[string]lease `json:"leases,omitempty"`   // concurrency by owner
	Adapt    *adapt           `json:"adapt,omitempty"`    // of a provider that declares nothing; never changed in place
	Log      grantLog         `json:"-"`                  // all grants within the longest window that needs it
}

// ruleState is a rule with its theoretical arrival time, the moment from which it is as good as unused.
type ruleState struct {
	Rate  int   `json:"r"`
	Per   int64 `json:"p"`
	Burst int   `json:"b"`
	TAT   int64 `json:"t"`
	Used  int64 `json:"u"` // when it was last asked for
}

func (r ruleState) rule() Rule { return Rule{Rate: r.Rate, Per: time.Duration(r.Per), Burst: r.Burst} }

// lease is what one owner may have in flight.
type lease struct {
	N     int   `json:"n"`
	Want  int   `json:"w,omitempty"` // what it asked for
	Asked int64 `json:"a,omitempty"` // when it asked
	Until int64 `json:"u"`           // when the lease ends by itself
}

// stored is the item's form: the log as differences, which keeps the item small.
type stored struct {
	V int `json:"v"`
	State
	Runs []int64 `json:"log,omitempty"`
}

const stateVersion = 1

func encode(s State) ([]byte, error) {
	out := stored{V: stateVersion, State: s, Runs: make([]int64, 0, 3*len(s.Log))}
	var base int64
	for _, r := range s.Log {
		out.Runs = append(out.Runs, r.start-base, r.every, r.count)
		base = r.start
	}
	b, err := json.Marshal(out)
	if err == nil && len(b) > unit {
		b = frame.SealFast(b)
	}
	return b, err
}

// unit is a little less than 1 KB, the unit in which DynamoDB bills writes: what is longer is compressed.
const unit = 960

func decode(b []byte) (State, error) {
	if len(b) > 0 && b[0] != '{' {
		var err error
		if b, err = frame.Open(b); err != nil {
			return State{}, fmt.Errorf("state of a rate scope: %w", err)
		}
	}
	var in stored
	if err := json.Unmarshal(b, &in); err != nil {
		return State{}, fmt.Errorf("state of a rate scope: %w", err)
	}
	if in.V != stateVersion || len(in.Runs)%3 != 0 {
		return State{}, fmt.Errorf("state of a rate scope: version %d is not known to this version of Sluice", in.V)
	}
	s := in.State
	for _, r := range s.Rules {
		if r.rule() != r.rule().normal() {
			return State{}, fmt.Errorf("state of a rate scope: damaged rule %+v", r.rule())
		}
	}
	var base int64
	for c := range slices.Chunk(in.Runs, 3) {
		base += c[0]
		if c[1] < 0 || c[2] < 1 {
			return State{}, fmt.Errorf("state of a rate scope: damaged log")
		}
		s.Log = append(s.Log, run{start: base, every: c[1], count: c[2]})
	}
	return s, nil
}

func (s State) clone() State {
	s.Rules = slices.Clone(s.Rules)
	s.Log = slices.Clone(s.Log)
	s.Leases = maps.Clone(s.Leases)
	return s
}

// expiry is when nothing in the state matters any more: an idle scope leaves no item behind. A day more keeps the
// streak of a provider that is asked rarely.
func (s State) expiry() time.Time {
	end := max(s.Last, s.Hold, s.StreakAt)
	for _, r := range s.Rules {
		end = max(end, r.TAT, s.Last+r.rule().window())
	}
	for _, l := range s.Leases {
		end = max(end, l.Until)
	}
	return time.Unix(0, end).Add(24 * time.Hour)
}
