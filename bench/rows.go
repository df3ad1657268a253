package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// rowsOptions are the options of `go run . rows`.
type rowsOptions struct {
	rows, short int
	dir         string
	child       string // store/load: this process makes one run and prints its rowsScore
}

// rowsScore is what one run came to, in a process of its own.
type rowsScore struct {
	Store, Load string
	Rows        int
	Work        float64 // seconds from the first slice to the end of the last one
	All         float64 // seconds with reading, sealing and the final check
	CPU         float64 // processor seconds of all that
	WriteUnits  float64 // a row, without the sealed input
	InputUnits  float64 // a row, of the sealed input
	Peak        int64   // bytes, largest resident size; measured by the parent
}

// rowsCommand is `go run . rows`: rows per second, memory, and what is written.
func rowsCommand(ctx context.Context, args []string) error {
	var o rowsOptions
	flags := flag.NewFlagSet("rows", flag.ContinueOnError)
	flags.IntVar(&o.rows, "rows", 1_000_000, "rows of the long runs")
	flags.IntVar(&o.short, "short", 0, "rows of the runs that memory is compared with; default: a tenth")
	flags.StringVar(&o.dir, "dir", ".state", "folder for the databases; on a real disk")
	flags.StringVar(&o.child, "child", "", "for internal use: make one run, of this store and load, and print its figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.short == 0 {
		o.short = o.rows / 10
	}
	if flags.NArg() > 0 || o.rows < 10 || o.short < 1 {
		return errors.New("rows must be 10 or more, short positive, and there are no arguments")
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	if o.child != "" {
		return o.runChild(ctx)
	}
	scores, err := o.measure(ctx)
	if err != nil {
		return err
	}
	printRows(os.Stdout, scores)
	return nil
}

// The loads: one value column and one call; the row whose storage the project promises; and the same with the settings
// that are used where every write is billed.
const (
	oneCall    = "one call"
	threeCalls = "three calls of 300 bytes"
	billed     = threeCalls + ", billed"
)

func (o rowsOptions) measure(ctx context.Context) (scores []rowsScore, err error) {
	for _, c := range []struct {
		store, load string
		rows        int
	}{
		{"memory", oneCall, o.short}, {"memory", oneCall, o.rows}, {"sqlite", oneCall, o.short}, {"sqlite", oneCall, o.rows},
		{"sqlite", threeCalls, o.short}, {"memory", billed, o.short},
	} {
		fmt.Fprintf(os.Stderr, "%s, %s, %d rows\n", c.store, c.load, c.rows)
		score, err := o.spawn(ctx, c.store, c.load, c.rows)
		if err != nil {
			return nil, err
		}
		scores = append(scores, score)
	}
	return scores, nil
}

// spawn makes a run in a process of its own, because a process's peak memory never falls.
func (o rowsOptions) spawn(ctx context.Context, store, load string, rows int) (score rowsScore, err error) {
	self, err := os.Executable()
	if err != nil {
		return score, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "rows", "--child", store+"/"+load, "--rows", fmt.Sprint(rows), "--short", "1", "--dir", o.dir)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return score, err
	}
	if err := json.Unmarshal(out.Bytes(), &score); err != nil {
		return score, err
	}
	score.Peak = peakMemory(cmd.ProcessState)
	return score, nil
}

// peakMemory is the ended process's largest resident size in bytes. Linux counts it in KB, macOS in bytes.
func peakMemory(ended *os.ProcessState) int64 {
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}

func (o rowsOptions) runChild(ctx context.Context) error {
	store, load, _ := strings.Cut(o.child, "/")
	score, err := rowsRun(ctx, o.dir, store, load, o.rows)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(score)
}

// cpuSeconds is the processor time of this process so far.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
}

func printRows(w io.Writer, scores []rowsScore) {
	fmt.Fprintf(w, "%s, %d CPUs\n\n", runtime.Version(), runtime.NumCPU())
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "store\tload\trows\trows/s\tsealing incl.\trows per CPU s\tpeak memory\tof the short run\twrite units/row\t+ sealed input\t")
	short := map[string]int64{}
	for _, s := range scores {
		key, ratio := s.Store+"/"+s.Load, "-"
		if before := short[key]; before > 0 {
			ratio = fmt.Sprintf("%.2f", float64(s.Peak)/float64(before))
		} else {
			short[key] = s.Peak
		}
		rows := float64(s.Rows)
		fmt.Fprintf(table, "%s\t%s\t%d\t%.0f\t%.0f\t%.0f\t%d MB\t%s\t%.3f\t%.3f\t\n", s.Store, s.Load, s.Rows,
			rows/s.Work, rows/s.All, rows/s.CPU, s.Peak>>20, ratio, s.WriteUnits, s.InputUnits)
	}
	table.Flush()
	fmt.Fprintln(w, "\nThe memory store keeps all that is written, so its peak grows with the table; the SQLite store's must not.")
}

// people is a CSV of n rows that is made while it is read.
type people struct {
	n, at int
	buf   bytes.Buffer
}

func (p *people) Read(b []byte) (int, error) {
	for p.buf.Len() < len(b) && p.at <= p.n {
		if p.at == 0 {
			p.buf.WriteString("email,name\n")
		} else {
			fmt.Fprintf(&p.buf, "person%d@company%d.example,Person %d\n", p.at, p.at%1000, p.at)
		}
		p.at++
	}
	return p.buf.Read(b)
}
