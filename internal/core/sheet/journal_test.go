package sheet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

// onEveryStore runs a test inside a bubble of fake time, once on each store, with faults to inject.
func onEveryStore(t *testing.T, test func(t *testing.T, st *store.Store, faulty *tabletest.Faulty)) {
	t.Helper()
	run := func(t *testing.T, tbl table.Table) {
		faulty := tabletest.NewFaulty(tbl)
		test(t, &store.Store{Table: faulty, Blobs: memory.NewBlobs()}, faulty)
	}
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { run(t, memory.New()) })
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state.db")
		synctest.Test(t, func(t *testing.T) {
			tbl, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer tbl.Close()
			run(t, tbl)
		})
	})
}

// told collects what a journal says of its commits.
type told struct {
	mu   sync.Mutex
	ends sheet.Counts
	errs []error
}

func (x *told) hear(ends sheet.Counts, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.errs = append(x.errs, err)
		return
	}
	x.ends = x.ends.Plus(ends)
}

func open(st *store.Store, epoch int64, x *told) *sheet.Journal {
	return sheet.OpenJournal(st, sheet.JournalOptions{
		Run: "r", Epoch: epoch, Stats: func() sheet.Stats { return sheet.Stats{Dispatched: 7} }, Told: x.hear,
	})
}

func received(row int64, v string) *sheet.Entry {
	return &sheet.Entry{Kind: sheet.Received, Row: row, Receipt: sheet.Receipt{Column: 1, Value: json.RawMessage(v), Shared: "abc"}}
}

func replay(t *testing.T, st *store.Store, from sheet.Position) []sheet.Entry {
	t.Helper()
	var all []sheet.Entry
	for g, err := range sheet.Replay(t.Context(), st, "r", 0, from) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g.Entries...)
	}
	return all
}

func TestJournalReplaysWhatWasAppendedInOrder(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, _ *tabletest.Faulty) {
		want := []sheet.Entry{
			{Kind: sheet.Received, Row: 3, Receipt: sheet.Receipt{Column: 1, Step: 2, Value: json.RawMessage(`{"a":[1,"ü"]}`), Shared: "x"}},
			{Kind: sheet.Received, Row: 3, Receipt: sheet.Receipt{Column: 2, Error: &call.Error{Code: "HTTP_422", Message: "say \"no\"\n"}}},
			{Kind: sheet.Received, Row: 3, Receipt: sheet.Receipt{Column: 3, Rejected: true}},
			{Kind: sheet.Received, Row: 3, Receipt: sheet.Receipt{Column: 4, Value: json.RawMessage(`null`)}},
			{Kind: sheet.Tried, Row: 4, Receipt: sheet.Receipt{Column: 1}, Next: 3, Refused: 2, Batch: &call.Batch{ID: "b", Leader: call.Place{Row: 4, Column: 1}, Size: 2, Members: []call.Place{{Row: 4, Column: 1}, {Row: 5, Column: 1, Step: 2}}}},
			{Kind: sheet.RowEnded, Row: 3, Cells: sheet.Cells{json.RawMessage(`"v"`), nil, json.RawMessage(`null`)}},
			{Kind: sheet.RowEnded, Row: 9, Fault: &sheet.Fault{Column: "c", Code: "X", Message: "why"}},
		}
		j := open(st, 1, &told{})
		for i := range want {
			ticket, err := j.Append(&want[i])
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 { // some in a group of their own
				if err := ticket.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		j.Close()
		if diff := cmp.Diff(want, replay(t, st, sheet.Position{Epoch: 1})); diff != "" {
			t.Error(diff)
		}
	})
}

// What arrives while a group is being committed is committed together: many entries, few writes.
func TestJournalCommitsInGroups(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, faulty *tabletest.Faulty) {
		faulty.Inject(tabletest.Fault{Kind: tabletest.Slow, Delay: 10 * time.Millisecond})
		j := open(st, 1, &told{})
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				ticket, err := j.Append(received(int64(i), `1`))
				if err == nil {
					err = ticket.Wait(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		j.Close()
		if n := faulty.Count(tabletest.OpPut); n > 3 {
			t.Errorf("64 entries at once took %d writes", n)
		}
		if n := len(replay(t, st, sheet.Position{Epoch: 1})); n != 64 {
			t.Errorf("%d entries are there", n)
		}
	})
}

func TestJournalLingersForCompany(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, faulty *tabletest.Faulty) {
		j := sheet.OpenJournal(st, sheet.JournalOptions{
			Run: "r", Epoch: 1, Linger: 25 * time.Millisecond, Stats: func() sheet.Stats { return sheet.Stats{} }, Told: (&told{}).hear,
		})
		for i := range 10 {
			if _, err := j.Append(received(int64(i), `1`)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		j.Close()
		if n := faulty.Count(tabletest.OpPut); n != 1 {
			t.Errorf("10 entries within 25 ms took %d writes", n)
		}
	})
}

