package main

import (
	"strings"
	"syscall"
	"testing"
)

// A run is extended by more rows, as often as one likes: what it has is not computed again. It is told in the same words wherever
// it is done.
func TestX4Extend(t *testing.T) {
	here := newBench(t)
	there, s := served(t)
	for place, b := range map[string]*bench{"in @state": here, "at " + s.url: there} {
		b.write("map.yaml", strings.Replace(mapText, "columns:", "key: x\ncolumns:", 1))
		args := []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1"}
		more := append(append([]string{}, args...), "--extend")
		b.sluice(more...).want(t, exitUsage, `there is no run "r1" to extend `+place+`; without --extend it is started`)
		first := b.read("in.csv")
		b.sluice(args...).want(t, exitOK, "2 of 2 completed")
		b.write("in.csv", "x\nbob\neve\ncid\n")
		b.sluice(more...).want(t, exitOK, "2 new rows; 1 duplicate\n", "4 of 4 completed")
		b.write("in.csv", "x\nbob\nbad1\n")
		b.sluice(append(more, "--quiet")...).want(t, exitRowsFailed)
		const table = "x,up,_status,_error\nada,ADA!,completed,\nbob,BOB!,completed,\neve,EVE!,completed,\ncid,CID!,completed,\nbad1,,failed,"
		if got := b.read("out.csv"); !strings.HasPrefix(got, table) {
			t.Errorf("%s: %s", place, got)
		}
		if n := b.provider.calls(""); n != 5 {
			t.Errorf("%s: %d calls for five rows", place, n)
		}
		b.sluice(more...).want(t, exitRowsFailed, "0 new rows; 2 duplicates", "4 of 5 completed, 1 failed; 2 duplicates left out")
		b.write("in.csv", first)
		b.sluice(args...).want(t, exitRowsFailed, "4 of 5 completed")
		b.write("in.csv", "y\nbob\n")
		b.sluice(more...).want(t, exitUsage, `no column`)
		b.write("in.csv", "x\nzoe\n\"\"\n")
		b.sluice(more...).want(t, exitUsage, "(line 3)", "key")
		b.sluice(append(more, "--set", "tail=.")...).want(t, exitUsage, "started with another map, tools or variables")
		b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--extend").want(t, exitUsage, "--extend needs --run")
		b.sluice("export", "r1").want(t, exitOK, table)
		if n := b.provider.calls(""); n != 5 {
			t.Errorf("%s: what was refused made %d calls", place, n-5)
		}
	}
	there.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--extend", "--concurrency", "3").want(t, exitUsage, "--concurrency is chosen when a run is started")
}

// A run that a deployment works on is not extended; one that it has paused, or cancelled, goes on with the new rows as well, and
// is watched as any.
func TestX4ExtendARunOfAServer(t *testing.T) {
	b, s := served(t)
	b.write("map.yaml", strings.Replace(mapText, "columns:", "key: x\ncolumns:", 1))
	b.write("in.csv", "x\nada\nhold\n")
	args := []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--api", s.url}
	p := b.start(append(args, "--concurrency", "1")...)
	eventually(t, "it is parked", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	p.signal(syscall.SIGINT)
	p.wait().want(t, exitInterrupted)
	b.write("in.csv", "x\nhold\nbob\n")
	b.sluice(append(args, "--extend")...).want(t, exitFailed, "run r1 is at work", "it can be extended when it has ended, or is paused")
	b.sluice("pause", "r1").want(t, exitOK)
	p = b.start(append(args, "--extend")...)
	eventually(t, "it is parked again", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	if text := p.err.String(); !strings.Contains(text, "1 new row; 1 duplicate") || !strings.Contains(text, "of 3 rows") {
		t.Error(text)
	}
	b.sluice("cancel", "r1").want(t, exitOK)
	p.wait().want(t, exitFailed, "run r1 was cancelled")
	b.sluice(append(args, "--extend")...).want(t, exitFailed, "0 new rows; 2 duplicates", "run r1 was cancelled")
	b.write("in.csv", "x\neve\n")
	p = b.start(append(args, "--extend", "--json")...)
	eventually(t, "it is parked once more", func() bool { return strings.Contains(p.err.String(), "parked until ") })
	p.signal(syscall.SIGINT)
	p.wait().want(t, exitInterrupted, "run r1 goes on at "+s.url)
	if n := b.provider.calls("ada"); n != 1 {
		t.Errorf("asked for a row that was done: %d calls", n)
	}
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
