package call

import (
	"context"
	"sync"
)

// BodyUse is what reading the bodies of answers took of the memory that is set aside for them (M8).
type BodyUse struct {
	Turns    int64 `json:"turns"`    // bodies that were read
	Bytes    int64 `json:"bytes"`    // measured in them, unpacked
	Peak     int64 `json:"peak"`     // most bytes that were set aside at one moment
	Waits    int64 `json:"waits"`    // turns that had to wait for room
	WaitMs   int64 `json:"waitMs"`   // for so long, in all
	Refusals int64 `json:"refusals"` // bodies that were larger than allowed
}

// BodyMeter is a Gateway that tells what reading bodies took.
type BodyMeter interface {
	BodyUse() BodyUse
}

// Plus adds the use by another process.
func (u BodyUse) Plus(o BodyUse) BodyUse {
	return BodyUse{
		Turns: u.Turns + o.Turns, Bytes: u.Bytes + o.Bytes, Peak: max(u.Peak, o.Peak),
		Waits: u.Waits + o.Waits, WaitMs: u.WaitMs + o.WaitMs, Refusals: u.Refusals + o.Refusals,
	}
}

// Since is the use after the earlier one of the same process. The peak stays that of the process.
func (u BodyUse) Since(o BodyUse) BodyUse {
	return BodyUse{
		Turns: u.Turns - o.Turns, Bytes: u.Bytes - o.Bytes, Peak: u.Peak,
		Waits: u.Waits - o.Waits, WaitMs: u.WaitMs - o.WaitMs, Refusals: u.Refusals - o.Refusals,
	}
}

// BodyTally adds up what the bodies of some calls took, of all that a process reads. It is safe for concurrent use.
type BodyTally struct {
	mu  sync.Mutex
	use BodyUse
}

// Add counts a use. A nil tally counts nothing.
func (t *BodyTally) Add(u BodyUse) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.use = t.use.Plus(u)
}

// Use is what was counted so far.
func (t *BodyTally) Use() BodyUse {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.use
}

type bodyTallyKey struct{}

// CountBodies has a Gateway count in t what it reads under the context.
func CountBodies(ctx context.Context, t *BodyTally) context.Context {
	return context.WithValue(ctx, bodyTallyKey{}, t)
}

// Bodies is the tally of a context; nil if it has none.
func Bodies(ctx context.Context) *BodyTally {
	t, _ := ctx.Value(bodyTallyKey{}).(*BodyTally)
	return t
}
