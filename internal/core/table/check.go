package table

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Check is the validation that every adapter runs before a write.
func Check(item Item) error {
	if err := CheckKey(item.Key); err != nil {
		return err
	}
	if item.Size() > MaxItem {
		return fmt.Errorf("%w: %s has %d bytes, at most %d fit", ErrTooLarge, item.Key, item.Size(), MaxItem)
	}
	return nil
}

// CheckAll runs Check over the items of a PutMany, so that one that cannot be written keeps all from being written.
func CheckAll(items []Item) error {
	for _, item := range items {
		if err := Check(item); err != nil {
			return err
		}
	}
	return nil
}

// CheckKey is the validation that every adapter runs before a read or a delete.
func CheckKey(key Key) error {
	if key.Sort == "" || len(key.Sort) > MaxSort || !utf8.ValidString(key.Sort) {
		return fmt.Errorf("%w: %.200q", ErrInvalid, key.String())
	}
	return checkPart(key.Part)
}

// CheckKeys runs CheckKey over the keys of a GetMany.
func CheckKeys(keys []Key) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	return nil
}

// CheckQuery is the validation that every adapter runs before a query.
func CheckQuery(q Query) error {
	for _, bound := range []string{q.From, q.To} {
		if len(bound) > MaxSort || !utf8.ValidString(bound) {
			return fmt.Errorf("%w: bound %.200q of a query", ErrInvalid, bound)
		}
	}
	return checkPart(q.Part)
}

func checkPart(part string) error {
	if part == "" || len(part) > MaxPart || !utf8.ValidString(part) {
		return fmt.Errorf("%w: partition %.200q", ErrInvalid, part)
	}
	return nil
}

// ExpirySeconds is how adapters store Item.Expires: Unix seconds rounded up, 0 for never. A time before 1970 is stored
// as 1, which is long past, because 0 is taken.
func ExpirySeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	s := t.Unix()
	if t.Nanosecond() > 0 {
		s++
	}
	return max(s, 1)
}

// ExpiryTime is what a read returns for stored seconds.
func ExpiryTime(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// Expired reports whether an item with these stored seconds is hidden at now.
func Expired(seconds int64, now time.Time) bool { return seconds != 0 && seconds <= now.Unix() }
