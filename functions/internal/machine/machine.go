// Package machine starts and watches the executions of runs. It owns their names: each run has one execution at a time,
// and its name follows from the run's id and the execution's number, so that starting twice is starting once.
package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"sluice/internal/start"
)

// State is how an execution stands.
type State string

// The states.
const (
	Absent  State = "absent" // never started, or so long ago that Step Functions has forgotten it
	Running State = "running"
	Ended   State = "ended" // however it ended
	Aborted State = "aborted"
)

// Executions starts and watches executions. Implementations are safe for concurrent use.
type Executions interface {
	// Start starts the run's execution; one that was started before is left alone, whatever has become of it. Executions are
	// numbered (sheet.Run, Execution).
	Start(ctx context.Context, run string, execution int) error
	// Stop ends it, and says why. One that has ended, or that there never was, is left alone.
	Stop(ctx context.Context, run string, execution int, why string) error
	// State tells how it stands, and why, if it ended badly.
	State(ctx context.Context, run string, execution int) (State, string, error)
}

// Name is the name of an execution.
func Name(run string, execution int) string {
	if execution == 0 {
		return run
	}
	return fmt.Sprintf("%s%s%d", run, start.Separator, execution)
}

// Input is what the run's state machine is started with.
type Input struct {
	Run string `json:"run"`
}

// StepFunctions is Executions.
type StepFunctions struct {
	Client  *sfn.Client
	Machine string // ARN of the run's state machine
}

// Start implements Executions.
func (s StepFunctions) Start(ctx context.Context, run string, execution int) error {
	input, err := json.Marshal(Input{Run: run})
	if err != nil {
		return err
	}
	_, err = s.Client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &s.Machine, Name: aws.String(Name(run, execution)), Input: aws.String(string(input))})
	var exists *types.ExecutionAlreadyExists
	if errors.As(err, &exists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("execution of run %s: %w", run, err)
	}
	return nil
}

func (s StepFunctions) arn(run string, execution int) string {
	return strings.Replace(s.Machine, ":stateMachine:", ":execution:", 1) + ":" + Name(run, execution)
}

// Stop implements Executions.
func (s StepFunctions) Stop(ctx context.Context, run string, execution int, why string) error {
	_, err := s.Client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: aws.String(s.arn(run, execution)), Cause: &why})
	var none *types.ExecutionDoesNotExist
	if err == nil || errors.As(err, &none) {
		return nil
	}
	// What an execution that has ended answers is not documented, and not everywhere the same.
	if state, _, unknown := s.State(ctx, run, execution); unknown == nil && state != Running {
		return nil
	}
	return fmt.Errorf("execution of run %s: %w", run, err)
}

// State implements Executions.
func (s StepFunctions) State(ctx context.Context, run string, execution int) (State, string, error) {
	arn := s.arn(run, execution)
	out, err := s.Client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	var none *types.ExecutionDoesNotExist
	switch {
	case errors.As(err, &none):
		return Absent, "", nil
	case err != nil:
		return "", "", fmt.Errorf("execution of run %s: %w", run, err)
	}
	switch out.Status {
	case types.ExecutionStatusRunning, types.ExecutionStatusPendingRedrive:
		return Running, "", nil
	case types.ExecutionStatusAborted:
		return Aborted, aws.ToString(out.Cause), nil
	}
	return Ended, strings.TrimSpace(string(out.Status) + " " + aws.ToString(out.Error)), nil
}
