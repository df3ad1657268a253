package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cloud stands in for a deployment: it has the answers, and keeps the requests.
type cloud struct {
	*httptest.Server
	asked []string
	keys  []string
}

const (
	viewOfR1 = `{"run":"r1","name":"upper","status":"parked","mapName":"map.yaml","input":"in.csv","rows":3,"duplicates":1,"completed":2,"failed":0,
		"shards":1,"createdAt":"2026-11-30T10:00:00Z","startedAt":"2026-11-30T10:00:01Z","wakeAt":"2026-11-30T11:00:00Z",
		"stats":{"logical":3,"dispatched":2,"refused429":1,"costMicros":20000},
		"working":2,"interrupted":1,
		"holds":[{"provider":"acme","until":"2026-11-30T11:00:00Z","rows":1}],
		"bill":{"prices":"list prices","rows":3,"lines":[{"name":"state transitions","quantity":11,"unit":"","dollars":0.000275}],"total":0.000275,"perMillionRows":91.66}}`
	forbidden = `{"error":{"code":"INVALID_API_KEY","message":"Forbidden"}}`
)

func newCloud(t *testing.T) *cloud {
	c := &cloud{}
	mux := http.NewServeMux()
	answer := func(pattern string, status int, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c.asked, c.keys = append(c.asked, r.Method+" "+r.URL.RequestURI()), append(c.keys, r.Header.Get("X-Api-Key"))
			if strings.HasPrefix(r.URL.Path, "/v1/") && r.Header.Get("X-Api-Key") != "k" {
				status, body = http.StatusForbidden, forbidden
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(body, "SELF", c.URL)))
		})
	}
	answer("GET /v1/runs/r1", 200, viewOfR1)
	answer("GET /v1/runs", 200, `{"runs":[`+viewOfR1+`,`+strings.ReplaceAll(viewOfR1, "r1", "r0")+`]}`)
	answer("GET /v1/runs/r1/export", 200, `{"method":"GET","url":"SELF/bucket/r1.csv?signature=1","expiresAt":"2026-11-30T10:00:00Z"}`)
	answer("GET /v1/runs/busy/export", 409, `{"error":{"code":"NOT_COMPLETED","message":"the run is running"}}`)
	answer("GET /bucket/r1.csv", 200, "x,up\nada,ADA\n")
	answer("GET /v1/runs/", 404, `{"error":{"code":"NOT_FOUND","message":"there is no such run"}}`)
	answer("GET /moved/runs", 302, "")
	answer("GET /site/", 404, "<html>")
	answer("GET /nothing/", 403, `{"error":{"code":"MISSING_AUTHENTICATION_TOKEN","message":"Missing Authentication Token"}}`)
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// env makes the environment of a bench.
func (b *bench) env(of map[string]string) { b.getenv = func(name string) string { return of[name] } }

func TestRunsOfADeployment(t *testing.T) {
	b, c := newBench(t), newCloud(t)
	b.env(map[string]string{"SLUICE_API_KEY": "k", "SLUICE_API_URL": c.URL + "/v1/"})
	b.sluice("runs").want(t, exitOK, "r1  upper  parked  2/3   0", "r0  upper")
	b.sluice("runs", "r1", "--api", c.URL+"/v1").want(t, exitOK, "status    parked", "map       map.yaml", "rows      2 of 3 done, 0 failed, 1 duplicate",
		"held      acme: held until", "cost      0.02", "at work   2 rows", "begun     1 row, by a process that has ended")
	b.sluice("runs", "r1", "--cost").want(t, exitOK, "run r1 (upper): parked, 3 rows", "state transitions", "0.000275", "91.66")
	if out := b.sluice("runs", "r1").out; strings.Contains(out, "laptop") {
		t.Errorf("a bill of the cloud says that it is none:\n%s", out)
	}
	got := b.sluice("runs", "r1", "--json").json(t)
	for name, want := range map[string]any{"id": "r1", "status": "parked", "total": 4.0, "completed": 2.0, "waiting": 1.0, "duplicates": 1.0,
		"cost": 0.02, "atWork": true, "wakeAt": "2026-11-30T11:00:00Z", "out": nil, "bill": nil} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if bill, _ := b.sluice("runs", "r1", "--json", "--cost").json(t)["bill"].(map[string]any); bill["perMillionRows"] != 91.66 || bill["note"] != nil {
		t.Errorf("bill %v", bill)
	}
	b.sluice("runs", "nobody").want(t, exitUsage, `there is no run "nobody" at `+c.URL+"/v1; `sluice runs` lists them")
	b.sluice("runs", "../r1").want(t, exitUsage, `there is no run "../r1"`)
	b.sluice("runs", "..").want(t, exitUsage, `there is no run ".."`)
	b.sluice("runs", "--state", "@state").want(t, exitUsage, "there is no state in @state")
	b.sluice("runs", "--state", "@state", "--api", c.URL).want(t, exitUsage, "give one of them")
}

func TestExportOfADeployment(t *testing.T) {
	b, c := newBench(t), newCloud(t)
	b.env(map[string]string{"SLUICE_API_KEY": "k", "SLUICE_API_URL": c.URL + "/v1"})
	same(t, b.sluice("export", "r1").out, "x,up\nada,ADA\n")
	b.sluice("export", "r1", "--out", "@out.csv").want(t, exitOK)
	same(t, b.read("out.csv"), "x,up\nada,ADA\n")
	for i, asked := range c.asked {
		if strings.Contains(asked, "bucket") != (c.keys[i] == "") {
			t.Errorf("%s with the key %q", asked, c.keys[i])
		}
	}
	b.sluice("export", "busy").want(t, exitFailed, "the run is running")
	b.sluice("export", "r1", "--out", "@out.jsonl").want(t, exitOK)
	if last := c.asked[len(c.asked)-2]; last != "GET /v1/runs/r1/export?format=jsonl" {
		t.Errorf("it asked for %s", last)
	}
}

// Each is one line, which says what to do.
func TestADeploymentThatCannotBeAsked(t *testing.T) {
	b, c := newBench(t), newCloud(t)
	key := map[string]string{"SLUICE_API_KEY": "k"}
	b.env(key)
	fails := func(code int, url, text string) {
		t.Helper()
		r := b.sluice("runs", "--api", url)
		r.want(t, code, text)
		if strings.Count(r.err, "\n") != 1 {
			t.Errorf("more than a line: %q", r.err)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	fails(exitUsage, "abc.example/v1", `the API's URL "abc.example/v1" is none`)
	fails(exitUsage, "https://user:secret@abc.example", "is none")
	fails(exitFailed, nobody, "sluice: cannot reach "+nobody+": dial tcp")
	fails(exitFailed, c.URL+"/site", "does not answer as Sluice's API does (404 Not Found); is the URL right?")
	fails(exitFailed, c.URL+"/nothing", "there is no API of Sluice at "+c.URL+"/nothing; the URL ends with the stage")
	fails(exitFailed, c.URL+"/moved", "redirects")
	key["SLUICE_API_KEY"] = "wrong"
	fails(exitFailed, c.URL+"/v1", "does not take the key that is in SLUICE_API_KEY")
	key["SLUICE_API_KEY"] = ""
	fails(exitFailed, c.URL+"/v1", "asks for a key; set SLUICE_API_KEY")
	key["SLUICE_API_KEY"] = "a\nb"
	fails(exitUsage, c.URL+"/v1", "the API's key has a character that no key has")
}
