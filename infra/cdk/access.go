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

// What internal/dynamo and internal/objects call. ListBucket is what makes S3 answer "no such object" instead of
// "forbidden" for an object that is not there.
var (
	tableActions  = []string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:DeleteItem"}
	objectActions = []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
)

// allowFunctions gives the functions their data, and each what it alone needs.
func (s *stack) allowFunctions() {
	f := s.functions
	for _, fn := range []awslambda.Function{f.runmap, f.toolexec, f.wake, f.api} {
		role := fn.Role().(awsiam.Role)
		allow(role, "Table", tableActions, s.data.table.TableArn())
		allow(role, "Objects", objectActions, s.data.bucket.ArnForObjects(jsii.String("*")))
		allow(role, "Absence", []string{"s3:ListBucket"}, s.data.bucket.BucketArn())
		accept(role, "AwsSolutions-IAM5", "Objects are named by the run and by digests; the bucket holds nothing but this stack's objects.")
	}
	allow(f.runmap.Role().(awsiam.Role), "Call", []string{"lambda:InvokeFunction"}, f.toolexec.FunctionArn())
	allow(f.runmap.Role().(awsiam.Role), "Announce", []string{"events:PutEvents"}, s.events.bus.EventBusArn())
	s.allowSecrets(f.toolexec.Role().(awsiam.Role))
}

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

// startRuns lets wake and api start and look at runs. It comes after the machines, which invoke functions themselves.
func (s *stack) startRuns() {
	run := s.machines.run
	executions := s.executionsOf(run.StateMachineName())
	for _, fn := range []awslambda.Function{s.functions.wake, s.functions.api} {
		fn.AddEnvironment(jsii.String("SLUICE_RUN_MACHINE_ARN"), run.StateMachineArn(), nil)
		role := fn.Role().(awsiam.Role)
		allow(role, "Start", []string{"states:StartExecution"}, run.StateMachineArn())
		allow(role, "Look", []string{"states:DescribeExecution"}, executions)
	}
}

// executionsOf names all executions of a machine: an execution's name is only known when it runs.
func (s *stack) executionsOf(machine *string) *string {
	return s.arn("states", "execution", awscdk.ArnFormat_COLON_RESOURCE_NAME, *machine+":*")
}
