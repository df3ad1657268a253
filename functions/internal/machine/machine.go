// Package machine starts and watches the executions of runs. It owns their names: each run has one execution at a time,
// and its name follows from the run's id and the number of restarts, so that starting twice is starting once.
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
	// Start starts the run's execution; one that was started before is left alone, whatever has become of it.
	Start(ctx context.Context, run string, restarts int) error
	// State tells how it stands, and why, if it ended badly.
	State(ctx context.Context, run string, restarts int) (State, string, error)
}

// Name is the name of an execution.
func Name(run string, restarts int) string {
	if restarts == 0 {
		return run
	}
	return fmt.Sprintf("%s%s%d", run, start.Separator, restarts)
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
func (s StepFunctions) Start(ctx context.Context, run string, restarts int) error {
	input, err := json.Marshal(Input{Run: run})
	if err != nil {
		return err
	}
	_, err = s.Client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &s.Machine, Name: aws.String(Name(run, restarts)), Input: aws.String(string(input))})
	var exists *types.ExecutionAlreadyExists
	if errors.As(err, &exists) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("execution of run %s: %w", run, err)
	}
	return nil
}

// State implements Executions.
func (s StepFunctions) State(ctx context.Context, run string, restarts int) (State, string, error) {
	arn := strings.Replace(s.Machine, ":stateMachine:", ":execution:", 1) + ":" + Name(run, restarts)
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
