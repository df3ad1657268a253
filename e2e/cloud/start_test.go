package cloud

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// greeting is a map that calls nobody.
const greeting = `version: 1
name: greet
columns:
  - {name: greeting, value: "Hello ${row.name}"}
`

var (
	guests  = []map[string]any{{"name": "ada"}, {"name": "grace"}}
	greeted = "name,greeting\nada,Hello ada\ngrace,Hello grace\n"
)

func TestStartRepeatedWithItsKeyIsOneRun(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	key := map[string]string{"Idempotency-Key": named("key")}
	var answers [3]struct{ Run string }
	var wg sync.WaitGroup
	for i := range answers { // all at once
		wg.Go(func() {
			if status, said := s.call(t, http.MethodPost, "/runs", key, order{Map: greeting, Rows: guests}, &answers[i]); status != http.StatusAccepted {
				t.Errorf("status %d: %s", status, said)
			}
		})
	}
	wg.Wait()
	run := answers[0].Run
	if run == "" || answers[1].Run != run || answers[2].Run != run {
		t.Fatalf("the starts were %+v; they are one", answers)
	}
	v := s.ended(t, run, "completed", soon)
	if v.Completed != 2 || v.Stats.Slices != 1 {
		t.Errorf("%+v; want 2 rows, worked once", v)
	}
	if got := s.export(t, run); got != greeted {
		t.Errorf("got\n%s", got)
	}
	s.call(t, http.MethodPost, "/runs", key, order{Map: greeting, Rows: guests}, &answers[0])
	if again := s.view(t, run); answers[0].Run != run || !again.FinishedAt.Equal(v.FinishedAt) {
		t.Errorf("a start after its end is run %s, which ended at %v; want %s, at %v", answers[0].Run, again.FinishedAt, run, v.FinishedAt)
	}
	if status, said := s.call(t, http.MethodPost, "/runs", key, order{Map: greeting, Rows: guests[:1]}, nil); status != http.StatusConflict {
		t.Errorf("another start under the same key: status %d: %s", status, said)
	}
}

func TestEventStartsARun(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run := named("event")
	detail, _ := json.Marshal(order{Run: run, Map: greeting, Rows: guests})
	out, err := s.eventbridge.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		EventBusName: &s.bus, Source: aws.String("crm"), DetailType: aws.String("sluice.run.requested"), Detail: aws.String(string(detail)),
	}}})
	if err != nil || out.FailedEntryCount != 0 {
		t.Fatalf("%v, %+v", err, out)
	}
	eventually(t, soon, "the run is there", func() bool {
		status, _ := s.call(t, http.MethodGet, "/runs/"+run, nil, nil, nil)
		return status == http.StatusOK
	})
	s.ended(t, run, "completed", soon)
	if got := s.export(t, run); got != greeted {
		t.Errorf("got\n%s", got)
	}
}

// A run that cannot be planned says so: in its record, in its execution, and to whoever asks for its table.
func TestRunThatFailsSaysWhy(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run := named("fails")
	s.start(t, order{Run: run, Map: greeting, Upload: s.upload(t, "guests.csv", []byte("name\nada\ngrace,hopper\n"))})
	v := s.ended(t, run, "failed", soon)
	if !strings.Contains(v.Error, "guests.csv:3") {
		t.Errorf("its record says %q, and not where the input is wrong", v.Error)
	}
	status, said := s.call(t, http.MethodGet, "/runs/"+run+"/export", nil, nil, nil)
	if status != http.StatusConflict || !strings.Contains(said, "NOT_COMPLETED") {
		t.Errorf("its export: status %d: %s", status, said)
	}
	eventually(t, soon, "the execution has failed", func() bool {
		out, err := s.sfn.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: aws.String(s.execution(run))})
		return err == nil && out.Status == sfntypes.ExecutionStatusFailed
	})
}

func TestAPIAsksForItsKey(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	if status, said := s.call(t, http.MethodGet, "/runs", map[string]string{"X-Api-Key": "guessed"}, nil, nil); status != http.StatusForbidden {
		t.Errorf("with a wrong key: status %d: %s", status, said)
	}
	if status, said := s.call(t, http.MethodGet, "/runs", nil, nil, nil); status != http.StatusOK {
		t.Errorf("with the key: status %d: %s", status, said)
	}
}
