package main

import (
	"strings"
	"syscall"
	"testing"
)

// A run is extended by more rows, as often as one likes: what it has is not computed again.
func TestX4Extend(t *testing.T) {
	b := newBench(t)
	b.write("map.yaml", strings.Replace(mapText, "columns:", "key: x\ncolumns:", 1))
	args := []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1"}
	more := append(append([]string{}, args...), "--extend")
	b.sluice(more...).want(t, exitUsage, `there is no run "r1" to extend in @state; without --extend it is started`)
	b.sluice(args...).want(t, exitOK, "2 of 2 completed")
	b.write("in.csv", "x\nbob\neve\ncid\n")
	for range 2 { // the second time there is nothing new
		b.sluice(more...).want(t, exitOK, "4 of 4 completed")
		same(t, b.read("out.csv"), "x,up\nada,ADA!\nbob,BOB!\neve,EVE!\ncid,CID!\n")
	}
	if n := b.provider.calls(""); n != 4 {
		t.Errorf("%d calls for four rows", n)
	}
	b.sluice(more...).want(t, exitOK, "0 new rows; 3 duplicates")
	b.sluice(args...).want(t, exitOK, "4 of 4 completed") // the same input as before
	b.write("in.csv", "y\nbob\n")
	b.sluice(more...).want(t, exitUsage, `no column`)
	b.sluice(append(more, "--set", "tail=.")...).want(t, exitUsage, "started with another map, tools or variables")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--extend").want(t, exitUsage, "--extend needs --run")
}

// Ten rows are tried first, without a key; then the whole table follows. A parked run can be extended too, and a table that
// does not begin with the rows that are there is refused, and changes nothing.
func TestX4ExtendATrial(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nhold\nbob\n")
	args := []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--concurrency", "1"}
	p := b.start(append(args, "--limit", "2")...)
	eventually(t, "it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	b.sluice(append(args, "--extend")...).want(t, exitFailed, "another process is working on it")
	p.signal(syscall.SIGINT)
	p.wait()
	b.write("in.csv", "x\nbob\nada\n")
	b.sluice(append(args, "--extend")...).want(t, exitUsage, "row 1 (line 2): it is not the row that the run has at this position")
	b.sluice("rows", "r1").want(t, exitOK, "held")
	b.write("in.csv", "x\nada\nhold\nbob\n")
	p = b.start(append(args, "--extend")...)
	eventually(t, "it is parked again", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	if !strings.Contains(p.err.String(), "1 new row; 0 duplicates") || !strings.Contains(p.err.String(), "of 3 rows") {
		t.Error(p.err.String())
	}
	p.signal(syscall.SIGINT)
	p.wait().want(t, exitInterrupted, "of 3 rows done")
	if n := b.provider.calls("ada"); n != 1 {
		t.Errorf("asked for a row that was done: %d calls", n)
	}
}
