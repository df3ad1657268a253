package machine

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
)

const arn = "arn:aws:states:eu-west-1:123456789012:stateMachine:Run"

// Executions by the wire: a start repeated is one start, and every end has its meaning.
func TestStepFunctions(t *testing.T) {
	answers := map[string]string{"run": `{"status":"RUNNING"}`, "abort": `{"status":"ABORTED","cause":"by hand"}`,
		"died": `{"status":"TIMED_OUT","error":"States.Timeout"}`, "whole": `{"status":"SUCCEEDED"}`}
	started := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Name, Input, StateMachineArn, ExecutionArn, Cause string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		fail := func(kind string) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"` + kind + `"}`))
		}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".StartExecution") {
			switch {
			case in.StateMachineArn != arn:
				t.Error(in.StateMachineArn)
			case in.Name == "denied":
				fail("AccessDeniedException")
				return
			case started[in.Name] != "":
				fail("ExecutionAlreadyExists")
				return
			}
			started[in.Name] = in.Input
			_, _ = w.Write([]byte(`{"executionArn":"x","startDate":1}`))
			return
		}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".StopExecution") {
			switch name := in.ExecutionArn[strings.LastIndex(in.ExecutionArn, ":")+1:]; name {
			case "none":
				fail("ExecutionDoesNotExist")
			case "run":
				fail("AccessDeniedException")
			case "whole", "died":
				fail("ValidationException")
			default:
				started[name] = "stopped: " + in.Cause
				_, _ = w.Write([]byte(`{"stopDate":1}`))
			}
			return
		}
		name, ok := strings.CutPrefix(in.ExecutionArn, "arn:aws:states:eu-west-1:123456789012:execution:Run:")
		if answers[name] == "" || !ok {
			fail("ExecutionDoesNotExist")
			return
		}
		_, _ = w.Write([]byte(answers[name]))
	}))
	defer server.Close()
	s := StepFunctions{Machine: arn, Client: sfn.NewFromConfig(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})})}
	for range 2 {
		if err := s.Start(t.Context(), "r", 2); err != nil {
			t.Error(err)
		}
	}
	if started["r--2"] != `{"run":"r"}` {
		t.Errorf("%v", started)
	}
	if err := s.Start(t.Context(), "denied", 0); err == nil {
		t.Error("a start that was refused")
	}
	for run, fine := range map[string]bool{"r": true, "none": true, "whole": true, "died": true, "run": false} {
		if err := s.Stop(t.Context(), run, 0, "because"); (err == nil) != fine {
			t.Errorf("stop %s: %v", run, err)
		}
	}
	if started["r"] != "stopped: because" {
		t.Errorf("%v", started)
	}
	for run, want := range map[string][2]string{"run": {"running", ""}, "abort": {"aborted", "by hand"},
		"died": {"ended", "TIMED_OUT States.Timeout"}, "whole": {"ended", "SUCCEEDED"}, "none": {"absent", ""}} {
		state, why, err := s.State(t.Context(), run, 0)
		if string(state) != want[0] || why != want[1] || err != nil {
			t.Errorf("%s: %s %q %v, want %v", run, state, why, err, want)
		}
	}
}
