// Package sheet owns the durable state of a run: its record, the checkpoint and journal of each shard, and the
// result pages. It refuses to decide anything: what is written, and when, is the engine's business (package run).
package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/intake"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/core/value"
)

// Status is where a run stands.
type Status string

// The statuses of a run. A parked run goes on by itself, a paused one when it is told to. Completed means that every
// row has ended, failed rows included; Failed means that the run as a whole could not be brought to an end; Cancelled,
// that somebody did not want it to go on.
const (
	Staging   Status = "staging"
	Running   Status = "running"
	Parked    Status = "parked"
	Paused    Status = "paused"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Ended reports whether the run is over.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Cancelled }

// Pause is why a run does not go on by itself, and since when.
type Pause struct {
	Reason string    `json:"reason,omitempty"` // empty: somebody asked for it
	At     time.Time `json:"at"`
}

// Run is a run's record: what it is, and the last that is known of it. While a shard is at work the live counts
// are in its checkpoint; Load merges them.
type Run struct {
	V           int           `json:"v"`
	ID          string        `json:"id"`
	Name        string        `json:"name"` // of the map
	Status      Status        `json:"status"`
	MapFile     string        `json:"mapFile"`
	MapDigest   string        `json:"mapDigest"` // of map, tools and vars together
	Vars        Vars          `json:"vars,omitempty"`
	Input       string        `json:"input"` // name of the source
	Fingerprint string        `json:"fingerprint"`
	Limit       int64         `json:"limit,omitempty"`
	Source      *Source       `json:"source,omitempty"` // nil: read by the process that started the run
	Sealed      intake.Sealed `json:"sealed"`
	Shards      int           `json:"shards"`
	ShardEnds   []int         `json:"shardEnds,omitempty"` // of a run that was extended: where each shard's pages end; else they are dealt evenly
	Concurrency int           `json:"concurrency,omitempty"`
	Budget      Budget        `json:"budget,omitzero"` // the map's
	Force       bool          `json:"force,omitempty"`
	Out         string        `json:"out,omitempty"`
	Statuses    bool          `json:"statusColumns,omitempty"`
	Error       string        `json:"error,omitempty"`
	CreatedAt   time.Time     `json:"createdAt"`
	StartedAt   time.Time     `json:"startedAt,omitzero"`
	FinishedAt  time.Time     `json:"finishedAt,omitzero"`
	WakeAt      time.Time     `json:"wakeAt,omitzero"`
	Pause       *Pause        `json:"pause,omitempty"`     // of a run that is paused
	Restarts    int           `json:"restarts,omitempty"`  // executions that took over from one that died
	Continued   int           `json:"continued,omitempty"` // how often it was told to go on, and executions before that
	// WholeAt is since when only steps of `finish` are left to do; zero before, and once they are done. Who puts rows of
	// such a run to work again makes it zero, and counts one more of Endings: the steps that were begun told of another end.
	WholeAt    time.Time    `json:"wholeAt,omitzero"`
	Endings    int          `json:"endings,omitempty"` // how often it has completed
	Finish     []FinishStep `json:"finish,omitempty"`  // what became of the map's `finish`, at its last end
	Extension  *Extension   `json:"extension,omitempty"`
	Counts     Counts       `json:"counts"`
	Stats      Stats        `json:"stats"`
	Usage      table.Usage  `json:"usage"`               // of the store, by whoever works on the run; slices of Lambda book theirs apart
	SliceUsage table.Usage  `json:"sliceUsage,omitzero"` // what the shards' checkpoints have booked (store.Store, Meter)
	PlanMs     int64        `json:"planMs,omitempty"`    // reading and sealing the input took
	FinishMs   int64        `json:"finishMs,omitempty"`  // the check of the sheet, and in the cloud the export, took

	version int64
}

