package sheet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/frame"
	"sluice/internal/core/store"
)

func TestH5PendingRowsAreRememberedWhole(t *testing.T) {
	until := time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)
	for name, rows := range map[string]PendingRows{
		"none":    {},
		"at work": {{Row: 7, Index: 7}},
		"mixed": {
			{Row: 0, Index: 3, Input: "0a1b2c3d", Until: until, Scope: "a-1", Why: call.Why{Reason: call.RetryAfter, Code: "HTTP_429"}, Spent: true, Unsent: until.Add(-time.Hour)},
			{Row: 5, Index: 9, Input: "ffffffff"},
			{Row: 1 << 40, Index: 1<<40 + 12, Scope: "b-2"},
		},
	} {
		b, err := json.Marshal(Checkpoint{Pending: rows})
		var got Checkpoint
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || len(got.Pending) != len(rows) || len(rows) > 0 && !cmp.Equal(got.Pending, rows) {
			t.Errorf("%s: %v, %v", name, got.Pending, err)
		}
	}
}

// The order in which a slice lists its rows says nothing.
func TestPendingRowsComeInTheirOrder(t *testing.T) {
	rows := PendingRows{{Row: 9, Index: 9}, {Row: 2, Index: 4}}
	b, err := json.Marshal(rows)
	var got PendingRows
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if want := (PendingRows{{Row: 2, Index: 4}, {Row: 9, Index: 9}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if rows[0].Row != 9 {
		t.Error("the list was changed by being written")
	}
}

func TestPendingRowsOfEarlierVersionsAreRead(t *testing.T) {
	var got Checkpoint
	err := json.Unmarshal([]byte(`{"pending":[{"r":3,"i":4,"d":"00112233","u":"2026-05-01T12:00:00Z","s":"a-1","x":true}]}`), &got)
	want := PendingRows{{Row: 3, Index: 4, Input: "00112233", Until: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Scope: "a-1", Spent: true}}
	if err != nil || !cmp.Equal(got.Pending, want) {
		t.Errorf("%v, %v", got.Pending, err)
	}
}

func TestPendingRowsWithUnequalColumnsAreDamaged(t *testing.T) {
	for _, text := range []string{`{"r":[1,2],"i":[0]}`, `{"r":[1],"i":[0],"d":["a","b"]}`, `{"i":[0]}`, `{"r":[1],"i":[0],"u":["2026-05-01T12:00:00Z","2026-05-01T12:00:00Z"]}`} {
		var got PendingRows
		if err := json.Unmarshal([]byte(text), &got); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// A shard that waits for a slow limit writes a thousand rows with each checkpoint: a digest of four bytes for each, and little more.
func TestCheckpointOfAThousandHeldRowsIsSmall(t *testing.T) {
	cp := Checkpoint{Status: ShardParked}
	until := time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)
	for i := range int64(1000) {
		sum := sha256.Sum256(fmt.Append(nil, i))
		cp.Pending = append(cp.Pending, Pending{Row: 5000 + i, Index: 5002 + i, Input: hex.EncodeToString(sum[:4]), Until: until.Add(time.Duration(i/150) * time.Minute), Scope: "acme-b3dda5b674", Why: call.Why{Reason: call.RateLimit}})
	}
	b, err := json.Marshal(cp)
	if size := len(frame.Seal(b)); err != nil || size > 6<<10 {
		t.Errorf("%d bytes, %v", size, err)
	}
}
