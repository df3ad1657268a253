package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/call"
	"sluice/internal/core/run"
)

// all follows the cursors, and returns what is shown of each row and how many pages it took.
func (w *world) all(query string) (rows []map[string]any, pages int) {
	w.t.Helper()
	cursor := ""
	for {
		status, out := w.ask("GET", "/runs/r/rows?"+query+cursor, "")
		if status != 200 {
			w.t.Fatal(status, out)
		}
		pages++
		for _, r := range out["rows"].([]any) {
			rows = append(rows, r.(map[string]any))
		}
		next, more := out["next"].(string)
		if !more {
			return rows, pages
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
}

func TestRowsComeInPagesInTheirOrder(t *testing.T) {
	w := newWorld(t)
	w.work(w.start("r", 2500))
	rows, pages := w.all("limit=300")
	if len(rows) != 2500 || pages < 9 {
		t.Fatalf("%d rows in %d pages", len(rows), pages)
	}
	for i, row := range rows {
		want := map[string]any{"row": float64(i + 1), "status": "completed", "input": map[string]any{"x": float64(i)}, "cells": map[string]any{"y": float64(i)}}
		if diff := cmp.Diff(want, row); diff != "" {
			t.Fatal(diff)
		}
	}
	_, out := w.ask("GET", "/runs/r/rows?limit=1", "")
	if diff := cmp.Diff(map[string]any{"input": []any{"x"}, "cells": []any{"y"}}, out["columns"]); diff != "" {
		t.Error(diff)
	}
	if rows, _ := w.all("status=failed"); len(rows) != 0 {
		t.Errorf("%d failed rows", len(rows))
	}
	if _, out := w.ask("GET", "/runs/r/rows", ""); len(out["rows"].([]any)) != rowsDefault || out["next"] != "100" {
		t.Errorf("%d rows, next %v", len(out["rows"].([]any)), out["next"])
	}
	for query, text := range map[string]string{"limit=1001": "`limit`", "status=done": "`status` must be one of", "cursor=x": "`cursor`", "cursor=-1": "`cursor`", "page=1": `"page"`} {
		w.refused(400, "BAD_REQUEST", text, "GET", "/runs/r/rows?"+query, "")
	}
	if status, out := w.ask("GET", "/runs/r/rows?cursor=99999", ""); status != 200 || len(out["rows"].([]any)) != 0 || out["next"] != nil {
		t.Errorf("behind the end: %d %v", status, out)
	}
	w.refused(404, "NOT_FOUND", "no such run", "GET", "/runs/nobody/rows", "")
}

type gatewayFunc func(a call.Attempt) call.Answer

func (f gatewayFunc) Execute(_ context.Context, batch []call.Attempt, deliver func(int, call.Answer)) error {
	for i, a := range batch {
		deliver(i, f(a))
	}
	return nil
}

const callingMap = `"map":"version: 1\ncolumns:\n  - {name: y, call: a.get, with: {x: \"${row.x}\"}}\n","tools":"version: 1\nproviders: {a: {url: \"https://a.example\", limits: [{rate: 1000, per: 1s}]}}\ntools: {a.get: {path: /x}}\n"`

// While a run is at work, held, failed and completed rows can be told apart.
func TestRowsOfARunAtWork(t *testing.T) {
	w := newWorld(t)
	if status, out := w.ask("POST", "/runs", `{"run":"r",`+callingMap+`,"rows":[{"x":1},{"x":2},{"x":3}]}`); status != 202 {
		t.Fatal(status, out)
	}
	job, err := run.Plan(t.Context(), w.Store, "r")
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(10 * time.Minute).UTC().Truncate(time.Second)
	g := gatewayFunc(func(a call.Attempt) call.Answer {
		switch string(a.Input) {
		case `{"x":2}`:
			return call.Answer{Outcome: call.Failed, Dispatched: true, Status: 422, Error: &call.Error{Code: "HTTP_422", Message: "no"}}
		case `{"x":3}`:
			return call.Answer{Outcome: call.Held, Dispatched: true, Status: 429, Until: until, Scope: "a-0123456789ab", Why: call.Why{Reason: call.RetryAfter, Code: "HTTP_429"}}
		}
		return call.Answer{Outcome: call.Result, Value: json.RawMessage(`[1]`), Dispatched: true, Status: 200}
	})
	res, err := job.Slice(t.Context(), run.Ports{Store: w.Store, Gateway: g, Owner: "o"}, 0, run.Settings{Concurrency: 1})
	if err != nil || res.Outcome != run.Parked {
		t.Fatal(res, err)
	}
	rows, _ := w.all("limit=2")
	if len(rows) != 3 {
		t.Fatalf("%v", rows)
	}
	if diff := cmp.Diff(map[string]any{"y": []any{1.0}}, rows[0]["cells"]); diff != "" {
		t.Error(diff)
	}
	if fault, _ := rows[1]["error"].(map[string]any); rows[1]["status"] != "failed" || fault["code"] != "HTTP_422" || fault["column"] != "y" {
		t.Errorf("%v", rows[1])
	}
	want := map[string]any{"provider": "a", "until": until.Format(time.RFC3339), "reason": "retryAfter", "code": "HTTP_429"}
	if diff := cmp.Diff(want, rows[2]["held"]); rows[2]["status"] != "held" || diff != "" {
		t.Errorf("%v", rows[2])
	}
	if held, _ := w.all("status=held"); len(held) != 1 || held[0]["row"] != 3.0 {
		t.Errorf("%v", held)
	}
	_, out := w.ask("GET", "/runs/r", "")
	holds, _ := out["holds"].([]any)
	if out["status"] != "parked" || len(holds) != 1 {
		t.Fatalf("%v", out)
	}
	hold := holds[0].(map[string]any)
	delete(hold, "since")
	if diff := cmp.Diff(map[string]any{"provider": "a", "scope": "a-0123456789ab", "reason": "retryAfter", "code": "HTTP_429",
		"until": until.Format(time.RFC3339), "last": until.Format(time.RFC3339), "rows": 1.0, "shards": 1.0}, hold); diff != "" {
		t.Error(diff)
	}
}

// Rows with large values make short pages; a row that is larger than an answer may be is shown without its largest
// values.
func TestLargeRowsFitAnAnswer(t *testing.T) {
	w := newWorld(t)
	mb := strings.Repeat("x", 1<<20)
	var rows []string
	for i := range 4 {
		rows = append(rows, `{"x":"`+strconv.Itoa(i)+mb+`","n":`+strconv.Itoa(i)+`}`)
	}
	wide := `{"x":"4","n":4`
	for i := range 6 {
		wide += fmt.Sprintf(`,"c%d":"%s"`, i, mb)
	}
	key := "uploads/a/in.jsonl"
	if err := w.Store.Blobs.Put(t.Context(), key, strings.NewReader(strings.Join(append(rows, wide+"}"), "\n"))); err != nil {
		t.Fatal(err)
	}
	if status, out := w.ask("POST", "/runs", `{"run":"r",`+goodMap+`,"upload":"`+key+`"}`); status != 202 {
		t.Fatal(status, out)
	}
	job, err := run.Plan(t.Context(), w.Store, "r")
	if err != nil {
		t.Fatal(err)
	}
	w.work(job)
	all, pages := w.all("limit=1000")
	if len(all) != 5 || pages < 3 {
		t.Fatalf("%d rows in %d pages", len(all), pages)
	}
	for i, row := range all {
		if in := row["input"].(map[string]any); in["n"] != float64(i) || !strings.HasPrefix(in["x"].(string), strconv.Itoa(i)) {
			t.Errorf("row %d", i)
		}
	}
	if diff := cmp.Diff([]any{"c0", "c1", "c2"}, all[4]["omitted"]); diff != "" {
		t.Error(diff)
	}
}
