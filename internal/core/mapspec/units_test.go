package mapspec

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "1m30s": 90 * time.Second, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0s": 0, "1.5h": 90 * time.Minute,
	} {
		if got, err := parseDuration(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "d", "5", "-1s", "+1s", "-1d", "+1d", "1d-1h", "1.5d", "1 s", "1day", "9999999999d", "106751d24h", "1d1d", "٣s"} {
		if got, err := parseDuration(s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{"1B": 1, "512KB": 512_000, "5MB": 5_000_000, "1GB": 1e9, "2KiB": 2048, "1MiB": 1 << 20} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "5", "MB", "-1B", "+1B", "5mb", "5 MB", "1.5MB", "5MBB", "9999999999GB"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}

func TestMoneyIsExact(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "0.01": 10_000, "0.000001": 1, "1": 1_000_000, "12.5": 12_500_000, "0.1": 100_000, "0.29": 290_000, "0.0100000000": 10_000,
	} {
		if got, err := parseMicros(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", ".5", "-1", "+1", "1e-2", "0.0000001", "1.2.3", "x", "99999999999999"} {
		if got, err := parseMicros(s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}