// Source says where the input of a run that is planned later lies, and how it is read (intake.Options).
type Source struct {
	Object    string `json:"object"` // name in the blob store
	Format    string `json:"format,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
	Delimiter byte   `json:"delimiter,omitempty"`
	SHA256    string `json:"sha256,omitempty"` // of the object, in hex; empty: any content is taken
}

// Vars are the run's variables, defaults already merged in.
type Vars map[string]any

// UnmarshalJSON keeps integers integers.
func (v *Vars) UnmarshalJSON(b []byte) error {
	decoded, err := value.Decode(b)
	if err != nil {
		return err
	}
	*v, _ = decoded.(map[string]any)
	return nil
}

// Counts are rows that have ended.
type Counts struct {
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
}

// Ended is the number of rows that have ended either way.
func (c Counts) Ended() int64 { return c.Completed + c.Failed }

// Plus adds the counts of another shard.
func (c Counts) Plus(d Counts) Counts {
	return Counts{Completed: c.Completed + d.Completed, Failed: c.Failed + d.Failed}
}

// Stats is what the work has come to so far. Durations are milliseconds.
type Stats struct {
	Logical        int64 `json:"logical"`    // calls made by cells
	Dispatched     int64 `json:"dispatched"` // requests that may have reached a provider
	Refused429     int64 `json:"refused429"` // of them, answered with a hold
	Reused         int64 `json:"reused"`     // calls answered by an identical call of this run
	Cached         int64 `json:"cached"`     // calls answered by an earlier run
	Slices         int64 `json:"slices"`
	Parks          int64 `json:"parks"`
	Awaits         int64 `json:"awaits,omitempty"` // of them, those that an answer may end
	ResidentWaitMs int64 `json:"residentWaitMs"`   // waited inside a slice with every row waiting
	HeldMs         int64 `json:"heldMs"`           // sum over rows of the time they were held
	CostMicros     int64 `json:"costMicros"`       // millionths of the money unit
	SliceMs        int64 `json:"sliceMs"`          // wall time of slices, side by side or not; what waits after a park is not in it
	ToolBatches    int64 `json:"toolBatches"`      // batches of calls that went to the gateway; in the cloud, invocations of toolexec
	ToolMs         int64 `json:"toolMs"`           // sum over batches of the time until their last answer; in the cloud, what toolexec says
	// Memory of the functions that worked, in MB; 0: no functions did.
	SliceMB int64 `json:"sliceMB,omitempty"`
	ToolMB  int64 `json:"toolMB,omitempty"`

	Memory MemoryUse `json:"memory,omitzero"`
}

// MemoryUse is what the admission to memory did (M8).
type MemoryUse struct {
	Bodies   call.BodyUse `json:"bodies,omitzero"`
	HeapPeak int64        `json:"heapPeak,omitempty"` // most bytes that a process had in use; 0: it has no limit to keep
	Squeezed int64        `json:"squeezed,omitempty"` // how often fewer rows were put at work because memory was full
}

// Plus adds the use of another process.
func (m MemoryUse) Plus(o MemoryUse) MemoryUse {
	return MemoryUse{Bodies: m.Bodies.Plus(o.Bodies), HeapPeak: max(m.HeapPeak, o.HeapPeak), Squeezed: m.Squeezed + o.Squeezed}
}

// Plus adds the stats of another shard.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Logical: s.Logical + o.Logical, Dispatched: s.Dispatched + o.Dispatched, Refused429: s.Refused429 + o.Refused429,
		Reused: s.Reused + o.Reused, Cached: s.Cached + o.Cached, Slices: s.Slices + o.Slices, Parks: s.Parks + o.Parks, Awaits: s.Awaits + o.Awaits,
		ResidentWaitMs: s.ResidentWaitMs + o.ResidentWaitMs, HeldMs: s.HeldMs + o.HeldMs, CostMicros: s.CostMicros + o.CostMicros,
		SliceMs: s.SliceMs + o.SliceMs, ToolBatches: s.ToolBatches + o.ToolBatches, ToolMs: s.ToolMs + o.ToolMs,
		SliceMB: max(s.SliceMB, o.SliceMB), ToolMB: max(s.ToolMB, o.ToolMB),
		Memory: s.Memory.Plus(o.Memory),
	}
}

// ErrNoRun: there is no run of that id.
var ErrNoRun = errors.New("no such run")

// Execution numbers the executions that have worked on the run: those that took over, and those that went on.
func (r *Run) Execution() int { return r.Continued + r.Restarts }

// Create writes a new run's record and its entry in the list; table.ErrConflict if the id is taken.
func Create(ctx context.Context, st *store.Store, r *Run) error {
	r.V, r.version = 1, 1
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := st.Table.Put(ctx, table.Item{Key: recordKey(r.ID), Version: 1, Data: data}, table.Absent()); err != nil {
		return err
	}
	return st.Table.Put(ctx, table.Item{Key: listKey(r.ID), Version: 1, Data: []byte(r.ID)}, table.Always())
}

// Save replaces the record; table.ErrConflict if somebody else changed it since it was loaded.
func Save(ctx context.Context, st *store.Store, r *Run) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = st.Table.Put(ctx, table.Item{Key: recordKey(r.ID), Version: r.version + 1, Data: data}, table.VersionIs(r.version))
	if err == nil {
		r.version++
	}
	return err
}

// Remove takes a run that never came to be out of the list. Its id is free again.
func Remove(ctx context.Context, st *store.Store, r *Run) error {
	if err := st.Table.Delete(ctx, listKey(r.ID), table.Always()); err != nil {
		return err
	}
	return st.Table.Delete(ctx, recordKey(r.ID), table.VersionIs(r.version))
}

// LoadRecord reads a run's record as it is stored: counts and stats are those of the last time that it was saved.
func LoadRecord(ctx context.Context, st *store.Store, id string) (*Run, error) {
	item, err := st.Table.Get(ctx, recordKey(id))
	if errors.Is(err, table.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q", ErrNoRun, id)
	}
	if err != nil {
		return nil, err
	}
	r := &Run{version: item.Version}
	if err := json.Unmarshal(item.Data, r); err != nil {
		return nil, fmt.Errorf("record of run %s: %w", id, err)
	}
	return r, nil
}

// Load reads a run's record; for a run that has not ended, counts and stats are those of its shards' checkpoints.
func Load(ctx context.Context, st *store.Store, id string) (*Run, error) {
	r, err := LoadRecord(ctx, st, id)
	if err != nil || r.Status.Ended() {
		return r, err
	}
	return r, r.Refresh(ctx, st)
}

// List yields the runs, newest first (ids sort by time unless the user chose them).
func List(ctx context.Context, st *store.Store) iter.Seq2[*Run, error] {
	return ListBefore(ctx, st, "")
}

// ListBefore yields the runs whose ids sort before the given one, in the order of List; empty: all.
func ListBefore(ctx context.Context, st *store.Store, id string) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for item, err := range st.Table.Query(ctx, table.Query{Part: listPart, To: id, Reverse: true}) {
			if err != nil {
				yield(nil, err)
				return
			}
			r, err := Load(ctx, st, item.Sort)
			if errors.Is(err, ErrNoRun) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
