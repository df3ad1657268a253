package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func same(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs from what is wanted (-want +got):\n%s", diff)
	}
}

func TestRunWritesTheFinishedTable(t *testing.T) {
	b := newBench(t)
	r := b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1", "--set", "tail=?")
	r.want(t, exitOK, "run r1 (upper): completed", "2 of 2 completed, 0 failed", "2: 2 dispatched (0 refused with 429), 0 reused, 0 cached",
		"cost        0.02", "write units", "output      @out.csv")
	same(t, b.read("out.csv"), "x,up\nada,ADA?\nbob,BOB?\n")
	same(t, r.out, "")
}

func TestRunFromPipeToPipe(t *testing.T) {
	b := newBench(t)
	b.stdin = `{"x":"ada"}` + "\n" + `{"x":"bob"}` + "\n"
	r := b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "-", "--out", "-", "--status-columns", "--quiet")
	r.want(t, exitOK)
	same(t, r.out, "x,up,_status,_error\nada,ADA!,completed,\nbob,BOB!,completed,\n")
	same(t, r.err, "")
}

func TestRunReadsTheEncodingAndDelimiterThatAreNamed(t *testing.T) {
	b := newBench(t)
	b.write("map.yaml", "version: 1\ncolumns:\n  - {name: y, value: \"${row.x}\"}\n")
	b.write("in.csv", "x|n\nM\xfcller|1\nAda|2\n")
	r := b.sluice("run", "@map.yaml", "--in", "@in.csv", "--out", "-", "--encoding", "latin1", "--delimiter", "|", "--limit", "1")
	r.want(t, exitOK)
	same(t, r.out, "x,n,y\nMüller,1,Müller\n")
}

func TestFailedRowsExit3AndAreExplained(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nbad1\nbad2\n")
	r := b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1")
	r.want(t, exitRowsFailed, "1 of 3 completed, 2 failed", "failed      2 × up: HTTP_422, such as: acme answered 422",
		"sluice rows r1 --status failed --state @state")
	lines := strings.Split(b.read("out.csv"), "\n")
	if lines[0] != "x,up,_status,_error" || lines[1] != "ada,ADA!,completed," || !strings.HasPrefix(lines[2], "bad1,,failed,") {
		t.Errorf("table %q", lines)
	}

	rows := b.sluice("rows", "r1", "--status", "failed")
	rows.want(t, exitOK, "      2  failed     up: HTTP_422:", "      3  failed")
	if strings.Contains(rows.out, "completed") || strings.ContainsAny(rows.out+r.err, "\x1b\u009b") {
		t.Errorf("other rows, or a control character: %q", rows.out)
	}
	rows = b.sluice("rows", "r1", "--status", "failed", "--json")
	if n := strings.Count(rows.out, "\n"); n != 2 || !strings.Contains(rows.out, `"row":2`) || strings.ContainsAny(rows.out, "\x1b\u009b") {
		t.Errorf("%d lines of JSON: %q", n, rows.out)
	}
}

