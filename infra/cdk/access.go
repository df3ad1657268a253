package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// allow adds a statement. Actions are written out and never end with a star.
func allow(role awsiam.Role, sid string, actions []string, resources ...*string) {
	role.AddToPrincipalPolicy(statement(sid, actions, resources...))
}

func statement(sid string, actions []string, resources ...*string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: &sid, Actions: jsii.Strings(actions...), Resources: &resources,
	})
}

// What internal/dynamo and internal/objects call.
var (
	tableActions = []string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:DeleteItem"}
	readActions  = []string{"s3:GetObject"}
	writeActions = []string{"s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
)

// The folders of the bucket: inputs on their way, what belongs to a run, values too large for the table, cells too large
// for a page, and what is published.
const (
	uploads   = "uploads/*"
	runs      = "runs/*"
	values    = "values/*"
	cells     = "cells/*"
	published = "published/*"
	answers   = "runs/*/answers/*" // of toolexec, too large for what it returns; who invoked it fetches and deletes them
)

// allowFunctions gives the functions their data, and each what it alone needs.
func (s *stack) allowFunctions() {
	f := s.functions
	s.allowData(f.runmap, []string{uploads, runs, values, cells}, []string{runs, values, cells, published})
	s.allowData(f.toolexec, []string{values}, []string{values, answers})
	s.allowData(f.wake, []string{uploads, runs, values, cells}, []string{runs, values})
	s.allowData(f.api, []string{uploads, runs, values, cells, published}, []string{uploads, runs, values})

	for _, fn := range []awslambda.Function{f.runmap, f.api} {
		allow(roleOf(fn), "Call", []string{"lambda:InvokeFunction"}, f.toolexec.FunctionArn())
	}
	for _, fn := range []awslambda.Function{f.runmap, f.wake, f.api} {
		allow(roleOf(fn), "Tell", []string{"events:PutEvents"}, s.events.bus.EventBusArn())
	}
	s.allowSecrets(roleOf(f.toolexec))
}

// allowData lets a function use the table, and read and write folders of the bucket. ListBucket is what makes S3 say
// that an object is not there; without it, it says that it is forbidden.
func (s *stack) allowData(fn awslambda.Function, reads, writes []string) {
	role, bucket := roleOf(fn), s.data.bucket
	objects := func(folders []string) []*string {
		arns := make([]*string, len(folders))
		for i := range folders {
			arns[i] = bucket.ArnForObjects(&folders[i])
		}
		return arns
	}
	allow(role, "Table", tableActions, s.data.table.TableArn())
	allow(role, "Read", readActions, objects(reads)...)
	allow(role, "Write", writeActions, objects(writes)...)
	allow(role, "Absence", []string{"s3:ListBucket"}, bucket.BucketArn())
	accept(role, "AwsSolutions-IAM5", "Objects are named by the run and by digests, below the folders that are named here; executions and secrets below prefixes likewise.")
}

func roleOf(fn awslambda.Function) awsiam.Role { return fn.Role().(awsiam.Role) }

// allowSecrets lets toolexec read the secrets that the settings name, and no others.
func (s *stack) allowSecrets(role awsiam.Role) {
	var parameters, secrets []*string
	for _, name := range s.settings.SecretParameters {
		parameters = append(parameters, s.arn("ssm", "parameter", awscdk.ArnFormat_SLASH_RESOURCE_NAME, strings.TrimPrefix(orAnyBelow(name), "/")))
	}
	for _, name := range s.settings.SecretNames {
		// Secrets Manager adds a dash and six characters of its own to a secret's name.
		pattern := orAnyBelow(name)
		if pattern == name {
			pattern += "-??????"
		}
		secrets = append(secrets, s.arn("secretsmanager", "secret", awscdk.ArnFormat_COLON_RESOURCE_NAME, pattern))
	}
	if len(parameters) > 0 {
		allow(role, "Parameters", []string{"ssm:GetParameter"}, parameters...)
	}
	if len(secrets) > 0 {
		allow(role, "Secrets", []string{"secretsmanager:GetSecretValue"}, secrets...)
	}
	if len(s.settings.SecretKeys) > 0 {
		allow(role, "Keys", []string{"kms:Decrypt"}, *jsii.Strings(s.settings.SecretKeys...)...)
	}
}

// orAnyBelow turns a prefix, which ends with a slash, into a pattern.
func orAnyBelow(name string) string {
	if strings.HasSuffix(name, "/") {
		return name + "*"
	}
	return name
}

// arn names something in this account and region.
func (s *stack) arn(service, resource string, format awscdk.ArnFormat, name string) *string {
	return s.scope.FormatArn(&awscdk.ArnComponents{
		Service: &service, Resource: &resource, ArnFormat: format, ResourceName: &name,
	})
}

// giveTokensBack lets functions wake shards that wait for a token. It is a policy of its own because the shard's machine
// invokes runmap: in its role, this would be a cycle.
func (s *stack) giveTokensBack() {
	var roles []awsiam.IRole
	for _, fn := range []awslambda.Function{s.functions.runmap, s.functions.wake, s.functions.api} {
		roles = append(roles, fn.Role())
	}
	awsiam.NewPolicy(s.scope, jsii.String("GiveTokensBack"), &awsiam.PolicyProps{
		Roles:      &roles,
		Statements: &[]awsiam.PolicyStatement{statement("Wake", []string{"states:SendTaskSuccess"}, s.machines.shard.StateMachineArn())},
	})
}

// startRuns lets wake and api start, stop and look at runs. It comes after the machines, which invoke functions themselves.
func (s *stack) startRuns() {
	run := s.machines.run
	executions := s.executionsOf(run.StateMachineName())
	for _, fn := range []awslambda.Function{s.functions.wake, s.functions.api} {
		fn.AddEnvironment(jsii.String("SLUICE_RUN_MACHINE_ARN"), run.StateMachineArn(), nil)
		role := roleOf(fn)
		allow(role, "Start", []string{"states:StartExecution"}, run.StateMachineArn())
		allow(role, "Look", []string{"states:DescribeExecution"}, executions)
		allow(role, "Stop", []string{"states:StopExecution"}, executions)
	}
}

// executionsOf names all executions of a machine: an execution's name is only known when it runs.
func (s *stack) executionsOf(machine *string) *string {
	return s.arn("states", "execution", awscdk.ArnFormat_COLON_RESOURCE_NAME, *machine+":*")
}
