package cloud

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/dynamo"
	"sluice/internal/providersim"
	"sluice/internal/start"
)

// extended is a view with what came of the last extension.
type extended struct {
	view
	Asked     string
	Extension *struct {
		Rows, Duplicates int
		Error            string
	}
}

// extend asks for a run to be extended, under a key.
func (s *stack) extend(t *testing.T, run, key string, by order, want int) (said string) {
	t.Helper()
	status, said := s.call(t, http.MethodPost, "/runs/"+run+"/extend", map[string]string{"Idempotency-Key": key}, by, nil)
	if status != want {
		t.Errorf("POST /runs/%s/extend: status %d, want %d: %s", run, status, want, said)
	}
	return said
}

// extended waits until what a run is extended by is read, and the run has ended.
func (s *stack) extended(t *testing.T, run string, within time.Duration) (v extended) {
	t.Helper()
	eventually(t, within, "run "+run+" is extended", func() bool {
		v = extended{}
		if status, said := s.call(t, http.MethodGet, "/runs/"+run, nil, nil, &v); status != http.StatusOK {
			t.Fatalf("GET /runs/%s: status %d: %s", run, status, said)
		}
		return v.Asked == "" && (v.Status == "completed" || v.Status == "failed")
	})
	return v
}

// store is the deployment's table, for what only somebody who dies leaves behind.
func (s *stack) store() *store.Store {
	return &store.Store{Table: dynamo.New(dynamodb.NewFromConfig(s.aws.Config()), s.table)}
}

// begun reports whether there was ever an execution of this name.
func (s *stack) begun(t *testing.T, name string) bool {
	t.Helper()
	_, err := s.sfn.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: aws.String(s.execution(name))})
	var none *types.ExecutionDoesNotExist
	if err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	return err == nil
}

// Whoever took the request died when the extension was noted, and its execution was not started. The same request, three times at
// once, has it done once; the rows that the run had are not asked for again. What cannot be taken leaves the run as it was.
func TestX4ARunIsExtendedOnce(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	id, provider := named("extend"), named("extend")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify"})
	rows := people("extend", 12)
	first := p.verifying(id, provider, 100, time.Second, rows[:5])
	s.start(t, first)
	s.ended(t, id, "completed", soon)

	var text strings.Builder
	text.WriteString("{\"email\":\"p4@extend.example\"}\n")
	for _, row := range rows[5:10] {
		fmt.Fprintf(&text, "{\"email\":%q}\n", row["email"])
	}
	upload := s.upload(t, "more.jsonl", []byte(text.String()))
	by := order{Map: first.Map, Tools: first.Tools, Upload: upload}
	if _, err := run.AskExtend(t.Context(), s.store(), id, start.KeyID("one"), sheet.More{Input: "more.jsonl", Source: sheet.Source{Object: upload}}); err != nil {
		t.Fatal(err)
	}
	if v := s.view(t, id); v.Status != "completed" || v.Rows != 5 || s.begun(t, id+"--1") {
		t.Errorf("what is only noted has begun: %+v", v)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { s.extend(t, id, "one", by, http.StatusAccepted) })
	}
	wg.Wait()
	v := s.extended(t, id, soon)
	if v.Extension == nil || v.Extension.Rows != 5 || v.Extension.Duplicates != 1 || v.Completed+v.Failed != 10 || v.Shards != 2 {
		t.Fatalf("%+v, extension %+v", v.view, v.Extension)
	}
	s.extend(t, id, "one", by, http.StatusAccepted)
	s.extend(t, id, "one", order{Rows: rows[10:]}, http.StatusConflict)
	s.extend(t, id, "two", order{Rows: []map[string]any{{"email": nil}}}, http.StatusAccepted)
	if v = s.extended(t, id, soon); v.Status != "completed" || v.Extension == nil || !strings.Contains(v.Extension.Error, "row 12") || v.Rows != 10 {
		t.Errorf("a row without a key: %+v, extension %+v", v.view, v.Extension)
	}
	s.extend(t, id, "three", order{Rows: rows[8:]}, http.StatusAccepted)
	if v = s.extended(t, id, soon); v.Extension == nil || v.Extension.Rows != 2 || v.Rows != 12 || v.Shards != 3 {
		t.Errorf("%+v, extension %+v", v.view, v.Extension)
	}
	for name, want := range map[string]bool{id: true, id + "--1": true, id + "--2": true, id + "--3": true, id + "--4": false} {
		if s.begun(t, name) != want {
			t.Errorf("execution %s: begun %v, want %v", name, !want, want)
		}
	}
	for _, row := range rows {
		if n := p.times(provider)[verifies(provider, row["email"].(string))]; n != 1 {
			t.Errorf("%v was asked for %d times", row["email"], n)
		}
	}
	p.verified(provider, s.export(t, id), rows)
}

// The function is killed with kill -9 while it seals what a run is extended by: the machine tries again, and the rows are there, once.
func TestX4AnExtensionOutlivesAKill(t *testing.T) {
	s := deployed(t)
	id := named("extend-kill")
	const had, have = 10, 100_000
	const text = "version: 1\nname: numbers\nkey: n\ncolumns:\n  - {name: twice, value: \"${row.n}${row.n}\"}\n"
	numbers := func(from, to int) []byte {
		var b strings.Builder
		b.WriteString("n\n")
		for n := from; n < to; n++ {
			fmt.Fprintln(&b, n)
		}
		return []byte(b.String())
	}
	s.start(t, order{Run: id, Map: text, Upload: s.upload(t, "first.csv", numbers(0, had))})
	s.ended(t, id, "completed", soon)
	s.extend(t, id, "k", order{Upload: s.upload(t, "more.csv", numbers(had-2, have))}, http.StatusAccepted)
	st := s.store()
	eventually(t, soon, "its rows are being sealed", func() bool {
		_, err := st.Table.Get(t.Context(), table.Key{Part: "run/" + id + "/x1-1/in", Sort: "state"})
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	})
	s.kill(t, s.runmap)
	sealed := s.view(t, id).Rows > had
	t.Parallel() // until here, no other run was there whose function could have been killed

	v := s.extended(t, id, 2*run.Lease+2*soon)
	if v.Extension == nil || v.Extension.Rows != have-had || v.Extension.Duplicates != 2 || v.Completed != have {
		t.Errorf("%+v, extension %+v", v.view, v.Extension)
	}
	table := s.export(t, id)
	if lines := strings.Count(table, "\n"); lines != have+1 || !strings.HasPrefix(table, "n,twice\n0,00\n") || !strings.HasSuffix(table, "\n99999,9999999999\n") {
		t.Errorf("%d lines", lines)
	}
	retried := 0
	for _, e := range s.history(t, s.execution(id+"--1")) {
		if strings.HasSuffix(string(e.Type), "Failed") {
			retried++
		}
	}
	t.Logf("the execution met %d failures; when the function was killed, the rows were the run's: %v", retried, sealed)
}
