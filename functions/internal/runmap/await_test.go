package runmap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
)

// The definition of the machine and the function mean the same by their names for how long a token is waited for.
func TestTheMachineWaitsNoLongerThanItIsTold(t *testing.T) {
	text, err := os.ReadFile("../../../statemachine/shard.asl.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		States map[string]struct {
			TimeoutSeconds int
			Choices        []struct{ Variable, StringEquals, Next string }
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	got := map[string]time.Duration{}
	for _, c := range m.States["Await"].Choices {
		got[c.StringEquals] = time.Duration(m.States[c.Next].TimeoutSeconds) * time.Second
	}
	want := map[string]time.Duration{withinHour: hour, withinMinutes: minutes, withinMoment: moment, withinSeconds: seconds}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the machine waits %v, the function means %v", got, want)
	}
}

func TestTokensAreWaitedForInSteps(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		time.Hour: "hour", 100 * time.Hour: "hour", time.Hour - 1: "minutes", 5 * time.Minute: "minutes", 5*time.Minute - 1: "moment",
		30 * time.Second: "moment", 30*time.Second - 1: "seconds", 10 * time.Second: "seconds", 10*time.Second - 1: "", 0: "", -time.Hour: "",
	} {
		if got := within(now.Add(left), now); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
	if got := within(time.Time{}, now); got != "hour" {
		t.Errorf("without a time: %q", got)
	}
}

// tokens stands in for Step Functions: it hands tokens out and takes them back.
type tokens struct {
	mu   sync.Mutex
	next int
	wait map[string]chan struct{}
	st   *store.Store
}

// Ring implements Bell, as machine.Bell does.
func (k *tokens) Ring(ctx context.Context, at run.ShardOf) error {
	for token, err := range sheet.Tokens(ctx, k.st, at.Run, at.Shard) {
		if err != nil {
			return err
		}
		k.mu.Lock()
		if c := k.wait[token.Text]; c != nil {
			close(c)
			delete(k.wait, token.Text)
		}
		k.mu.Unlock()
		_ = token.Drop(ctx, k.st)
	}
	return nil
}

func (k *tokens) hand() (string, chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	name, c := fmt.Sprint("token-", k.next), make(chan struct{})
	k.wait[name] = c
	return name, c
}

// machineWorld plays the shard's machine.
type machineWorld struct {
	*world
	keys   *tokens
	slices int
	waits  []time.Duration
}

func newMachineWorld(t *testing.T, p *provider) *machineWorld {
	w := newWorld(t, p)
	keys := &tokens{wait: map[string]chan struct{}{}, st: w.Store}
	w.Bell = keys
	return &machineWorld{world: w, keys: keys}
}

const askingMap = "version: 1\nname: asking\ncolumns:\n  - {name: ok, event: {key: \"go-${row.x}\", expires: 72h}}\n"

// play works shard 0 as the machine does, by its definition, until it is done.
func (w *machineWorld) play(t *testing.T) {
	t.Helper()
	timeouts := map[string]time.Duration{"hour": time.Hour, "minutes": 5 * time.Minute, "moment": 30 * time.Second, "seconds": 10 * time.Second}
	for {
		var s SliceResult
		w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &s)
		w.slices++
		began := time.Now()
		switch s.Outcome {
		case "done":
			return
		case "parked":
			at, err := time.Parse(time.RFC3339, s.WakeAt)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(at))
		case "awaiting":
			token, answered := w.keys.hand()
			// The machine waits for the token, not for the function.
			go func() {
				if err := w.ask(t.Context(), fmt.Sprintf(`{"op":"await","run":"r","shard":0,"token":%q}`, token), &AwaitResult{}); err != nil {
					t.Error(err)
				}
			}()
			select {
			case <-answered:
			case <-time.After(timeouts[s.Within]):
			}
		default:
			t.Fatalf("%+v", s)
		}
		w.waits = append(w.waits, time.Since(began))
	}
}

