package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"
)

// machines are the two state machines; statemachine/ says what they do.
type machines struct {
	run, shard awsstepfunctions.StateMachine
}

const definitionFolder = "../../statemachine"

// definitions are the texts of the state machines, without white space, by file name.
type definitions struct{ run, shard string }

func readDefinitions() (definitions, error) {
	run, err := readDefinition("run.asl.json")
	if err != nil {
		return definitions{}, err
	}
	shard, err := readDefinition("shard.asl.json")
	return definitions{run, shard}, err
}

func readDefinition(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(definitionFolder, name))
	if err != nil {
		return "", err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return compact.String(), nil
}

func (s *stack) newMachines(texts definitions) {
	runmap := s.functions.runmap.FunctionArn()
	s.machines.shard = s.newMachine("Shard", texts.shard, map[string]*string{"RunmapArn": runmap})
	shardArn := s.machines.shard.StateMachineArn()
	s.machines.run = s.newMachine("Run", texts.run, map[string]*string{"RunmapArn": runmap, "ShardMachineArn": shardArn})

	s.allowShards("RunStartsShards", s.machines.run)
	s.allowShards("ShardRollsOver", s.machines.shard)
}

func (s *stack) newMachine(id, text string, names map[string]*string) awsstepfunctions.StateMachine {
	role := awsiam.NewRole(s.scope, jsii.String(id+"MachineRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("states.amazonaws.com"), nil),
	})
	allow(role, "Invoke", []string{"lambda:InvokeFunction"}, s.functions.runmap.FunctionArn())
	accept(role, "AwsSolutions-IAM5", "Step Functions cannot deliver logs with anything narrower: these actions of CloudWatch Logs take no resource.")

	machine := awsstepfunctions.NewStateMachine(s.scope, jsii.String(id+"Machine"), &awsstepfunctions.StateMachineProps{
		DefinitionBody:          awsstepfunctions.DefinitionBody_FromString(&text),
		DefinitionSubstitutions: &names,
		StateMachineType:        awsstepfunctions.StateMachineType_STANDARD,
		Role:                    role,
		// Errors only, and no payloads: the history of an execution has the rest, and is free.
		Logs: &awsstepfunctions.LogOptions{
			Destination: s.newLogs(id + "MachineLogs"), Level: awsstepfunctions.LogLevel_ERROR, IncludeExecutionData: jsii.Bool(false),
		},
	})
	accept(machine, "AwsSolutions-SF1", "Errors are logged; every transition is in the execution's history, and logging it again is billed.")
	accept(machine, "AwsSolutions-SF2", "The run's record and the execution's history trace a run; X-Ray would be billed for every slice.")
	return machine
}

// allowShards lets a machine start shards and wait for them. It is a policy of its own because the shard's machine
// starts itself: in its role, this would be a cycle.
func (s *stack) allowShards(id string, machine awsstepfunctions.StateMachine) {
	shard := s.machines.shard
	policy := awsiam.NewPolicy(s.scope, &id, &awsiam.PolicyProps{
		Roles: &[]awsiam.IRole{machine.Role()},
		Statements: &[]awsiam.PolicyStatement{
			statement("Start", []string{"states:StartExecution"}, shard.StateMachineArn()),
			statement("Wait", []string{"states:DescribeExecution", "states:StopExecution"}, s.executionsOf(shard.StateMachineName())),
			// The rule by which Step Functions learns that an execution ended; the name is Step Functions' own.
			statement("Learn", []string{"events:PutTargets", "events:PutRule", "events:DescribeRule"},
				s.arn("events", "rule", awscdk.ArnFormat_SLASH_RESOURCE_NAME, "StepFunctionsGetEventsForStepFunctionsExecutionRule")),
		},
	})
	accept(policy, "AwsSolutions-IAM5", "The name of an execution is known only when it runs; the machine is named.")
}
