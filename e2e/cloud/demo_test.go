package cloud

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"sluice/e2e/demo"
	"sluice/internal/core/sheet"
	"sluice/internal/cost"
	"sluice/internal/providersim"
)

// The demo of the laptop, with the same command, and its secrets in Parameter Store: the same final table and exit code.
func TestDemoTableIsTheLaptops(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run := named("demo")
	p := simulate(t, providersim.Demo().Providers...)
	tools := strings.ReplaceAll(example(t, "tools.yaml"), "http://127.0.0.1:8089", p.url)
	for _, name := range []string{"acme", "alpha", "beta", "mail"} {
		secret := "/sluice/" + run + "/" + name
		_, err := s.ssm.PutParameter(t.Context(), &ssm.PutParameterInput{Name: &secret, Value: aws.String("demo-" + name), Type: ssmtypes.ParameterTypeSecureString})
		if err != nil {
			t.Fatal(err)
		}
		tools = strings.ReplaceAll(tools, "env:"+strings.ToUpper(name)+"_KEY", "ssm:"+secret)
	}
	dir := t.TempDir()
	write(t, dir, "tools.yaml", tools)
	for _, name := range []string{"leads.map.yaml", "leads.csv"} {
		write(t, dir, name, example(t, name))
	}
	got := s.cli(t, dir, "run", "leads.map.yaml", "--tools", "tools.yaml", "--in", "leads.csv", "--out", "enriched.csv", "--run", run, "--json")
	if got.code != 3 || !strings.Contains(got.err, "parked until ") {
		t.Fatalf("exit code %d, want 3; it said\n%s", got.code, got.err)
	}
	v := s.view(t, run)

	demo.CheckTable(t, read(t, dir, "enriched.csv"))
	demo.CheckTable(t, s.export(t, run))
	var told struct {
		Status                   string
		Completed, Failed, Total int
	}
	if err := json.Unmarshal([]byte(got.out), &told); err != nil || told.Status != "completed" || told.Completed != v.Completed || told.Failed != v.Failed {
		t.Errorf("%v; it says %s, the run is %+v", err, got.out, v)
	}
	received := 0
	for name, r := range p.sim.Report().Providers {
		received += r.Received
		if len(r.CompletedTwice) > 0 {
			t.Errorf("%s: paid twice for %v", name, r.CompletedTwice)
		}
		if r.TooEarly > r.Received/100+2 { // a machine that stands still may delay a call past a hold's beginning
			t.Errorf("%s: %d of %d requests before an announced deadline", name, r.TooEarly, r.Received)
		}
	}
	if v.Stats.Dispatched != received || v.Stats.Parks < 1 {
		t.Errorf("it tells of %d dispatched calls, the providers saw %d; parks: %d, at least 1 is expected", v.Stats.Dispatched, received, v.Stats.Parks)
	}
	s.measured(t, run)
}

// measured checks the count of state transitions that bills are made from against what the machines did, and tells what
// the run took. Milliseconds are those of this machine and its emulator, and units those of DynamoDB.
func (s *stack) measured(t *testing.T, id string) {
	t.Helper()
	var r sheet.Run
	if err := json.Unmarshal([]byte(s.record(t, id)), &r); err != nil {
		t.Fatal(err)
	}
	shards := s.shardExecutions(t, id)
	transitions := 2 * (len(shards) + 1) // starts and ends
	for _, arn := range append(shards, s.execution(id)) {
		for state, n := range entered(s.history(t, arn)) {
			if state != "Shard" { // inside of the Map, whose history not every emulator has
				transitions += n
			}
		}
	}
	transitions += len(shards)
	u := cost.Used(&r)
	if int(u.Transitions) != transitions {
		t.Errorf("a bill counts %d state transitions, the machines made %d", u.Transitions, transitions)
	}
	if u.WriteUnits < u.Rows || u.ReadUnits == 0 || u.RunmapMs == 0 || u.ToolexecMs == 0 || u.ToolexecRequests == 0 {
		t.Errorf("not measured: %+v", u)
	}
	t.Logf("%d rows, %d calls, in %v", r.Sealed.Rows, r.Stats.Dispatched, r.FinishedAt.Sub(r.CreatedAt).Round(time.Second))
	t.Logf("$ sluice runs %s --cost\n%s", id, s.sluice(t, "runs", id, "--cost"))
	var shown struct{ Bill cost.Bill }
	if err := json.Unmarshal([]byte(s.sluice(t, "runs", id, "--cost", "--json")), &shown); err != nil || shown.Bill.Total != cost.Of(u).Total {
		t.Errorf("the command line tells of %v dollars, the record of %v; %v", shown.Bill.Total, cost.Of(u).Total, err)
	}
}

// record is a run's record, as it is stored.
func (s *stack) record(t *testing.T, run string) string {
	t.Helper()
	out, err := s.aws.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: map[string]types.AttributeValue{
		"p": &types.AttributeValueMemberS{Value: "run/" + run}, "s": &types.AttributeValueMemberS{Value: "record"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := out.Item["d"].(*types.AttributeValueMemberB)
	if b == nil {
		t.Fatalf("run %s has no record", run)
	}
	return string(b.Value)
}

func example(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