func (w *machineWorld) give(t *testing.T, st *store.Store, key string) error {
	got, err := run.Answer(context.WithoutCancel(t.Context()), st, key, json.RawMessage("true"), run.Whose{})
	if err != nil {
		return err
	}
	for _, shard := range got.Wake {
		if err := w.keys.Ring(context.WithoutCancel(t.Context()), shard); err != nil {
			return err
		}
	}
	return nil
}

func (w *machineWorld) begin(text, rows string) {
	w.registerMap("r", text, rows)
	w.must(`{"op":"plan","run":"r"}`, &PlanResult{})
}

// An answer wakes the machine at once, and nothing else does before its time but a look each hour.
func TestAnAnswerWakesTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMachineWorld(t, &provider{})
		w.begin(askingMap, "x\na\n")
		time.AfterFunc(10*time.Hour+20*time.Minute, func() {
			if err := w.give(t, w.Store, "go-a"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		w.play(t)
		if took := time.Since(began); took > 10*time.Hour+20*time.Minute+2*time.Second || w.slices != 12 {
			t.Errorf("done after %v, with %d slices, waits %v", took, w.slices, w.waits)
		}
	})
}

// Nobody answers: the machine comes at the second at which the event ends.
func TestTheMachineComesWhenTheEventEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMachineWorld(t, &provider{})
		w.begin(askingMap, "x\na\n")
		began := time.Now()
		w.play(t)
		if late := time.Since(began) - 72*time.Hour; late < 0 || late > 3*time.Second {
			t.Errorf("%v late", late)
		}
		if w.record("r").Counts.Failed != 1 || w.slices > 72+12+10+3+4 {
			t.Errorf("%+v after %d slices", w.record("r").Counts, w.slices)
		}
	})
}

// The shard's next time is near, because another row's event ends then. An answer is not left lying for longer than the last
// step before that time, whenever it comes.
func TestAnAnswerWaitsForSecondsAtMost(t *testing.T) {
	const mapText = "version: 1\ncolumns:\n  - {name: ok, event: {key: \"go-${row.x}\", expires: \"${row.for}\"}}\n" +
		"  - {name: y, call: a.get, with: {x: \"${row.x}\"}}\n"
	for after := time.Second; after < 58*time.Second; after += time.Second {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{}
			w := newMachineWorld(t, p)
			w.begin(mapText, "x,for\na,72h\nb,58s\n")
			time.AfterFunc(after, func() {
				if err := w.give(t, w.Store, "go-a"); err != nil {
					t.Error(err)
				}
				time.Sleep(seconds + 2*time.Second)
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.asked != 1 {
					t.Errorf("an answer after %v: %d calls have followed %v later", after, p.asked, seconds)
				}
			})
			w.play(t)
			time.Sleep(seconds + 2*time.Second)
		})
	}
}

// The answer comes right behind every single operation of the store while the machine works, between the slice and the
// token too. The machine never waits for the next look (E3).
func TestE3AnswerAtEveryMomentOfTheMachine(t *testing.T) {
	for n := 1; ; n++ {
		hit := false
		synctest.Test(t, func(t *testing.T) {
			w := newMachineWorld(t, &provider{})
			plain := &store.Store{Table: w.Store.Table, Blobs: w.Store.Blobs}
			faulty := tabletest.NewFaulty(w.Store.Table)
			w.Store.Table = faulty
			w.keys.st = plain
			w.begin(askingMap, "x\na\n")
			ops, began := 0, time.Now()
			var mu sync.Mutex
			faulty.OnOp(func(tabletest.Event) {
				mu.Lock()
				ops++
				now := ops == n && time.Since(began) < 20*time.Minute // else the machine waited, and was answered below
				hit = hit || now
				mu.Unlock()
				if !now {
					return
				}
				if err := w.give(t, plain, "go-a"); errors.Is(err, run.ErrNobodyWaits) {
					time.AfterFunc(time.Minute, func() { _ = w.give(t, plain, "go-a") })
				} else if err != nil {
					t.Error(err)
				}
			})
			time.AfterFunc(20*time.Minute, func() { _ = w.give(t, plain, "go-a") })
			w.play(t)
			if took := time.Since(began); hit && took > 70*time.Second {
				t.Errorf("answer behind operation %d: it took %v", n, took)
			}
		})
		if t.Failed() || !hit {
			t.Logf("%d operations", n-1)
			return
		}
	}
}

