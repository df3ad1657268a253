package dynamo_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/table"
)

var key = table.Key{Part: "p", Sort: "s"}

func item(data string) table.Item { return table.Item{Key: key, Version: 2, Data: []byte(data)} }

// inBubble runs a test under a fake clock.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestThrottlingIsWaitedOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		start := time.Now()
		tab, s := scripted(t, throttle, exception(400, "ThrottlingException"), exception(400, "RequestLimitExceeded"), ok)
		if err := tab.Put(t.Context(), item("x"), table.Absent()); err != nil {
			t.Fatal(err)
		}
		// Pauses of at most 25, 50 and 100 ms, and of at least half of that.
		if took := time.Since(start); took < 87*time.Millisecond || took > 175*time.Millisecond {
			t.Errorf("took %s for %s", took, s.ops())
		}
	})
}

func TestThrottledPutThatConflictsIsAConflict(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, first := range map[string]reply{"throttled": throttle, "not connected": {err: refused}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				tab, s := scripted(t, first, condition)
				if err := tab.Put(t.Context(), item("x"), table.Absent()); !errors.Is(err, table.ErrConflict) {
					t.Errorf("got %v, want ErrConflict: nothing can have been written (%s)", err, s.ops())
				}
			})
		})
	}
}

func TestThrottlingForAMinuteIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		start := time.Now()
		s := &script{answer: func(int, request) reply { return throttle }}
		_, err := s.table().Get(t.Context(), key)
		if took := time.Since(start); err == nil || took < time.Minute || took > 62*time.Second {
			t.Errorf("got %v after %s", err, took)
		}
		if !strings.Contains(err.Error(), "1m0s") || !strings.Contains(err.Error(), "ProvisionedThroughput") {
			t.Errorf("the error does not say why: %v", err)
		}
		if n := len(s.requests); n < 30 || n > 80 { // pauses of 1 to 2 s, but for the first
			t.Errorf("%d requests in a minute", n)
		}
	})
}

func TestContextEndsRepeating(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &script{answer: func(int, request) reply { return throttle }}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := s.table().Put(ctx, item("x"), table.Always())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

func TestContextEndsAnAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tab, s := scripted(t, silence)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		err := tab.Put(ctx, item("x"), table.Absent())
		if !errors.Is(err, context.Canceled) || errors.Is(err, table.ErrConflict) || time.Since(start) != time.Second {
			t.Errorf("got %v after %s and %s", err, time.Since(start), s.ops())
		}
	})
}

func TestOtherErrorsAreNotRepeated(t *testing.T) {
	for _, name := range []string{"ValidationException", "AccessDeniedException", "ResourceNotFoundException"} {
		tab, _ := scripted(t, exception(400, name))
		if err := tab.Put(t.Context(), item("x"), table.Always()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}
