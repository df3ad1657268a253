package cloud

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// execution is the ARN of a run's execution, which has the run's name.
func (s *stack) execution(run string) string {
	return strings.Replace(s.runs, ":stateMachine:", ":execution:", 1) + ":" + run
}

// shardExecutions are the ARNs of the executions that work a run's shards: those whose input names the run.
func (s *stack) shardExecutions(t *testing.T, run string) (arns []string) {
	t.Helper()
	pages := sfn.NewListExecutionsPaginator(s.sfn, &sfn.ListExecutionsInput{StateMachineArn: &s.shards})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Executions {
			out, err := s.sfn.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: e.ExecutionArn})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(aws.ToString(out.Input), `"`+run+`"`) {
				arns = append(arns, *e.ExecutionArn)
			}
		}
	}
	return arns
}

// history is everything that happened in an execution, in order.
func (s *stack) history(t *testing.T, arn string) (events []types.HistoryEvent) {
	t.Helper()
	pages := sfn.NewGetExecutionHistoryPaginator(s.sfn, &sfn.GetExecutionHistoryInput{ExecutionArn: &arn})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, page.Events...)
	}
	return events
}

// entered counts the states that an execution entered, and how often.
func entered(events []types.HistoryEvent) map[string]int {
	n := map[string]int{}
	for _, e := range events {
		if d := e.StateEnteredEventDetails; d != nil {
			n[aws.ToString(d.Name)]++
		}
	}
	return n
}

// waits are the spans that an execution spent in Wait states, and the names of events that fall into them.
func waits(events []types.HistoryEvent) (spans [][2]time.Time, meanwhile []types.HistoryEventType) {
	waiting := false
	for _, e := range events {
		switch {
		case e.Type == types.HistoryEventTypeWaitStateEntered:
			waiting = true
			spans = append(spans, [2]time.Time{aws.ToTime(e.Timestamp)})
		case e.Type == types.HistoryEventTypeWaitStateExited:
			waiting = false
			spans[len(spans)-1][1] = aws.ToTime(e.Timestamp)
		case waiting:
			meanwhile = append(meanwhile, e.Type)
		}
	}
	return spans, meanwhile
}

// lines are what a function has logged about a run since a time, with their times.
func (s *stack) lines(t *testing.T, function, run string, since time.Time) (times []time.Time) {
	t.Helper()
	conf, err := s.lambda.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &function})
	if err != nil {
		t.Fatal(err)
	}
	if conf.LoggingConfig == nil {
		t.Fatal(errors.New("the function has no log group"))
	}
	var out struct {
		Events []struct {
			Timestamp int64
			Message   string
		}
	}
	err = s.signed(t, "logs", "POST", "/", "Logs_20140328.FilterLogEvents",
		map[string]any{"logGroupName": aws.ToString(conf.LoggingConfig.LogGroup), "startTime": since.UnixMilli()}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range out.Events {
		if strings.Contains(e.Message, `"`+run+`"`) {
			times = append(times, time.UnixMilli(e.Timestamp))
		}
	}
	return times
}
