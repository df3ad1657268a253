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
//	run/<id>/in             pages, manifest         sealed input (package intake)
//	run/<id>/out            p/<page>/<epoch>        result pages
//	run/<id>/shard/<n>      checkpoint              who works the shard, and from where
//	run/<id>/shard/<n>      j/<epoch>/<seq>         the journal
const listPart = "runs"

func runPart(id string) string { return "run/" + id }

func recordKey(id string) table.Key { return table.Key{Part: runPart(id), Sort: "record"} }

func controlKey(id string) table.Key { return table.Key{Part: runPart(id), Sort: "control"} }

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
