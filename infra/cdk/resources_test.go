package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTableIsBilledOnDemandExpiresItemsAndCanBeRestored(t *testing.T) {
	table := template.one(t, "DynamoDB::Table", "Table")
	for path, want := range map[string]any{
		"BillingMode":               "PAY_PER_REQUEST",
		"DeletionProtectionEnabled": true,
		"TimeToLiveSpecification":   map[string]any{"AttributeName": "x", "Enabled": true},
		"KeySchema":                 []any{map[string]any{"AttributeName": "p", "KeyType": "HASH"}, map[string]any{"AttributeName": "s", "KeyType": "RANGE"}},
		"AttributeDefinitions":      []any{map[string]any{"AttributeName": "p", "AttributeType": "S"}, map[string]any{"AttributeName": "s", "AttributeType": "S"}},
	} {
		if got := table.at(path); asJSON(got) != asJSON(want) {
			t.Errorf("%s is %s, want %s", path, asJSON(got), asJSON(want))
		}
	}
	if table.at("PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") != true {
		t.Error("the table cannot be restored to a point in time")
	}
}

func TestBucketIsPrivateEncryptedAndForgetsUploads(t *testing.T) {
	bucket := template.one(t, "S3::Bucket", "Bucket")
	for _, block := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
		if bucket.at("PublicAccessBlockConfiguration", block) != true {
			t.Errorf("%s is not set", block)
		}
	}
	if got := bucket.at("BucketEncryption", "ServerSideEncryptionConfiguration", 0, "ServerSideEncryptionByDefault", "SSEAlgorithm"); got != "AES256" {
		t.Errorf("encryption %v", got)
	}
	rule := bucket.at("LifecycleConfiguration", "Rules", 0)
	if at(rule, "Prefix") != "uploads/" || at(rule, "ExpirationInDays") != 7.0 || at(rule, "Status") != "Enabled" {
		t.Errorf("lifecycle of uploads: %s", asJSON(rule))
	}
	for _, rule := range bucket.at("LifecycleConfiguration", "Rules").([]any) {
		if at(rule, "ExpirationInDays") != nil && at(rule, "Prefix") != "uploads/" {
			t.Errorf("results expire: %s", asJSON(rule))
		}
	}
	policy := asJSON(template.one(t, "S3::BucketPolicy", "Bucket").at("PolicyDocument"))
	if !strings.Contains(policy, `"aws:SecureTransport":"false"`) || !strings.Contains(policy, `"Effect":"Deny"`) {
		t.Errorf("plain HTTP is not refused: %s", policy)
	}
}

func TestDataSurvivesTheStackUnlessToldOtherwise(t *testing.T) {
	for _, tc := range []struct {
		name string
		t    tmpl
		want string
	}{{"by default", template, "Retain"}, {"with keepData=false", small, "Delete"}} {
		for kind, prefix := range map[string]string{"DynamoDB::Table": "Table", "S3::Bucket": "Bucket"} {
			if got := tc.t.one(t, kind, prefix); got.DeletionPolicy != tc.want || got.UpdateReplacePolicy != tc.want {
				t.Errorf("%s: %s is dealt with as %s, %s; want %s", tc.name, kind, got.DeletionPolicy, got.UpdateReplacePolicy, tc.want)
			}
		}
	}
	if small.one(t, "DynamoDB::Table", "Table").at("DeletionProtectionEnabled") != false {
		t.Error("the table of a stack that keeps nothing cannot be deleted")
	}
}

func TestFunctions(t *testing.T) {
	for name, want := range map[string]struct{ timeout, memory float64 }{
		"Runmap": {900, 512}, "Toolexec": {300, 512}, "Wake": {300, 512}, "Api": {29, 512},
	} {
		for _, tc := range []struct {
			t    tmpl
			arch string
		}{{template, "arm64"}, {small, "x86_64"}} {
			f := function(t, tc.t, name)
			if f.at("Timeout") != want.timeout || f.at("MemorySize") != want.memory || f.at("Runtime") != "provided.al2023" || f.at("Architectures", 0) != tc.arch {
				t.Errorf("%s: %v s, %v MB, %v, %v", name, f.at("Timeout"), f.at("MemorySize"), f.at("Runtime"), f.at("Architectures"))
			}
			if f.at("LoggingConfig", "LogGroup") == nil {
				t.Errorf("%s has no log group of its own", name)
			}
		}
	}
	for name, want := range map[string]any{"Runmap": 50.0, "Toolexec": 10.0, "Wake": nil, "Api": nil} {
		if got := function(t, small, name).at("ReservedConcurrentExecutions"); got != want {
			t.Errorf("%s reserves %v, want %v", name, got, want)
		}
		if got := function(t, template, name).at("ReservedConcurrentExecutions"); got != nil {
			t.Errorf("%s reserves %v by default", name, got)
		}
	}
}

// function finds a function: of the logical ids that start with its name, the others are roles and logs.
func function(t *testing.T, from tmpl, name string) resource {
	t.Helper()
	return from.one(t, "Lambda::Function", name)
}

