package sheet

import (
	"fmt"

	"sluice/internal/core/table"
)

// The keys of a run in the table. Everything of a run starts with its part, so that one run can be found, listed
// and removed without touching another.
//
//	runs                    <id>                    the list of runs
//	run/<id>                record, doc/<digest>    what the run is
//	run/<id>                control                 what people ask of it
//	run/<id>                spending                what its shards have taken of its budget
//	run/<id>/in             pages, manifest         sealed input (package intake)
//	run/<id>/out            p/<page>/<epoch>        result pages
//	run/<id>/shard/<n>      checkpoint              who works the shard, and from where
//	run/<id>/shard/<n>      j/<epoch>/<seq>         the journal
//	run/<id>/shard/<n>      w/<time>/<row>          the wait list: rows that sleep or wait for answers
//	run/<id>/shard/<n>      inbox/<row>/...         rows whose events have been answered
//
// Who waits for an event is found by its key, over all runs:
//
//	event/<digest of key>   <run>/<row>/...         a waiter
const listPart = "runs"

const (
	waitPrefix  = "w/"
	inboxPrefix = "inbox/"
)

func runPart(id string) string { return "run/" + id }

func recordKey(id string) table.Key { return table.Key{Part: runPart(id), Sort: "record"} }

func controlKey(id string) table.Key { return table.Key{Part: runPart(id), Sort: "control"} }

func spendingKey(id string) table.Key { return table.Key{Part: runPart(id), Sort: "spending"} }

func listKey(id string) table.Key { return table.Key{Part: listPart, Sort: id} }

func documentKey(r *Run) table.Key { return table.Key{Part: runPart(r.ID), Sort: "doc/" + r.MapDigest} }

func shardPart(id string, shard int) string { return fmt.Sprintf("run/%s/shard/%04d", id, shard) }

func checkpointKey(id string, shard int) table.Key {
	return table.Key{Part: shardPart(id, shard), Sort: "checkpoint"}
}

func journalSort(p Position) string { return fmt.Sprintf("j/%08d/%010d", p.Epoch, p.Seq) }

// pageKey carries the epoch of the slice that writes, as the journal's keys do: a slice that has lost its shard and
// does not know it yet cannot overwrite what its successor has saved.
func pageKey(id string, page int, epoch int64) table.Key {
	return table.Key{Part: runPart(id) + "/out", Sort: fmt.Sprintf("p/%08d/%08d", page, epoch)}
}
