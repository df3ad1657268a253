package cloud

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"sluice/internal/core/sheet"
	"sluice/internal/cost"
	"sluice/internal/providersim"
)

// demoLasts is ample for the demo, which takes about a minute and a half.
const demoLasts = 6 * time.Minute

// The demo of the laptop, file by file, with its secrets in Parameter Store: the same final table.
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
	s.start(t, order{Run: run, Map: example(t, "leads.map.yaml"), Tools: tools, Upload: s.upload(t, "leads.csv", []byte(example(t, "leads.csv")))})
	v := s.ended(t, run, "completed", demoLasts)

	expectedTable(t, s.export(t, run))
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

// sluice runs the command line against the deployment.
func (s *stack) sluice(t *testing.T, args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sluice")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, root+"/cmd/sluice").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "SLUICE_API_URL="+s.url, "SLUICE_API_KEY="+s.key)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sluice %s: %v\n%s%s", strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
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

// expectedTable compares a table of the demo with the one that was worked out without Sluice, row by row. Of an error
// the expected table has the column and the code only.
func expectedTable(t *testing.T, table string) {
	t.Helper()
	got, want := records(t, table), records(t, example(t, "expected.csv"))
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	wrong := 0
	for i, record := range want {
		last := len(record) - 1
		same := len(got[i]) == len(record) && strings.HasPrefix(got[i][last], record[last]) && (record[last] == "") == (got[i][last] == "")
		for j := 0; same && j < last; j++ {
			same = got[i][j] == record[j]
		}
		if !same && wrong < 5 {
			wrong++
			t.Errorf("line %d:\n got %q\nwant %q", i+1, got[i], record)
		}
	}
}