func TestJSONHasExactlyTheFixedFields(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nada\nbad\nada\n")
	r := b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1", "--json", "--quiet", "--out", "@o.jsonl")
	r.want(t, exitRowsFailed)
	got := r.json(t)
	fixed := strings.Fields("id status total completed failed duplicates waiting calls slices parks residentWaitMs heldMs cost startedAt finishedAt out")
	for name := range got {
		if !slices.Contains(fixed, name) {
			t.Errorf("unknown field %s", name)
		}
	}
	for _, name := range fixed {
		if _, ok := got[name]; !ok {
			t.Errorf("no field %s", name)
		}
	}
	want := map[string]any{"id": "r1", "status": "completed", "total": 4.0, "completed": 3.0, "failed": 1.0, "duplicates": 0.0, "waiting": 0.0,
		"calls":  map[string]any{"logical": 4.0, "dispatched": 2.0, "refused429": 0.0, "reused": 2.0, "cached": 0.0},
		"slices": 1.0, "parks": 0.0, "cost": 0.01, "out": "@o.jsonl"}
	got["out"] = b.plain(got["out"].(string))
	for name, v := range want {
		if diff := cmp.Diff(v, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnEndedRunIsToldAgainAndCallsNothing(t *testing.T) {
	b := newBench(t)
	args := []string{"run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1"}
	b.sluice(args...).want(t, exitOK)
	if err := os.Remove(b.path("out.csv")); err != nil {
		t.Fatal(err)
	}
	b.sluice(args...).want(t, exitOK, "2 of 2 completed")
	b.sluice("resume", "r1", "--out", "@again.jsonl").want(t, exitOK, "2 of 2 completed")
	if n := b.provider.calls(""); n != 2 {
		t.Errorf("%d calls, want those of the first time", n)
	}
	same(t, b.read("out.csv"), "x,up\nada,ADA!\nbob,BOB!\n")
	same(t, b.read("again.jsonl"), `{"x":"ada","up":"ADA!"}`+"\n"+`{"x":"bob","up":"BOB!"}`+"\n")

	b.sluice(append(args, "--set", "tail=.")...).want(t, exitUsage, "started with another map, tools or variables")
	b.write("in.csv", "x\neve\n")
	b.sluice(args...).want(t, exitUsage, "started with another input")
}

func TestFailFastEndsTheRunWith1(t *testing.T) {
	b := newBench(t)
	b.write("map.yaml", strings.Replace(mapText, "columns:", "onRowError: fail\ncolumns:", 1))
	b.write("in.csv", "x\nbad\n")
	r := b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--out", "@out.csv", "--run", "r1", "--json")
	r.want(t, exitFailed, "run r1 failed: row 1")
	if got := r.json(t); got["status"] != "failed" || got["out"] != nil {
		t.Errorf("told %v", got)
	}
	if _, err := os.Stat(b.path("out.csv")); err == nil {
		t.Error("a failed run wrote a table")
	}
	b.sluice("resume", "r1").want(t, exitFailed, "run r1 failed: row 1")
	b.sluice("export", "r1").want(t, exitFailed, "only a completed or cancelled run is exported")
}

func TestWrongUsageExits2BeforeAnythingIsDone(t *testing.T) {
	run := func(args ...string) []string { return append([]string{"run", "@map.yaml"}, args...) }
	good := []string{"--tools", "@tools.yaml", "--in", "@in.csv"}
	for name, test := range map[string]struct {
		args []string
		says []string
	}{
		"unknown command":    {[]string{"rnu"}, []string{"unexpected argument rnu", "sluice --help"}},
		"unknown flag":       {run("--inn", "x"), []string{"unknown flag --inn"}},
		"no input":           {run("--tools", "@tools.yaml"), []string{"missing flags: --in=FILE"}},
		"no map file":        {[]string{"run", "@nope.yaml", "--in", "@in.csv"}, []string{"map: there is no file @nope.yaml"}},
		"mistakes in map":    {[]string{"run", "@wrong.yaml", "--in", "@in.csv"}, []string{"@wrong.yaml:3:5: ", "@wrong.yaml:5:25: "}},
		"no tools":           {run("--in", "@in.csv"), []string{"@map.yaml:6:11: ", "pass --tools"}},
		"no input file":      {run("--tools", "@tools.yaml", "--in", "@nope.csv"), []string{"input: there is no file @nope.csv"}},
		"input is a folder":  {run("--tools", "@tools.yaml", "--in", "@"), []string{"is a folder"}},
		"input is empty":     {run("--tools", "@tools.yaml", "--in", "@empty.csv"), []string{"@empty.csv: no header and no rows"}},
		"ragged input":       {run("--tools", "@tools.yaml", "--in", "@ragged.csv"), []string{"@ragged.csv:3"}},
		"column missing":     {run("--tools", "@tools.yaml", "--in", "@other.csv"), []string{"@map.yaml:7:18: the input has no column `x`"}},
		"output extension":   {run(append(good, "--out", "@o.xlsx")...), []string{"must end in .csv or .jsonl"}},
		"output folder":      {run(append(good, "--out", "@no/o.csv")...), []string{"there is no folder @no"}},
		"output is a folder": {run(append(good, "--out", "@dir.csv")...), []string{"@dir.csv cannot be written"}},
		"two on stdout":      {run(append(good, "--out", "-", "--json")...), []string{"would both write to standard output"}},
		"delimiter":          {run(append(good, "--delimiter", "ab")...), []string{"--delimiter"}},
		"limit":              {run(append(good, "--limit=-1")...), []string{"--limit -1"}},
		"encoding":           {run(append(good, "--encoding", "windos-1252")...), []string{"did you mean \"windows-1252\"?"}},
		"unknown variable":   {run(append(good, "--set", "tial=x")...), []string{"did you mean `tail`?"}},
		"run id":             {run(append(good, "--run", "a b")...), []string{`run id "a b"`}},
		"no such run":        {[]string{"resume", "r9"}, []string{"there is no state"}},
		"rows of no state":   {[]string{"rows", "r9"}, []string{"there is no state"}},
		"status":             {[]string{"rows", "r9", "--status", "odd"}, []string{"must be one of"}},
		"state is a file":    {append(run(good...), "--state", "@in.csv"), []string{"@in.csv is not a folder"}},
		"export format":      {[]string{"export", "r9", "--out", "@o.txt"}, []string{"pass --format"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("wrong.yaml", "version: 1\ncolumns:\n  - nmae: a\n    value: x\n  - {name: b, value: \"${rwo.x}\"}\n")
			b.write("empty.csv", "")
			b.write("ragged.csv", "x,y\n1,2\n1,2,3\n")
			b.write("other.csv", "y\n1\n")
			if err := os.Mkdir(b.path("dir.csv"), 0o755); err != nil {
				t.Fatal(err)
			}
			r := b.sluice(test.args...)
			r.want(t, exitUsage, test.says...)
			if n := b.provider.calls(""); n != 0 || r.out != "" {
				t.Errorf("%d calls; printed %q", n, r.out)
			}
			if runs := b.sluice("runs"); runs.code == exitOK && runs.out != "There are no runs yet.\n" {
				t.Errorf("left behind: %s", runs.out)
			}
		})
	}
}

func TestMissingSecretsAreNamedBeforeAnythingIsDone(t *testing.T) {
	b := newBench(t)
	b.write("map.yaml", mapText+"  - {name: more, call: other.up, with: {x: \"${row.x}\"}}\n")
	b.secrets = nil
	r := b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv")
	r.want(t, exitUsage, "provider acme: the environment variable ACME_KEY is not set", "provider other: the environment variable OTHER_KEY is not set")
	if _, err := os.Stat(b.path("state")); err == nil {
		t.Error("a state folder was made")
	}
	b.secrets = map[string]string{"ACME_KEY": "k"} // all that this map needs
	b.write("map.yaml", mapText)
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv").want(t, exitOK)
}

func TestHelp(t *testing.T) {
	b := newBench(t)
	b.sluice("--help").want(t, exitOK, "sluice run leads.map.yaml --tools tools.yaml", "validate", "130 parked by Ctrl-C")
	for _, command := range []string{"run", "validate", "resume", "cancel", "pause", "retry", "runs", "rows", "export", "tools", "answer", "serve"} {
		b.sluice(command, "--help").want(t, exitOK, "Examples:", "sluice "+command)
	}
	var out, err syncBuffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &err}
	if code := a.run(nil); code != exitUsage || !strings.Contains(out.String(), "Usage: sluice") {
		t.Errorf("without a command: code %d, %q", code, out.String())
	}
	b.sluice("version").want(t, exitOK, "sluice ")
}

func TestValidate(t *testing.T) {
	b := newBench(t)
	r := b.sluice("validate", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv")
	r.want(t, exitOK)
	same(t, r.out, "@map.yaml is valid: 1 column, 1 of 2 tools used, 1 input column in @in.csv\n")
	b.stdin = `[{"x":1},{"y":2}]`
	r = b.sluice("validate", "@map.yaml", "--tools", "@tools.yaml", "--in", "-")
	same(t, r.out, "@map.yaml is valid: 1 column, 1 of 2 tools used, 2 input columns in standard input\n")
	b.write("map.yaml", strings.ReplaceAll(mapText, "acme.up", "acme.upp"))
	b.sluice("validate", "@map.yaml", "--tools", "@tools.yaml").want(t, exitUsage, "@map.yaml:6:11: there is no tool `acme.upp` (did you mean `acme.up`?)")
}

func TestExport(t *testing.T) {
	b := newBench(t)
	r := b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1")
	r.want(t, exitOK, "none was asked for; sluice export r1 --out FILE --state @state")
	same(t, b.sluice("export", "r1").out, "x,up\nada,ADA!\nbob,BOB!\n")
	same(t, b.sluice("export", "r1", "--format", "jsonl").out, `{"x":"ada","up":"ADA!"}`+"\n"+`{"x":"bob","up":"BOB!"}`+"\n")
	b.sluice("export", "r1", "--out", "@e.csv").want(t, exitOK)
	same(t, b.read("e.csv"), "x,up\nada,ADA!\nbob,BOB!\n")
	b.sluice("export", "r2").want(t, exitUsage, `there is no run "r2" in @state`)
}

func TestTools(t *testing.T) {
	b := newBench(t)
	r := b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=ada", "--with", "n=7")
	r.want(t, exitOK)
	same(t, r.out, `{"key":"k1","n":"7","up":"ADA"}`+"\n")
	same(t, b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=none").out, "null\n")
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=bad").want(t, exitFailed, "acme.up: HTTP_422")
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=a", "--with", "n=seven").want(t, exitUsage, `--with n: "seven" is no integer`)
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml").want(t, exitUsage, "input `x` (string) is missing")
	b.sluice("tools", "acme.down", "--tools", "@tools.yaml").want(t, exitUsage, "it has: acme.up, other.up")
	b.env(map[string]string{"SLUICE_BODY_MEMORY": "lots"})
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=ada", "--state", b.path("state")).want(t, exitUsage, `SLUICE_BODY_MEMORY is "lots": a size is`)
	b.getenv = nil
	b.sluice("tools", "acme.up", "--tools", "@tools.yaml", "--with", "x=hold").want(t, exitFailed, "acme.up: HTTP_429", "not before")
}

func TestRunsListsAndDetails(t *testing.T) {
	b := newBench(t)
	b.write("in.csv", "x\nada\nbad\n")
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r1").want(t, exitRowsFailed)
	b.sluice("run", "@map.yaml", "--tools", "@tools.yaml", "--in", "@in.csv", "--run", "r2", "--limit", "1").want(t, exitOK)
	r := b.sluice("runs")
	lines := strings.Split(r.out, "\n")
	if len(lines) != 4 {
		t.Fatalf("listed %q", r.out)
	}
	for n, want := range []string{"ID NAME STATUS ROWS FAILED STARTED WAKES", "r2 upper completed 1/1 0", "r1 upper completed 2/2 1"} {
		if got := strings.Join(strings.Fields(lines[n]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", n, got, want)
		}
	}
	b.sluice("runs", "r1").want(t, exitOK, "2 of 2 done, 1 failed, 0 duplicates", "@map.yaml", "@in.csv")
	got := b.sluice("runs", "r1", "--json").json(t)
	if got["name"] != "upper" || got["failed"] != 1.0 || got["atWork"] != false || got["wakeAt"] != nil {
		t.Errorf("told %v", got)
	}
	b.sluice("runs", "r9").want(t, exitUsage, `there is no run "r9"`)
}
