package cloud

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"sluice/internal/providersim"
)

// atOnce is how long a cancellation may take.
const atOnce = 2 * time.Second

// A provider answers three calls and asks to wait for ten minutes then. The run waits in Step Functions, is cancelled there, and
// what was finished can be fetched.
func TestCancelWhileTheShardIsHeld(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	const answered, out = 3, 10 * time.Minute
	run, provider, free := named("cancel"), named("cancel"), named("cancelfree")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify", Outages: []providersim.Outage{{After: answered, For: providersim.Duration(out)}}},
		providersim.Provider{Name: free, Kind: "verify"}) // knows the same, and can be asked
	rows := people("cancel", 8)
	s.start(t, p.verifying(run, provider, 100, time.Second, rows))
	s.in(t, run, "Park")
	began := time.Now()
	v := s.view(t, run)
	look := time.Since(began) // a machine that has much else to do takes its time for anything
	if v.Status != "parked" || v.Completed != answered || time.Until(v.WakeAt) < out-soon {
		t.Errorf("before: %+v", v)
	}
	calls := p.times(provider)

	from := time.Now()
	var told struct{ Status string }
	if status, said := s.call(t, http.MethodPost, "/runs/"+run+"/cancel", nil, nil, &told); status != http.StatusAccepted || told.Status != "cancelled" {
		t.Fatalf("status %d: %s", status, said)
	}
	v = s.view(t, run)
	if took := v.FinishedAt.Sub(from); v.Status != "cancelled" || v.Completed != answered || took > atOnce+look {
		t.Errorf("after %v: %+v", took, v)
	} else {
		t.Logf("cancelled %v after it was asked for", took.Round(time.Millisecond))
	}
	s.notRunning(t, s.execution(run))

	want := "email,ok,_status,_error\n"
	for _, row := range rows {
		email := row["email"].(string)
		if p.answeredOnce(provider, email) {
			want += email + "," + p.ask(free, email) + ",completed,\n"
		} else {
			want += email + ",,cancelled,\n"
		}
	}
	if got := s.export(t, run); got != want {
		t.Errorf("what was finished: got\n%s\nwant\n%s", got, want)
	}
	if after := p.times(provider); fmt.Sprint(after) != fmt.Sprint(calls) {
		t.Errorf("calls after it was cancelled: %v, before %v", after, calls)
	}
}

// answeredOnce reports whether the provider has answered for an address.
func (p *providers) answeredOnce(provider, email string) bool {
	for _, r := range p.requests() {
		if r.Request == verifies(provider, email) && r.Status != http.StatusTooManyRequests {
			return true
		}
	}
	return false
}

// notRunning checks that an execution has ended.
func (s *stack) notRunning(t *testing.T, arn string) {
	t.Helper()
	out, err := s.sfn.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	if out.Status == types.ExecutionStatusRunning {
		t.Errorf("%s runs on", arn)
	}
}

// A run is paused in the middle of its work, and goes on when it is told to. No call is lost, and none made twice.
func TestPauseAndResume(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run, provider := named("pause"), named("pause")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify"})
	rows := people("pause", 60)
	s.start(t, p.verifying(run, provider, 5, time.Second, rows)) // 12 s
	eventually(t, soon, "calls are answered", func() bool { return p.report(provider).Completed >= 5 })

	if said := s.sluice(t, "pause", run, "--reason", "lunch"); !strings.Contains(said, "is paused (lunch)") {
		t.Errorf("it says %q", said)
	}
	v, made := s.view(t, run), p.report(provider).Received
	if v.Status != "paused" || v.Completed != made || made == len(rows) {
		t.Errorf("%d calls were made; the run is %+v", made, v)
	}
	eventually(t, soon, "the execution has ended", func() bool {
		out, err := s.sfn.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: aws.String(s.execution(run))})
		return err == nil && out.Status != types.ExecutionStatusRunning
	})
	if now := p.report(provider).Received; now != made {
		t.Errorf("%d calls were made while the run was paused", now-made)
	}

	s.sluice(t, "resume", run)
	if v := s.view(t, run); v.Status != "completed" || v.Completed != len(rows) {
		t.Errorf("%+v", v)
	}
	for request, n := range p.times(provider) {
		if n != 1 {
			t.Errorf("%d times %s", n, request)
		}
	}
	p.verified(provider, s.export(t, run), rows)
}

// A run uses up its budget and pauses by itself, so that its execution has ended in order. It goes on with a higher budget,
// pauses again, and is cancelled then.
func TestBudgetPausesTheRun(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run, provider := named("budget"), named("budget")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify"})
	rows := people("budget", 20)
	o := p.verifying(run, provider, 100, time.Second, rows)
	o.Map += "budget: {calls: 5}\n"
	s.start(t, o)
	paused := func(calls int) {
		t.Helper()
		eventually(t, soon, "the run has paused", func() bool { return s.view(t, run).Status == "paused" })
		if v, made := s.view(t, run), p.report(provider).Received; made != calls || v.Completed != calls {
			t.Errorf("%d calls were made, %d are paid for: %+v", made, calls, v)
		}
	}
	paused(5)
	if got := s.cli(t, "", "resume", run, "--budget-calls", "12"); got.code != 1 || !strings.Contains(got.err, "is paused") {
		t.Errorf("exit code %d, it said\n%s", got.code, got.err)
	}
	paused(12)
	if said := s.sluice(t, "cancel", run); !strings.Contains(said, "was cancelled: 12 of 20 rows done") {
		t.Errorf("it says %q", said)
	}
	if v := s.view(t, run); v.Status != "cancelled" || p.report(provider).Received != 12 {
		t.Errorf("%+v", v)
	}
}