// Each write of the token, of the answer and of the bell is lost once, or done and reported as lost, and repeated by whoever
// made it: by the machine, which invokes again, and by who answers.
func TestE3FaultsOnTheWayOfAToken(t *testing.T) {
	for _, kind := range []tabletest.Kind{tabletest.NotDone, tabletest.DoneButFailed} {
		for _, prefix := range []string{"token/", "inbox/", ""} {
			synctest.Test(t, func(t *testing.T) {
				w := newMachineWorld(t, &provider{})
				w.begin(askingMap, "x\na\n")
				faulty := tabletest.NewFaulty(w.Store.Table)
				w.Store.Table = faulty
				faulty.Inject(tabletest.Fault{Kind: kind, Times: 1, On: func(op tabletest.Op, key table.Key) bool {
					return op.IsWrite() && (len(key.Sort) >= len(prefix) && key.Sort[:len(prefix)] == prefix && prefix != "" ||
						prefix == "" && len(key.Part) > 6 && key.Part[:6] == "event/")
				}})
				go func() {
					for time.Sleep(time.Minute); w.give(t, w.Store, "go-a") != nil; time.Sleep(time.Second) {
					}
				}()
				began := time.Now()
				w.playOnAndOn(t)
				if took := time.Since(began); took > 2*time.Minute {
					t.Errorf("%q, kind %d: it took %v", prefix, kind, took)
				}
			})
		}
	}
}

// playOnAndOn is play for a store that fails: what the machine invokes is invoked again.
func (w *machineWorld) playOnAndOn(t *testing.T) {
	t.Helper()
	again := func(request string, into any) {
		for w.ask(t.Context(), request, into) != nil {
			time.Sleep(2 * time.Second)
		}
	}
	for {
		var s SliceResult
		again(`{"op":"slice","run":"r","shard":0,"slices":0}`, &s)
		switch s.Outcome {
		case "done":
			return
		case "parked":
			at, _ := time.Parse(time.RFC3339, s.WakeAt)
			time.Sleep(time.Until(at))
		case "awaiting":
			token, answered := w.keys.hand()
			go again(fmt.Sprintf(`{"op":"await","run":"r","shard":0,"token":%q}`, token), &AwaitResult{})
			select {
			case <-answered:
			case <-time.After(time.Hour):
			}
		}
	}
}

// A run that is paused or cancelled while its machine waits for a token is told by the same bell.
func TestAwaitSeesWhatIsAskedOfTheRun(t *testing.T) {
	w := newMachineWorld(t, &provider{})
	w.begin(askingMap, "x\na\n")
	w.must(`{"op":"slice","run":"r","shard":0,"slices":0}`, &SliceResult{})
	if err := run.Cancel(t.Context(), w.Store, "r"); err != nil {
		t.Fatal(err)
	}
	token, answered := w.keys.hand()
	var got AwaitResult
	w.must(fmt.Sprintf(`{"op":"await","run":"r","shard":0,"token":%q}`, token), &got)
	if !got.Rang {
		t.Error("nothing was seen")
	}
	<-answered
}

// The messages of events/ are what the function returns and takes.
func TestMessagesOfAwaiting(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expect(t, "runmap-slice-response-awaiting.json", &SliceResult{Run: "leads-2026-01", Outcome: string(run.Awaiting), WakeAt: stamp(at), Within: withinHour, Slices: 1})
	w := newMachineWorld(t, &provider{})
	w.must(sample(t, "runmap-await-request.json"), &AwaitResult{})
	var kept []string
	for token, err := range sheet.Tokens(t.Context(), w.Store, "leads-2026-01", 0) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, token.Text)
	}
	if len(kept) != 0 { // there is no such shard: the machine is to go on at once, and to find out
		t.Errorf("kept %q", kept)
	}
}

func TestAwaitWithoutAToken(t *testing.T) {
	w := newMachineWorld(t, &provider{})
	if err := w.ask(t.Context(), `{"op":"await","run":"r","shard":0}`, &AwaitResult{}); err == nil {
		t.Error("taken")
	}
}
