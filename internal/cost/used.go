package cost

import (
	"cmp"

	"sluice/internal/core/sheet"
)

// Memory of the functions in MB, as infra/cdk deploys them unless it is told otherwise: for runs of a laptop.
const (
	RunmapMB   = 512
	ToolexecMB = 512
)

// rolloverAfter slices, the shard's machine goes on in a new execution (runmap.RolloverAfter).
const rolloverAfter = 1300

// Used is what a run has used so far, as its record says. Where the run was worked on a laptop, it is what the same work
// would use: the same slices, batches of calls and writes, and the time that they took there.
func Used(r *sheet.Run) Usage {
	s, stored := r.Stats, r.Usage.Add(r.SliceUsage)
	const planAndFinish = 2
	return Usage{
		Rows:           r.Sealed.Rows,
		Transitions:    StateTransitions(int64(r.Shards), s.Slices, s.Parks, s.Awaits),
		RunmapRequests: s.Slices + s.Awaits + planAndFinish, ToolexecRequests: s.ToolBatches,
		RunmapMs: s.SliceMs + r.PlanMs + r.FinishMs, ResidentWaitMs: s.ResidentWaitMs, ToolexecMs: s.ToolMs,
		RunmapMB: cmp.Or(s.SliceMB, RunmapMB), ToolexecMB: cmp.Or(s.ToolMB, ToolexecMB),
		WriteUnits: stored.WriteUnits, ReadUnits: stored.ReadUnits,
		Puts: 2, Gets: 2, // the input and the table, put and fetched
	}
}

// StateTransitions counts the states that the machines enter (statemachine/run.asl.json, shard.asl.json), and one more
// for the start and one for the end of every execution: AWS says that it counts "each time a step of your workflow is
// executed", not whether these two are steps, so this is the upper reading.
//
//	run    start, Plan, Shards, Finish, Ended, Done, end   7
//	shard  Shard (in the Map), start, Done, end            4 for each
//	slice  Slice, Outcome; of `finish` Finish, Ended       2 for each
//	park   Park; of `finish` Rest                          1 for each
//	await  Await, and AwaitHour or another instead of Park  1 more for each
//	rollover  Rollover, start, Done, end                   4 for each: after every 1,300 slices of a shard
//
// Rollovers are counted as if all slices were one shard's, which is the most that there can be. Retries are not known.
func StateTransitions(shards, slices, parks, awaits int64) int64 {
	rollovers := max(slices-1, 0) / rolloverAfter
	return 7 + 4*shards + 2*slices + parks + awaits + 4*rollovers
}
