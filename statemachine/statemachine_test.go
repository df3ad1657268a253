// Package statemachine_test holds the definitions of the state machines against what they rest on: the language of
// Step Functions, what the emulators run of it, and the functions' own names for operations, fields and errors.
package statemachine_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/internal/edge"
)

func TestEveryStateExistsIsReachedAndEnds(t *testing.T) {
	for _, file := range files {
		m, _ := load(t, file)
		var check func(m machine)
		check = func(m machine) {
			reached := map[string]bool{}
			var visit func(name string)
			visit = func(name string) {
				s, ok := m.States[name]
				if !ok {
					t.Errorf("%s: there is no state %s", file, name)
					return
				}
				if reached[name] {
					return
				}
				reached[name] = true
				next := s.next()
				if ends := s.End || s.Type == "Succeed" || s.Type == "Fail"; ends == (s.Next != "") && s.Type != "Choice" {
					t.Errorf("%s: %s must either end or go on", file, name)
				}
				for _, n := range next {
					visit(n)
				}
			}
			visit(m.StartAt)
			for name, s := range m.States {
				if !reached[name] {
					t.Errorf("%s: nothing leads to %s", file, name)
				}
				if s.ItemProcessor != nil {
					check(*s.ItemProcessor)
				}
			}
		}
		check(m)
	}
}

// The emulators run JSONPath, and of the operators with paths only these.
func TestOnlyWhatEmulatorsRunIsUsed(t *testing.T) {
	known := []string{"ResultPath", "OutputPath", "ItemsPath", "TimestampPath", "ErrorPath", "CausePath"}
	operators := []string{"Variable", "StringEquals", "BooleanEquals", "Next", "Comment"}
	for _, file := range files {
		m, raw := load(t, file)
		if m.QueryLanguage != "" && m.QueryLanguage != "JSONPath" {
			t.Errorf("%s: query language %s", file, m.QueryLanguage)
		}
		keys(raw, func(key string) {
			if strings.HasSuffix(key, "Path") && !slices.Contains(known, key) {
				t.Errorf("%s: %s is not for every emulator", file, key)
			}
		})
		m.each(func(name string, s state) {
			for _, c := range s.Choices {
				for key := range c {
					if !slices.Contains(operators, key) {
						t.Errorf("%s: %s: operator %s", file, name, key)
					}
				}
			}
		})
	}
}

func TestSubstitutionsAreThoseThatTheStackGives(t *testing.T) {
	want := map[string][]string{"run.asl.json": {"RunmapArn", "ShardMachineArn"}, "shard.asl.json": {"RunmapArn"}}
	name := regexp.MustCompile(`\$\{([^}]*)\}`)
	for _, file := range files {
		_, raw := load(t, file)
		found := map[string]bool{}
		walk(raw, "", func(_, value string) {
			for _, match := range name.FindAllStringSubmatch(value, -1) {
				found[match[1]] = true
				if !slices.Contains(want[file], match[1]) {
					t.Errorf("%s: the stack gives no %s", file, match[1])
				}
			}
		})
		if len(found) != len(want[file]) {
			t.Errorf("%s uses %v, the stack gives %v", file, found, want[file])
		}
	}
}

// awsErrors are error names of Step Functions and its integrations: Developer Guide, "Handling errors in Step Functions
// workflows" and "Best practices: handle transient Lambda service exceptions"; Runtime.ExitError is Lambda's own for a
// function whose process ended.
var awsErrors = []string{
	"States.ALL", "States.Timeout",
	"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
	"Lambda.ClientExecutionTimeoutException", "Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError",
	"StepFunctions.ExecutionLimitExceededException", "StepFunctions.ThrottlingException",
	"StepFunctions.AWSStepFunctionsException", "StepFunctions.SdkClientException",
}

func TestErrorNamesAreOursOrDocumented(t *testing.T) {
	for _, file := range files {
		m, _ := load(t, file)
		m.each(func(name string, s state) {
			var used []string
			for _, r := range s.Retry {
				used = append(used, r.ErrorEquals...)
			}
			for _, c := range s.Catch {
				used = append(used, c.ErrorEquals...)
			}
			for _, e := range used {
				if !slices.Contains(awsErrors, e) && !slices.Contains(edge.ErrorNames(), e) {
					t.Errorf("%s: %s: nothing reports %s", file, name, e)
				}
			}
		})
	}
}

