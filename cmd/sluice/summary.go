package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
)

// topErrors is how many kinds of errors a summary lists.
const topErrors = 5

// summary tells people on standard error what a run came to.
func (a *app) summary(ctx context.Context, st *local.State, job *run.Job, w work, out string) error {
	var b strings.Builder
	writeSummary(&b, job.Run)
	if job.Run.Counts.Failed > 0 {
		if err := writeErrors(&b, faults(ctx, st, job)); err != nil {
			return err
		}
		fmt.Fprintf(&b, "  list them   sluice rows %s --status failed%s\n", job.Run.ID, w.stateArg())
	}
	writeFinish(&b, finishedIn(w.stateDir, job.Run))
	writeOutput(&b, job.Run.ID, w, out)
	_, err := fmt.Fprint(a.stderr, b.String())
	return err
}

// writeOutput says where the table is.
func writeOutput(b *strings.Builder, id string, w work, out string) {
	switch out {
	case "":
		fmt.Fprintf(b, "  output      none was asked for; sluice export %s --out FILE%s\n", id, w.stateArg())
	case "-":
		b.WriteString("  output      standard output\n")
	default:
		fmt.Fprintf(b, "  output      %s\n", clean(out))
	}
}

func writeSummary(b *strings.Builder, r *sheet.Run) {
	s := r.Stats
	fmt.Fprintf(b, "run %s (%s): %s\n", r.ID, clean(r.Name), r.Status)
	fmt.Fprintf(b, "  rows        %s of %s completed, %s failed", number(r.Counts.Completed), number(r.Sealed.Rows), number(r.Counts.Failed))
	if r.Sealed.Duplicates > 0 {
		fmt.Fprintf(b, "; %s left out", plural(r.Sealed.Duplicates, "duplicate", "duplicates"))
	}
	fmt.Fprintf(b, "\n  calls       %s: %s dispatched (%s refused with 429), %s reused, %s cached\n",
		number(s.Logical), number(s.Dispatched), number(s.Refused429), number(s.Reused), number(s.Cached))
	fmt.Fprintf(b, "  time        %s", span(cmp.Or(r.FinishedAt, time.Now()).Sub(r.StartedAt)))
	fmt.Fprintf(b, ", %s, %s; idle waits %s, rows held %s in all\n", plural(s.Slices, "slice", "slices"), plural(s.Parks, "park", "parks"),
		span(time.Duration(s.ResidentWaitMs)*time.Millisecond), span(time.Duration(s.HeldMs)*time.Millisecond))
	fmt.Fprintf(b, "  cost        %s\n", sheet.Money(s.CostMicros))
	writeMemory(b, s.Memory)
	if r.Usage.Operations == 0 { // a deployment tells of it in the bill
		return
	}
	fmt.Fprintf(b, "  storage     %s and %s in %s written; %s\n", plural(r.Usage.WriteUnits, "write unit", "write units"),
		plural(r.Usage.ReadUnits, "read unit", "read units"), plural(r.Usage.ItemsWritten, "item", "items"), perRow(r))
}

// writeMemory says what the admission to memory did (M8).
func writeMemory(b *strings.Builder, m sheet.MemoryUse) {
	if m.Bodies.Turns == 0 && m.HeapPeak == 0 {
		return
	}
	fmt.Fprintf(b, "  memory      %s of answers in %s, at most %s at once; %s for room, %s too large\n", bytesText(m.Bodies.Bytes),
		plural(m.Bodies.Turns, "turn", "turns"), bytesText(m.Bodies.Peak), plural(m.Bodies.Waits, "wait", "waits"), number(m.Bodies.Refusals))
	if m.HeapPeak > 0 {
		fmt.Fprintf(b, "              %s in use at most; fewer rows at work %s\n", bytesText(m.HeapPeak), plural(m.Squeezed, "time", "times"))
	}
}

// bytesText is a size as people write it.
func bytesText(n int64) string {
	switch {
	case n >= 10_000_000:
		return number(n/1_000_000) + " MB"
	case n >= 10_000:
		return number(n/1_000) + " KB"
	}
	return number(n) + " B"
}

func perRow(r *sheet.Run) string {
	if r.Sealed.Rows == 0 {
		return "no rows"
	}
	return fmt.Sprintf("%.2f write units a row", float64(r.Usage.WriteUnits)/float64(r.Sealed.Rows))
}

// faults are those of the rows that have failed.
func faults(ctx context.Context, st *local.State, job *run.Job) iter.Seq2[*sheet.Fault, error] {
	return func(yield func(*sheet.Fault, error) bool) {
		for v, err := range job.Rows(ctx, run.Ports{Store: st.Store}) {
			if err == nil && v.Status != run.StatusFailed {
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(v.Error, nil) {
				return
			}
		}
	}
}

// writeErrors lists the most frequent errors of failed rows. Messages that differ only in their row's data are
// counted under their code, with one of them as example.
func writeErrors(b *strings.Builder, failed iter.Seq2[*sheet.Fault, error]) error {
	type kind struct {
		key, example string
		rows         int64
	}
	kinds := map[string]*kind{}
	for fault, err := range failed {
		if err != nil {
			return err
		}
		if fault == nil {
			continue
		}
		key := fault.Column + ": " + fault.Code
		if kinds[key] == nil {
			kinds[key] = &kind{key: key, example: fault.Message}
		}
		kinds[key].rows++
	}
	list := slices.SortedFunc(maps.Values(kinds), func(a, b *kind) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), cmp.Compare(a.key, b.key))
	})
	for n, k := range list {
		if n == topErrors {
			fmt.Fprintf(b, "              and %s\n", plural(int64(len(list)-n), "other kind", "other kinds"))
			break
		}
		label := "failed"
		if n > 0 {
			label = ""
		}
		fmt.Fprintf(b, "  %-10s  %s × %s, such as: %s\n", label, number(k.rows), clean(k.key), shorten(clean(k.example), 200))
	}
	return nil
}
