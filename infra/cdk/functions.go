package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// functions are the four Lambda functions; functions/ says what each is for.
type functions struct {
	runmap, toolexec, wake, api awslambda.Function
}

// How long the functions may take. runmap has all that Lambda gives: a slice ends by itself before that. API Gateway
// gives up after 29 s.
const (
	runmapMinutes   = 15
	toolexecMinutes = 5
	wakeMinutes     = 5
	apiSeconds      = 29
)

// builtFunctions finds the zips of the built functions, by name: functions/build.sh makes them.
func builtFunctions(s settings) (map[string]string, error) {
	code := map[string]string{}
	for _, name := range []string{"runmap", "toolexec", "wake", "api"} {
		zip := filepath.Join(s.Build, s.Architecture, name, "bootstrap.zip")
		if _, err := os.Stat(zip); err != nil {
			return nil, fmt.Errorf("the function %s is not built: %w; run functions/build.sh first", name, err)
		}
		code[name] = zip
	}
	return code, nil
}

// newFunctions makes the functions and gives each what it needs, except for the right to start runs: see startRuns.
func (s *stack) newFunctions(code map[string]string) {
	minutes := func(n int) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(n)) }
	set := s.settings

	s.functions.toolexec = s.newFunction("Toolexec", code["toolexec"], awslambda.FunctionProps{
		Description:                  jsii.String("Sends batches of calls to providers; alone reads their secrets"),
		MemorySize:                   jsii.Number(set.ToolexecMemory),
		Timeout:                      minutes(toolexecMinutes),
		ReservedConcurrentExecutions: reserved(set.ToolexecConcurrency),
	})
	s.functions.toolexec.AddEnvironment(jsii.String("SLUICE_ALLOW_PRIVATE"), jsii.String(strconv.FormatBool(set.AllowPrivate)), nil)
	s.functions.runmap = s.newFunction("Runmap", code["runmap"], awslambda.FunctionProps{
		Description:                  jsii.String("Plans runs, works their shards slice by slice, finishes them"),
		MemorySize:                   jsii.Number(set.RunmapMemory),
		Timeout:                      minutes(runmapMinutes),
		ReservedConcurrentExecutions: reserved(set.RunmapConcurrency),
	})
	s.functions.runmap.AddEnvironment(jsii.String("SLUICE_TOOLEXEC"), s.functions.toolexec.FunctionName(), nil)
	s.functions.wake = s.newFunction("Wake", code["wake"], awslambda.FunctionProps{
		Description:     jsii.String("Starts runs that events ask for, and looks after runs whose execution died"),
		MemorySize:      jsii.Number(set.EdgeMemory),
		Timeout:         minutes(wakeMinutes),
		DeadLetterQueue: s.events.dead,
		RetryAttempts:   jsii.Number(2),
	})
	s.functions.api = s.newFunction("Api", code["api"], awslambda.FunctionProps{
		Description: jsii.String("Answers the API"),
		MemorySize:  jsii.Number(set.EdgeMemory),
		Timeout:     awscdk.Duration_Seconds(jsii.Number(apiSeconds)),
	})
	s.functions.api.AddEnvironment(jsii.String("SLUICE_TOOLEXEC"), s.functions.toolexec.FunctionName(), nil)
	for _, fn := range []awslambda.Function{s.functions.wake, s.functions.api} { // they start runs, and api leads to what they publish
		fn.AddEnvironment(jsii.String("SLUICE_ALLOW_PUBLIC"), jsii.String(strconv.FormatBool(set.AllowPublic)), nil)
	}
	s.allowFunctions()
}

// newFunction makes a function with a role and a log group of its own. The role has no managed policy: those allow
// every log group of the account.
func (s *stack) newFunction(id, zip string, props awslambda.FunctionProps) awslambda.Function {
	role := awsiam.NewRole(s.scope, jsii.String(id+"Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
	})
	logs := s.newLogs(id + "Logs")
	allow(role, "Log", []string{"logs:CreateLogStream", "logs:PutLogEvents"}, logs.LogGroupArn())

	props.Runtime = awslambda.Runtime_PROVIDED_AL2023()
	props.Architecture = awslambda.Architecture_ARM_64()
	if s.settings.Architecture == "amd64" {
		props.Architecture = awslambda.Architecture_X86_64()
	}
	props.Handler = jsii.String("bootstrap")
	props.Code = awslambda.Code_FromAsset(&zip, nil)
	props.Role, props.LogGroup = role, logs
	props.Environment = &map[string]*string{
		"SLUICE_TABLE":     s.data.table.TableName(),
		"SLUICE_BUCKET":    s.data.bucket.BucketName(),
		"SLUICE_BUS":       s.events.bus.EventBusName(),
		"SLUICE_LOG_LEVEL": &s.settings.LogLevel,
	}
	return awslambda.NewFunction(s.scope, &id, &props)
}

func reserved(n int) *float64 {
	if n == 0 {
		return nil
	}
	return jsii.Number(n)
}