// What may pass is tried again, each time later and not all at once; what is final is not.
func TestRetries(t *testing.T) {
	passing := []string{
		"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
		"Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Transient",
	}
	for _, file := range files {
		m, _ := load(t, file)
		m.each(func(name string, s state) {
			if s.Type != "Task" {
				return
			}
			for _, r := range s.Retry {
				if r.MaxAttempts == nil {
					t.Errorf("%s: %s: a retry without a number", file, name)
				} else if *r.MaxAttempts > 0 && (r.JitterStrategy != "FULL" || r.BackoffRate <= 1 || r.IntervalSeconds < 1 || r.MaxDelaySeconds <= r.IntervalSeconds) {
					t.Errorf("%s: %s: retries come too close: %+v", file, name, r)
				}
			}
			if !lambdaTask(s) {
				return
			}
			token := strings.HasSuffix(s.Resource, ".waitForTaskToken")
			if s.TimeoutSeconds < 15*60 && !token {
				t.Errorf("%s: %s gives up after %d s, before the function does", file, name, s.TimeoutSeconds)
			}
			for _, e := range append(passing, "States.Timeout") {
				if token && e == "States.Timeout" {
					continue // there it means that nobody has answered yet
				}
				if s.attempts(e) == 0 {
					t.Errorf("%s: %s does not try again after %s", file, name, e)
				}
			}
			final := []string{"RunNotFound", "RunFailed", "BadRequest"}
			if s.op() == "fail" {
				final = []string{"RunNotFound", "BadRequest"} // anything else, and the record would stay untrue
			}
			for _, e := range final {
				if s.attempts(e) != 0 {
					t.Errorf("%s: %s tries again after %s", file, name, e)
				}
			}
		})
	}
}

// attempts is how often a state tries again after an error: the first retrier that matches decides.
func (s state) attempts(err string) int {
	for _, r := range s.Retry {
		if slices.Contains(r.ErrorEquals, err) || slices.Contains(r.ErrorEquals, "States.ALL") {
			return *r.MaxAttempts
		}
	}
	return 0
}

// However an execution fails, it has told the run's record before.
func TestEveryFailureIsRecorded(t *testing.T) {
	for _, file := range files {
		m, _ := load(t, file)
		for name, s := range m.States {
			if (s.Type == "Task" || s.Type == "Map") && !s.catchesAll() {
				t.Errorf("%s: %s: an error ends the execution at once", file, name)
			}
			for _, next := range s.next() {
				if m.States[next].Type == "Fail" && s.op() != "fail" {
					t.Errorf("%s: %s leads to %s without a word to the record", file, name, next)
				}
			}
		}
		if m.TimeoutSeconds == 0 {
			t.Errorf("%s: no TimeoutSeconds", file)
		}
	}
}

func (s state) catchesAll() bool {
	return len(s.Catch) > 0 && slices.Equal(s.Catch[len(s.Catch)-1].ErrorEquals, []string{"States.ALL"})
}

func TestParkedShardWaitsUntilWakeAt(t *testing.T) {
	m, raw := load(t, "shard.asl.json")
	park := m.States["Park"]
	at := raw.(map[string]any)["States"].(map[string]any)["Park"].(map[string]any)["TimestampPath"]
	if park.Type != "Wait" || at != "$.wakeAt" || park.Next != "Slice" {
		t.Errorf("Park: %+v at %v", park, at)
	}
	// Done, paused and cancelled win over rollover, and rollover over everything else.
	var order []any
	for _, c := range m.States["Outcome"].Choices {
		order = append(order, c["Next"])
	}
	if !slices.Equal(order, []any{"Done", "Done", "Done", "Rollover", "Slice", "Park", "Await"}) {
		t.Errorf("the order of choices is %v", order)
	}
}

// A run whose last steps wait comes back when they may be made, and ends only when they are.
func TestFinishComesBackUntilItIsDone(t *testing.T) {
	m, raw := load(t, "run.asl.json")
	rest := m.States["Rest"]
	at := raw.(map[string]any)["States"].(map[string]any)["Rest"].(map[string]any)["TimestampPath"]
	if rest.Type != "Wait" || at != "$.wakeAt" || rest.Next != "Finish" || m.States["Finish"].Next != "Ended" {
		t.Errorf("Rest: %+v at %v", rest, at)
	}
	ways := map[any]any{}
	for _, c := range m.States["Ended"].Choices {
		ways[c["StringEquals"]] = c["Next"]
	}
	want := map[any]any{"done": "Done", "more": "Finish", "parked": "Rest"}
	if !maps.Equal(ways, want) || m.States["Ended"].Default != "Unforeseen" || m.States["Unforeseen"].Next != "Fail" {
		t.Errorf("Ended leads to %v", ways)
	}
}

// Nobody answering in time is no failure: a slice looks, and an answer leads to a slice too.
func TestWaitingForATokenEndsWithASlice(t *testing.T) {
	m, _ := load(t, "shard.asl.json")
	found := 0
	for name, s := range m.States {
		if !strings.HasSuffix(s.Resource, ".waitForTaskToken") {
			continue
		}
		found++
		if s.Next != "Slice" || len(s.Catch) == 0 || !slices.Equal(s.Catch[0].ErrorEquals, []string{"States.Timeout"}) || s.Catch[0].Next != "Slice" {
			t.Errorf("%s: after an answer %s, without one %+v", name, s.Next, s.Catch)
		}
	}
	if found == 0 {
		t.Error("no state waits for a token")
	}
}