func TestFunctionsGetTheEnvironmentThatTheyRead(t *testing.T) {
	common := []string{"SLUICE_BUCKET", "SLUICE_BUS", "SLUICE_LOG_LEVEL", "SLUICE_TABLE"}
	for name, extra := range map[string][]string{
		"Runmap": {"SLUICE_TOOLEXEC", "SLUICE_PUBLIC_URL"}, "Toolexec": {"SLUICE_ALLOW_PRIVATE"}, "Wake": {"SLUICE_RUN_MACHINE_ARN", "SLUICE_ALLOW_PUBLIC"},
		"Api": {"SLUICE_RUN_MACHINE_ARN", "SLUICE_TOOLEXEC", "SLUICE_ALLOW_PUBLIC"},
	} {
		variables, _ := function(t, template, name).at("Environment", "Variables").(map[string]any)
		want := slices.Sorted(slices.Values(append(slices.Clone(common), extra...)))
		if got := slices.Sorted(maps.Keys(variables)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	if got := asJSON(function(t, template, "Runmap").at("Environment", "Variables", "SLUICE_PUBLIC_URL")); !strings.Contains(got, `".execute-api."`) || !strings.Contains(got, `"/v1"`) {
		t.Errorf("people answer at %s", got)
	}
	if got := function(t, small, "Runmap").at("Environment", "Variables", "SLUICE_PUBLIC_URL"); got != "https://sluice.example" {
		t.Errorf("people answer at %v", got)
	}
	if got := function(t, template, "Toolexec").at("Environment", "Variables", "SLUICE_ALLOW_PRIVATE"); got != "false" {
		t.Errorf("private addresses are allowed by default: %v", got)
	}
}

func TestLogsAreNotKeptForever(t *testing.T) {
	groups := template.ofType("Logs::LogGroup")
	if len(groups) != 7 { // four functions, two machines, the API
		t.Errorf("%d log groups", len(groups))
	}
	for id, g := range groups {
		if g.at("RetentionInDays") != 30.0 || g.DeletionPolicy != "Delete" {
			t.Errorf("%s: %v days, %s", id, g.at("RetentionInDays"), g.DeletionPolicy)
		}
	}
}

func TestMachinesAreTheFiles(t *testing.T) {
	for prefix, file := range map[string]string{"RunMachine": "run.asl.json", "ShardMachine": "shard.asl.json"} {
		machine := template.one(t, "StepFunctions::StateMachine", prefix)
		definition, ok := machine.at("DefinitionString").(string)
		if !ok {
			t.Fatalf("%s: the definition is no text", prefix)
		}
		var got, want any
		source, err := os.ReadFile("../../statemachine/" + file)
		if err != nil || json.Unmarshal(source, &want) != nil || json.Unmarshal([]byte(definition), &got) != nil {
			t.Fatal(file, err)
		}
		if asJSON(got) != asJSON(want) {
			t.Errorf("%s is not %s", prefix, file)
		}
		// Every name that the file leaves open is given, and none besides.
		names, _ := machine.at("DefinitionSubstitutions").(map[string]any)
		for name := range names {
			if !strings.Contains(definition, "${"+name+"}") {
				t.Errorf("%s: %s is given but not used", prefix, name)
			}
			definition = strings.ReplaceAll(definition, "${"+name+"}", "")
		}
		if strings.Contains(definition, "${") {
			t.Errorf("%s: a name is not given: %s", prefix, definition)
		}
		if machine.at("StateMachineType") != "STANDARD" || machine.at("LoggingConfiguration", "IncludeExecutionData") != false {
			t.Errorf("%s: %s", prefix, asJSON(machine.at("LoggingConfiguration")))
		}
	}
}

func TestOutputs(t *testing.T) {
	want := []string{"ApiKeyId", "ApiUrl", "BucketName", "BusName", "RunMachineArn", "TableName"}
	if got := slices.Sorted(maps.Keys(template.Outputs)); !slices.Equal(got, want) {
		t.Errorf("outputs %v, want %v", got, want)
	}
}

func TestTemplateFitsCloudFormation(t *testing.T) {
	t.Logf("%d resources, %d bytes", len(template.Resources), template.size)
	if template.size > 1<<20 || len(template.Resources) > 500 { // CloudFormation's limits of a template
		t.Errorf("%d bytes, %d resources", template.size, len(template.Resources))
	}
}

func TestTableThatIsThereIsUsed(t *testing.T) {
	if made := restored.ofType("DynamoDB::Table"); len(made) != 0 {
		t.Errorf("a table is made nevertheless: %v", made)
	}
	if got := function(t, restored, "Runmap").at("Environment", "Variables", "SLUICE_TABLE"); got != "restored" {
		t.Errorf("the function uses %v", got)
	}
	for _, s := range restored.statements("RunmapRole") {
		if s["Sid"] == "Table" && !strings.Contains(asJSON(s["Resource"]), ":table/restored") {
			t.Errorf("the function may use %s", asJSON(s["Resource"]))
		}
	}
}
