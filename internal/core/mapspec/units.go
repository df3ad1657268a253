package mapspec

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var (
	errDuration = errors.New("a duration is a number with a unit: 250ms, 20s, 1m30s, 2h or 30d")
	errSize     = errors.New("a size is a whole number with a unit: 512KB or 5MB")
	errMoney    = errors.New("an amount of money is a decimal number of at least 0 with at most 6 decimals")
)

// parseDuration reads Go durations and, in front of them, days (30d, 1d12h).
func parseDuration(s string) (time.Duration, error) {
	var days time.Duration
	if before, after, found := strings.Cut(s, "d"); found {
		n, err := strconv.ParseInt(before, 10, 32)
		if err != nil || n < 0 || n > int64(math.MaxInt64/day)-1 || before[0] == '+' {
			return 0, errDuration
		}
		if days = time.Duration(n) * day; after == "" {
			return days, nil
		}
		s = after
	}
	if s == "" || s[0] == '-' || s[0] == '+' {
		return 0, errDuration
	}
	d, err := time.ParseDuration(s)
	if err != nil || days+d < days {
		return 0, errDuration
	}
	return days + d, nil
}

// ParseSize reads bytes with a decimal (KB, MB, GB) or binary (KiB, MiB, GiB) unit.
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(s, "KMGiB")
	units := map[string]int64{"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	unit, ok := units[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/unit || digits[0] == '+' {
		return 0, errSize
	}
	return n * unit, nil
}

// parseMicros reads a decimal amount as millionths, exactly.
func parseMicros(s string) (int64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	if whole == "" || len(fraction) > 6 || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, errMoney
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 64)
	if err != nil {
		return 0, errMoney
	}
	return n, nil
}
