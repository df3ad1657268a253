package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// stack is Sluice in one stack. Its parts are made in the order in which they need each other.
type stack struct {
	scope    awscdk.Stack
	settings settings

	data      data
	functions functions
	machines  machines
	api       api
	events    events
}

func newStack(app awscdk.App, s settings) (*stack, error) {
	code, err := builtFunctions(s)
	if err != nil {
		return nil, err
	}
	definitions, err := readDefinitions()
	if err != nil {
		return nil, err
	}
	routes, err := routesOf(s)
	if err != nil {
		return nil, err
	}
	st := &stack{settings: s, scope: awscdk.NewStack(app, &s.Stack, &awscdk.StackProps{
		Description: jsii.String("Sluice: fills the columns of tables by calling rate-limited APIs, durably"),
	})}
	st.newData()
	st.newEvents()
	st.newFunctions(code)
	st.newMachines(definitions)
	st.startRuns()
	st.giveTokensBack()
	st.newAPI(routes)
	st.newRules()
	st.newAlarms()
	st.newDashboard()
	st.newOutputs()
	return st, nil
}

// newOutputs names what others need to find: the command line, the tests, an operator.
func (s *stack) newOutputs() {
	for name, value := range map[string]*string{
		"ApiUrl":        s.api.rest.Url(),
		"ApiKeyId":      s.api.key.KeyId(),
		"TableName":     s.data.table.TableName(),
		"BucketName":    s.data.bucket.BucketName(),
		"RunMachineArn": s.machines.run.StateMachineArn(),
		"BusName":       s.events.bus.EventBusName(),
	} {
		awscdk.NewCfnOutput(s.scope, &name, &awscdk.CfnOutputProps{Value: value})
	}
}

// removal says what becomes of data when the stack goes.
func (s *stack) removal() awscdk.RemovalPolicy {
	if s.settings.KeepData {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}
