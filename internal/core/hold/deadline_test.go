package hold

import (
	"net/http"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestH13Deadline(t *testing.T) {
	const unusable = -1
	tests := []struct {
		name   string
		header http.Header
		want   time.Duration
	}{
		{"nothing", header(), unusable},
		{"seconds", header("Retry-After", "120"), 2 * time.Minute},
		{"zero", header("Retry-After", "0"), 0},
		{"decimal", header("Retry-After", " 1.5 "), 1500 * time.Millisecond},
		{"smaller than a nanosecond", header("Retry-After", "0.0000000001"), 1},
		{"IMF date", header("Retry-After", "Sun, 01 Mar 2026 12:01:30 GMT"), 90 * time.Second},
		{"RFC 850 date", header("Retry-After", "Sunday, 01-Mar-26 12:01:30 GMT"), 90 * time.Second},
		{"asctime date", header("Retry-After", "Sun Mar  1 12:01:30 2026"), 90 * time.Second},
		{"server's clock is ahead", header("Retry-After", "Sun, 01 Mar 2026 12:11:30 GMT", "Date", "Sun, 01 Mar 2026 12:10:00 GMT"), 90 * time.Second},
		{"server's clock is behind", header("Retry-After", "Sun, 01 Mar 2026 11:51:30 GMT", "Date", "Sun, 01 Mar 2026 11:50:00 GMT"), 90 * time.Second},
		{"unusable Date", header("Retry-After", "Sun, 01 Mar 2026 12:01:30 GMT", "Date", "noon"), 90 * time.Second},
		{"seconds do not depend on the server's clock", header("Retry-After", "30", "Date", "Sun, 01 Mar 2026 18:00:00 GMT"), 30 * time.Second},
		{"just passed", header("Retry-After", "Sun, 01 Mar 2026 11:59:30 GMT"), 0},
		{"long passed", header("Retry-After", "Sun, 01 Mar 2026 11:00:00 GMT"), unusable},
		{"milliseconds", header("Retry-After-Ms", "250"), 250 * time.Millisecond},
		{"seconds win over milliseconds", header("Retry-After-Ms", "250", "Retry-After", "3"), 3 * time.Second},
		{"garbage falls through", header("Retry-After", "soon", "Retry-After-Ms", "250"), 250 * time.Millisecond},
		{"negative", header("Retry-After", "-5"), unusable},
		{"not a number", header("Retry-After", "NaN"), unusable},
		{"infinite", header("Retry-After", "Inf"), unusable},
		{"hex", header("Retry-After", "0x10"), unusable},
		{"exponent", header("Retry-After", "1e3"), unusable},
		{"two dots", header("Retry-After", "1.2.3"), unusable},
		{"thirty days", header("Retry-After", "2592000"), 30 * 24 * time.Hour},
		{"more than thirty days", header("Retry-After", "2592001"), unusable},
		{"absurd", header("Retry-After", "99999999999999999999999999999"), unusable},
		{"absurd date", header("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), unusable},

		{"reset seconds", header("X-Reset", "17"), 17 * time.Second},
		{"reset decimal", header("X-Reset", "0.25"), 250 * time.Millisecond},
		{"reset epoch seconds", header("X-Reset", "1772366460"), time.Minute},
		{"reset epoch fraction", header("X-Reset", "1772366460.5"), 60500 * time.Millisecond},
		{"reset epoch milliseconds", header("X-Reset", "1772366460250"), 60250 * time.Millisecond},
		{"reset epoch on the server's clock", header("X-Reset", "1772366760", "Date", "Sun, 01 Mar 2026 12:05:00 GMT"), time.Minute},
		{"reset duration", header("X-Reset", "1m30s"), 90 * time.Second},
		{"reset long duration", header("X-Reset", "6m0s"), 6 * time.Minute},
		{"reset short duration", header("X-Reset", "120ms"), 120 * time.Millisecond},
		{"reset negative duration", header("X-Reset", "-1m"), unusable},
		{"reset endless duration", header("X-Reset", "9000h"), unusable},
		{"reset RFC 3339", header("X-Reset", "2026-03-01T13:00:10+01:00"), 10 * time.Second},
		{"reset HTTP date", header("X-Reset", "Sun, 01 Mar 2026 12:01:30 GMT"), 90 * time.Second},
		{"reset garbage, then the next", header("X-Reset", "?", "X-Other", "4"), 4 * time.Second},
		{"reset long ago", header("X-Reset", "1700000000"), unusable},
		{"reset absurd", header("X-Reset", "99999999999999999999"), unusable},
		{"Retry-After wins over reset", header("X-Reset", "100", "Retry-After", "1"), time.Second},
		{"not configured", header("X-Ratelimit-Reset", "5"), unusable},
	}
	for _, tt := range tests {
		at, ok := Deadline(now, tt.header, []string{"x-reset", "x-other"})
		if got := at.Sub(now); ok != (tt.want != unusable) || ok && got != tt.want {
			t.Errorf("%s: got %v, %v; want %v", tt.name, got, ok, tt.want)
		}
	}
}

func FuzzDeadline(f *testing.F) {
	for _, v := range []string{"120", "1.5", "-1", "NaN", "1m30s", "1772366460", "1772366460250", "2026-03-01T13:00:10+01:00",
		"Sun, 01 Mar 2026 12:01:30 GMT", "Sunday, 01-Mar-26 12:01:30 GMT", "Sun Mar  1 12:01:30 2026"} {
		f.Add(v, "Sun, 01 Mar 2026 12:01:30 GMT")
	}
	f.Fuzz(func(t *testing.T, v, date string) {
		for _, name := range []string{"Retry-After", "Retry-After-Ms", "X-Reset"} {
			at, ok := Deadline(now, header(name, v, "Date", date), []string{"X-Reset"})
			if ok && (at.Before(now) || at.After(now.Add(MaxWait))) {
				t.Errorf("%s: %q gave %v", name, v, at)
			}
			if !ok && !at.IsZero() {
				t.Errorf("%s: %q is unusable and gave %v", name, v, at)
			}
		}
	})
}