// T5: a failed write closes the journal; whoever waits hears of it, and nothing more is taken.
func TestT5FailedWriteClosesTheJournal(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, faulty *tabletest.Faulty) {
		var x told
		j := open(st, 1, &x)
		faulty.Inject(tabletest.Fault{Kind: tabletest.NotDone, On: func(op tabletest.Op, _ table.Key) bool { return op == tabletest.OpPut }})
		ticket, err := j.Append(&sheet.Entry{Kind: sheet.RowEnded, Row: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := ticket.Wait(t.Context()); !errors.Is(err, sheet.ErrJournal) {
			t.Errorf("waiting gave %v", err)
		}
		if _, err := j.Append(received(2, `1`)); !errors.Is(err, sheet.ErrJournal) {
			t.Errorf("appending afterwards gave %v", err)
		}
		j.Close()
		if counts, _ := j.Counted(); counts.Ended() != 0 || len(x.errs) == 0 {
			t.Errorf("%v ended, told of %v", counts, x.errs)
		}
	})
}

// A write that fails for a moment is repeated: what was paid for is not given up. Meanwhile the journal says so.
func TestT5TroubleIsSaidWhileAWriteIsRepeated(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, faulty *tabletest.Faulty) {
		var x told
		j := open(st, 1, &x)
		faulty.Inject(tabletest.Fault{Kind: tabletest.DoneButFailed, Times: 1})
		ticket, err := j.Append(&sheet.Entry{Kind: sheet.RowEnded, Row: 1})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // the first write has failed, the second is 50 ms away
		if !j.Trouble() {
			t.Error("the failed write is kept secret")
		}
		if err := ticket.Wait(t.Context()); err != nil || j.Trouble() {
			t.Errorf("the repeated write: %v, trouble %v", err, j.Trouble())
		}
		j.Close()
		if n := len(replay(t, st, sheet.Position{Epoch: 1})); n != 1 || x.ends.Completed != 1 {
			t.Errorf("%d entries, %v ended", n, x.ends)
		}
	})
}

func TestJournalCountsAndCuts(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, _ *tabletest.Faulty) {
		j := open(st, 2, &told{})
		var at sheet.Position
		for i := range 4 {
			ticket, err := j.Append(&sheet.Entry{Kind: sheet.RowEnded, Row: int64(i), Fault: map[bool]*sheet.Fault{true: {Code: "X"}}[i == 3]})
			if err == nil {
				err = ticket.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			at = ticket.At()
		}
		synctest.Wait()
		counts, counted := j.Counted()
		if counts != (sheet.Counts{Completed: 3, Failed: 1}) || !at.Before(counted) {
			t.Errorf("%+v before %+v", counts, counted)
		}
		if err := sheet.Cut(t.Context(), st, "r", 0, at); err != nil {
			t.Fatal(err)
		}
		got := replay(t, st, sheet.Position{})
		if len(got) != 1 || got[0].Row != 3 {
			t.Errorf("after the cut: %+v", got)
		}
		if n := j.Since(at); n <= 0 || n > 200 {
			t.Errorf("%d bytes since the last group", n)
		}
		j.Close()
	})
}

// Entries that are written by hand read back as the generic decoder reads them.
func FuzzDecodeGroup(f *testing.F) {
	f.Add([]byte("\\\x01"), `{"a":1}`, "code")
	f.Fuzz(func(t *testing.T, framed []byte, v, text string) {
		if g, err := sheet.DecodeGroup(framed); err == nil && len(g.Entries) > 1<<20 {
			t.Error("a small frame became a million entries")
		}
		raw := json.RawMessage(v)
		if !json.Valid(raw) {
			return
		}
		st := &store.Store{Table: memory.New()}
		want := sheet.Entry{Kind: sheet.Received, Row: 1, Receipt: sheet.Receipt{Column: 2, Value: raw}}
		if json.Valid(fmt.Appendf(nil, "%q", text)) {
			want.Error = &call.Error{Code: text, Message: text}
			if b, err := json.Marshal(text); err != nil || json.Unmarshal(b, &want.Error.Code) != nil || want.Error.Code != text {
				want.Error = nil // not valid UTF-8: replaced on the way
			} else {
				want.Error.Message = want.Error.Code
			}
		}
		j := open(st, 1, &told{})
		if _, err := j.Append(&want); err != nil {
			t.Fatal(err)
		}
		j.Close()
		got := replay(t, st, sheet.Position{})
		if len(got) != 1 || string(got[0].Value) != compact(v) && string(got[0].Value) != v || !cmp.Equal(got[0].Error, want.Error) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func compact(v string) string {
	b, err := json.Marshal(json.RawMessage(v))
	if err != nil {
		return v
	}
	return string(b)
}

// Where calls are few, a group waits for a full unit of billing instead of costing one for every entry.
func TestJournalThatIsBilledWaitsForAFullUnit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st *store.Store, faulty *tabletest.Faulty) {
		j := sheet.OpenJournal(st, sheet.JournalOptions{
			Run: "r", Epoch: 1, Linger: 25 * time.Millisecond, Keep: time.Hour, Stats: func() sheet.Stats { return sheet.Stats{} }, Told: (&told{}).hear,
		})
		for i := range 40 { // two seconds of twenty calls each
			if _, err := j.Append(received(int64(i), `"x"`)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		j.Close()
		if n := faulty.Count(tabletest.OpPut); n > 9 { // one every 250 ms
			t.Errorf("40 entries in 2 s took %d writes", n)
		}
		if n := len(replay(t, st, sheet.Position{})); n != 40 {
			t.Errorf("%d entries are there", n)
		}
		time.Sleep(time.Hour)
		if n := len(replay(t, st, sheet.Position{})); n != 0 {
			t.Errorf("%d entries are there after an hour", n)
		}
	})
}
