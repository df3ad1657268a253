package gateway

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/call"
)

// M6: what does not fit waits, first come first served, and goes on when room is given back.
func TestM6BodiesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(4 << 20) // 3 MB for what is longer than a first part
		first := b.Turn()
		if err := first.Take(t.Context(), 2<<20, nil); err != nil {
			t.Fatal(err)
		}
		var order []int64
		var wg sync.WaitGroup
		for _, size := range []int64{3 << 20, 1 << 20} { // the second would fit, and does not overtake
			wg.Go(func() {
				turn := b.Turn()
				paused := false
				if err := turn.Take(t.Context(), size, func() func() { paused = true; return func() {} }); err != nil || !paused {
					t.Errorf("%v, paused %v", err, paused)
				}
				order = append(order, size)
				turn.Measured(size)
				turn.End()
			})
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Fatal("there was no room, and nobody waited")
		}
		time.Sleep(time.Second)
		first.End()
		wg.Wait()
		if len(order) != 2 || order[0] != 3<<20 {
			t.Errorf("order %v", order)
		}
		want := call.BodyUse{Turns: 3, Bytes: 4 << 20, Peak: 3 << 20, Waits: 2, WaitMs: 2000}
		if got := b.Use(); got != want {
			t.Errorf("use %+v, want %+v", got, want)
		}
	})
}

// M6, R10: the end of the context ends the wait at once, and takes nothing.
func TestM6WaitingForRoomCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(4 << 20)
		first, second := b.Turn(), b.Turn()
		_ = first.Take(t.Context(), 3<<20, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := second.Take(ctx, 3<<20, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		second.End()
		first.End()
		if err := b.Turn().Take(t.Context(), 3<<20, nil); err != nil {
			t.Error(err)
		}
		if b.Use().Turns != 2 {
			t.Errorf("%+v: a turn that was not taken counts", b.Use())
		}
	})
}

// M6: however many bodies of unknown length turn out to be long at once, all come to their end.
func TestM6FirstPartsNeverBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(1 << 20)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				turn := b.Turn()
				defer turn.End()
				if turn.Take(t.Context(), FirstPart, nil) == nil {
					time.Sleep(time.Millisecond) // the others take theirs
					if err := turn.Take(t.Context(), turn.Most()-FirstPart, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait() // synctest fails if all wait for ever
		if use := b.Use(); use.Turns != 200 || use.Peak > 1<<20 {
			t.Errorf("%+v", use)
		}
	})
}
