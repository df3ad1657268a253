package run

import (
	"testing"
	"time"

	"sluice/internal/core/mapspec"
)

// What a lane knows of its provider's windows by what it has sent: windows are enlarged by their slack, a second by 30 ms.
func TestH17ALaneKeepsCallsThatTheGatewayWouldRefuse(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	now := time.Now()
	ago := func(d time.Duration, calls int) *parcel { return &parcel{now.Add(-d), calls} }
	second, minute := mapspec.Limit{Rate: 10, Per: s}, mapspec.Limit{Rate: 30, Per: time.Minute}
	for _, tt := range []struct {
		why     string
		limits  []mapspec.Limit
		parcels []*parcel
		flying  int
		waiting int
		calls   int
		wait    time.Duration
	}{
		{"nothing was sent", []mapspec.Limit{second}, nil, 0, 99, 10, 0},
		{"a large limit is used in equal parts", []mapspec.Limit{{Rate: 500, Per: s}}, nil, 0, 99, 63, 0},
		{"and nothing of it remains", []mapspec.Limit{{Rate: 100, Per: s}}, []*parcel{ago(50*ms, 50)}, 1, 99, 50, 0},
		{"the window is full", []mapspec.Limit{second}, []*parcel{ago(200*ms, 10)}, 1, 99, 0, 830 * ms},
		{"the window is over", []mapspec.Limit{second}, []*parcel{ago(1030*ms, 10)}, 0, 99, 10, 0},
		{"a part is free, and enough", []mapspec.Limit{second}, []*parcel{ago(200*ms, 4)}, 0, 6, 6, 0},
		{"a part is free, and more wait", []mapspec.Limit{second}, []*parcel{ago(700*ms, 3), ago(200*ms, 4)}, 0, 6, 3, 330 * ms},
		{"a part is free, and many wait", []mapspec.Limit{second}, []*parcel{ago(700*ms, 3), ago(200*ms, 4)}, 0, 99, 3, 830 * ms},
		{"calls came back unsent", []mapspec.Limit{second}, []*parcel{ago(200*ms, 0)}, 0, 99, 10, 0},
		{"a long window is nearly full", []mapspec.Limit{second, minute}, []*parcel{ago(9*s, 10), ago(5*s, 10), ago(2*s, 4)}, 0, 99, 6, 0},
		{"a long window is full, and a batch brings its time", []mapspec.Limit{minute}, []*parcel{ago(9*s, 20), ago(50*ms, 10)}, 1, 99, 0, 51250 * ms},
		{"a long window is full, and nobody says until when", []mapspec.Limit{minute}, []*parcel{ago(9*s, 20), ago(5*s, 10)}, 0, 99, 1, 0},
		{"a very long one is the gateway's", []mapspec.Limit{{Rate: 30, Per: time.Hour}}, []*parcel{ago(9*s, 30)}, 0, 99, batchSize, 0},
	} {
		b := newBatching(&mapspec.Provider{Limits: tt.limits}, 25*ms, 5*s)
		b.parcels, b.flying = tt.parcels, tt.flying
		calls, wait := b.room(now, tt.waiting)
		if wait != tt.wait || wait == 0 && calls != tt.calls {
			t.Errorf("%s: %d calls in %v, want %d in %v", tt.why, calls, wait, tt.calls, tt.wait)
		}
	}
}

// Where nothing is billed, a lane leaves it to the gateway.
func TestALaneThatIsNotBilledSendsAtOnce(t *testing.T) {
	b := newBatching(&mapspec.Provider{Limits: []mapspec.Limit{{Rate: 1, Per: time.Second}}}, 0, 5*time.Second)
	b.send(time.Now(), []*unit{{}, {}})
	if calls, wait := b.room(time.Now(), 99); calls != batchSize || wait != 0 || b.gathers(0) {
		t.Errorf("%d calls in %v", calls, wait)
	}
}
