package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sluice/internal/active"
	"sluice/internal/core/run"
	"sluice/internal/core/table"
)

const keyed = `"map":"version: 1\nkey: x\ncolumns:\n  - {name: y, value: \"${row.x}\"}\n"`

// keyed starts a run of rows with a key, and brings it to its end.
func (w *world) ended(id, rows string) {
	w.t.Helper()
	if status, out := w.ask("POST", "/runs", `{"run":"`+id+`",`+keyed+`,"rows":[`+rows+`]}`); status != 202 {
		w.t.Fatal(status, out)
	}
	w.work(w.planned(id))
}

// planned does what an execution begins with.
func (w *world) planned(id string) *run.Job {
	w.t.Helper()
	if err := run.AskedExtend(w.t.Context(), w.Store, id); err != nil {
		w.t.Fatal(err)
	}
	job, err := run.Plan(w.t.Context(), w.Store, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// extension is what the view tells of it, but for the time.
func (w *world) extension(id string) (status, asked any, told string) {
	w.t.Helper()
	_, v := w.ask("GET", "/runs/"+id, "")
	x, _ := v["extension"].(map[string]any)
	delete(x, "at")
	b, err := json.Marshal(x)
	if err != nil {
		w.t.Fatal(err)
	}
	return v["status"], v["asked"], string(b)
}

// Rows of a request, and an upload, are added to a run that has ended. Until they are read it is as it was, and says what is asked.
func TestX4ARunIsExtended(t *testing.T) {
	w := newWorld(t)
	w.ended("r", `{"x":"a"},{"x":"b"}`)
	if status, out := w.ask("POST", "/runs/r/extend", `{"rows":[{"x":"b"},{"x":"c"}]}`); status != 202 || out["status"] != "completed" || w.kicked[0] != "r" {
		t.Fatalf("%d %v, kicked %v", status, out, w.kicked)
	}
	listed := false
	for e := range active.All(t.Context(), w.Store.Table) {
		listed = listed || e.Run == "r"
	}
	if status, asked, told := w.extension("r"); status != "completed" || asked != "extend" || told != "null" || !listed {
		t.Errorf("%v, asked %v, extension %s, listed %v", status, asked, told, listed)
	}
	if status, _ := w.ask("GET", "/runs/r/export", ""); status != 200 {
		t.Errorf("meanwhile its table is answered with %d", status)
	}
	job := w.planned("r")
	if status, asked, told := w.extension("r"); status != "running" || asked != nil || told != `{"duplicates":1,"rows":1}` {
		t.Errorf("%v, asked %v, extension %s", status, asked, told)
	}
	w.refused(409, "AT_WORK", "it can be extended when it has ended, or is paused", "POST", "/runs/r/extend", `{"rows":[{"x":"d"}]}`)
	for shard := range 2 {
		if _, err := job.Slice(t.Context(), run.Ports{Store: w.Store, Owner: "o"}, shard, run.Settings{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := job.Finish(t.Context(), run.Ports{Store: w.Store}, run.Settings{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Store.Blobs.Put(t.Context(), "uploads/a/more.jsonl", strings.NewReader(`{"x":"d"}`+"\n"+`{"x":"e"}`)); err != nil {
		t.Fatal(err)
	}
	if status, out := w.ask("POST", "/runs/r/extend", `{"upload":"uploads/a/more.jsonl","limit":1,`+keyed+`}`); status != 202 {
		t.Fatal(status, out)
	}
	if job := w.planned("r"); job.Run.Sealed.Rows != 4 || len(job.Run.Sealed.Parts) != 3 {
		t.Errorf("%+v", job.Run.Sealed)
	}
}

// The same key, or without one the same source, is the same extension, at any time; also where the first one was cut off.
func TestX4AnExtensionRepeatedIsOne(t *testing.T) {
	for name, opts := range map[string][]option{"key": {header("Idempotency-Key", "order-4711")}, "source": nil} {
		w := newWorld(t)
		w.ended("r", `{"x":"a"}`)
		body := `{"rows":[{"x":"b"}]}`
		w.down = errors.New("no answer from host.internal")
		w.refused(500, "INTERNAL", "trying again is harmless", "POST", "/runs/r/extend", body, opts...)
		w.down = nil
		ask := func(want string) {
			t.Helper()
			if status, out := w.ask("POST", "/runs/r/extend", body, opts...); status != 202 || out["status"] != want {
				t.Errorf("%s: %d %v, want %s", name, status, out, want)
			}
		}
		ask("completed")
		w.planned("r")
		ask("running")
		if job := w.planned("r"); job.Run.Sealed.Rows != 2 || len(job.Run.Sealed.Parts) != 2 || job.Run.Execution() != 1 {
			t.Errorf("%s: %+v", name, job.Run)
		}
		code := map[string]string{"key": "CONFLICT", "source": "AT_WORK"}[name]
		w.refused(409, code, "", "POST", "/runs/r/extend", strings.Replace(body, "b", "c", 1), opts...)
	}
}

// What is wrong with a request is told before anything is written; what is wrong with its rows, when they are read.
func TestX4ExtensionsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	w.ended("r", `{"x":"a"}`)
	w.start("new", 1)
	w.kicked = nil
	bad := func(text, body string, opts ...option) {
		t.Helper()
		w.refused(400, "BAD_REQUEST", text, "POST", "/runs/r/extend", body, opts...)
	}
	bad("it is empty", "")
	bad("either `rows` or `upload`", `{}`)
	bad("either `rows` or `upload`", `{"rows":[{"x":1}],"upload":"uploads/a/b.csv"}`)
	bad("`rows` is empty", `{"rows":[]}`)
	bad("row 2 is not an object", `{"rows":[{"x":1},[2]]}`)
	bad("for uploads", `{"rows":[{"x":1}],"format":"csv"}`)
	bad("`upload` must be a key", `{"upload":"runs/other/result.csv"}`)
	bad("`format` is", `{"upload":"uploads/a/b","format":"xls"}`)
	bad("`limit`", `{"rows":[{"x":1}],"limit":-1}`)
	bad(`unknown field "run"`, `{"rows":[{"x":1}],"run":"r"}`)
	bad("are given with `map`", `{"rows":[{"x":1}],"vars":{"a":"b"}}`)
	bad("map.yaml:1:", `{"rows":[{"x":1}],"map":"columns: 7"}`)
	bad("too long", `{"rows":[{"x":1}]}`, header("Idempotency-Key", strings.Repeat("k", 256)))
	w.refused(409, "CONFLICT", "another map, tools or variables", "POST", "/runs/r/extend", `{"rows":[{"x":1}],`+goodMap+`}`)
	w.refused(409, "AT_WORK", "when it has ended", "POST", "/runs/new/extend", `{"rows":[{"x":1}]}`)
	w.refused(404, "NOT_FOUND", "no such run", "POST", "/runs/none/extend", `{"rows":[{"x":1}]}`)
	w.refused(405, "METHOD_NOT_ALLOWED", "POST", "GET", "/runs/r/extend", "")
	if _, asked, told := w.extension("r"); asked != nil || told != "null" || len(w.kicked) > 0 {
		t.Errorf("asked %v, extension %s, kicked %v", asked, told, w.kicked)
	}
	for body, says := range map[string]string{
		`{"rows":[{"x":"b"},{"x":null}]}`: "row 3 (line 2)",
		`{"rows":[{"x":"b","y":"c"}]}`:    "has the name of an input column",
		`{"upload":"uploads/a/none.csv"}`: "is not there; upload it first",
		`{"rows":[{"x":"a"}]}`:            "",
	} {
		if status, out := w.ask("POST", "/runs/r/extend", body); status != 202 {
			t.Fatal(status, out)
		}
		job := w.planned("r")
		if status, asked, told := w.extension("r"); status != "completed" || asked != nil || !strings.Contains(told, says) ||
			strings.Contains(told, "error") != (says != "") || job.Run.Sealed.Rows != 1 {
			t.Errorf("%s: %v, asked %v, extension %s", body, status, asked, told)
		}
	}
}

// What was sealed of a source that was refused late is deleted by the next extension.
func TestX4WhatWasRefusedLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.ended("r", `{"x":"a"}`)
	left := func() (n int) {
		for _, err := range w.Store.Table.Query(t.Context(), table.Query{Part: "run/r/x1-1/in"}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	for n, row := range []string{`{"x":"b","y":"c"}`, `{"x":"b"}`} {
		if status, out := w.ask("POST", "/runs/r/extend", `{"rows":[`+row+`]}`); status != 202 {
			t.Fatal(status, out)
		}
		if job := w.planned("r"); job.Run.Sealed.Rows != int64(1+n) || (left() > 0) != (n == 0) {
			t.Errorf("%s: %d rows, %d items are left", row, job.Run.Sealed.Rows, left())
		}
	}
}

// While a run is being extended, other verbs are told so; a cancellation withdraws the extension.
func TestX4VerbsWhileARunIsExtended(t *testing.T) {
	w := newWorld(t)
	w.ended("r", `{"x":"a"}`)
	if status, out := w.ask("POST", "/runs/r/extend", `{"rows":[{"x":"b"}]}`); status != 202 {
		t.Fatal(status, out)
	}
	for _, verb := range []string{"pause", "resume", "retry"} {
		w.refused(409, "AT_WORK", "it is being extended", "POST", "/runs/r/"+verb, "")
	}
	w.refused(409, "AT_WORK", "it is being extended", "POST", "/runs/r/extend", `{"rows":[{"x":"c"}]}`)
	if status, out := w.ask("POST", "/runs/r/cancel", ""); status != 202 || out["status"] != "completed" {
		t.Errorf("%d %v", status, out)
	}
	if status, asked, told := w.extension("r"); status != "completed" || asked != nil || !strings.Contains(told, "cancelled before its rows were read") {
		t.Errorf("%v, asked %v, extension %s", status, asked, told)
	}
}
