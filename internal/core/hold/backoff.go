package hold

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"
)

// Backoff and cooldown grow by doubling from a base to a cap.
const (
	BackoffBase = 500 * time.Millisecond
	BackoffCap  = 30 * time.Second

	// CooldownBase stands in where a provider declares none.
	CooldownBase = 10 * time.Second
	// CooldownCap keeps a silent provider asked every few minutes, well inside the no-progress limit of 30 minutes.
	CooldownCap = 5 * time.Minute
)

// jitterShare is how much of a wait the jitter may add. It only adds: a wait that a provider needs is never cut.
const jitterShare = 0.25

// Backoff is the wait before the attempt after attempt number n (0-based) of a failure that may pass. The jitter is
// derived from key, the call's id, so that it repeats.
func Backoff(n int, key string) time.Duration {
	return jittered(grow(BackoffBase, BackoffCap, n), key, n)
}

// Cooldown is the wait after the streak-th (1-based) refusal in a row that named no deadline. The jitter is derived
// from key, the scope, so that every process computes the same wait.
func Cooldown(base time.Duration, streak int, key string) time.Duration {
	if base <= 0 {
		base = CooldownBase
	}
	return jittered(grow(base, max(base, CooldownCap), streak-1), key, streak)
}

func grow(base, limit time.Duration, doublings int) time.Duration {
	d := base
	for range max(doublings, 0) {
		if d >= limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}

func jittered(d time.Duration, key string, n int) time.Duration {
	return d + time.Duration(jitterShare*Fraction(key+"#"+strconv.Itoa(n))*float64(d))
}

// Fraction maps a key to [0, 1), evenly and always the same.
func Fraction(key string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash never fails
	return float64(mix(h.Sum64())>>11) / (math.MaxUint64>>11 + 1)
}

// mix spreads FNV's weak high bits (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
