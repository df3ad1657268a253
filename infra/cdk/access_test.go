package main

import (
	"slices"
	"strings"
	"testing"
)

func TestNagFindsNothingThatIsNotAccepted(t *testing.T) {
	for _, f := range findings {
		t.Error(f)
	}
}

func TestNagIsAtWork(t *testing.T) {
	if len(nagged()) == 0 {
		t.Error("a bucket as plain as can be is not found fault with")
	}
}

func TestNoActionIsAPattern(t *testing.T) {
	for _, s := range template.statements("") {
		for _, action := range many(s["Action"]) {
			if strings.Contains(action.(string), "*") {
				t.Errorf("%v in %s", action, asJSON(s))
			}
		}
	}
}

// A star as the whole resource is left to log delivery alone, which takes no other.
func TestEveryResourceIsNamed(t *testing.T) {
	for _, s := range template.statements("") {
		if !slices.Contains(many(s["Resource"]), any("*")) {
			continue
		}
		for _, action := range many(s["Action"]) {
			if !strings.HasPrefix(action.(string), "logs:") {
				t.Errorf("%v on everything", action)
			}
		}
	}
}

func TestToolexecAloneReadsSecrets(t *testing.T) {
	for _, from := range []tmpl{template, small} {
		for _, s := range from.statements("") {
			if a := asJSON(s["Action"]); (strings.Contains(a, "ssm:") || strings.Contains(a, "secretsmanager:") || strings.Contains(a, "kms:")) &&
				!slices.ContainsFunc(from.statements("ToolexecRole"), func(own map[string]any) bool { return asJSON(own) == asJSON(s) }) {
				t.Errorf("not toolexec's: %s", asJSON(s))
			}
		}
	}
	resources := func(from tmpl, sid string) string {
		for _, s := range from.statements("ToolexecRole") {
			if s["Sid"] == sid {
				return asJSON(s["Resource"])
			}
		}
		return ""
	}
	if got := resources(template, "Parameters"); !strings.Contains(got, `:parameter/sluice/*"`) {
		t.Errorf("parameters: %s", got)
	}
	if got := resources(template, "Secrets"); !strings.Contains(got, `:secret:sluice/*"`) {
		t.Errorf("secrets: %s", got)
	}
	if got := resources(small, "Parameters"); got != "" {
		t.Errorf("parameters that no setting names: %s", got)
	}
	if got := resources(small, "Secrets"); !strings.Contains(got, `:secret:hunter-??????"`) {
		t.Errorf("secrets: %s", got)
	}
	if got := resources(small, "Keys"); got != `"arn:aws:kms:us-east-1:123456789012:key/1"` {
		t.Errorf("keys: %s", got)
	}
}

func TestRightsOfEachFunction(t *testing.T) {
	common := []string{
		"dynamodb:BatchGetItem", "dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query",
		"logs:CreateLogStream", "logs:PutLogEvents", "s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject",
	}
	for role, extra := range map[string][]string{
		"RunmapRole":   {"lambda:InvokeFunction", "events:PutEvents"},
		"ToolexecRole": {"ssm:GetParameter", "secretsmanager:GetSecretValue"},
		"WakeRole":     {"events:PutEvents", "states:StartExecution", "states:DescribeExecution", "states:StopExecution", "sqs:SendMessage"},
		"ApiRole":      {"events:PutEvents", "states:StartExecution", "states:DescribeExecution", "states:StopExecution", "lambda:InvokeFunction"},
	} {
		want := slices.Sorted(slices.Values(append(slices.Clone(common), extra...)))
		if got := template.actions(role); !slices.Equal(got, want) {
			t.Errorf("%s may\n%v, want\n%v", role, got, want)
		}
	}
}

func TestShardMachineMayStartItself(t *testing.T) {
	var found bool
	for _, s := range template.statements("ShardRollsOver") {
		found = found || s["Action"] == "states:StartExecution" && strings.Contains(asJSON(s["Resource"]), `"ShardMachine`)
	}
	if !found {
		t.Error("it may not")
	}
}

// Who answers, and runmap, which hands tokens out, may give back those of the shard's machine, and of no other.
func TestTokensAreGivenBackToTheShardsMachine(t *testing.T) {
	statements := template.statements("GiveTokensBack")
	if len(statements) != 1 || statements[0]["Action"] != "states:SendTaskSuccess" || !strings.Contains(asJSON(statements[0]["Resource"]), `"ShardMachine`) {
		t.Fatalf("%s", asJSON(statements))
	}
	policy := template.one(t, "IAM::Policy", "GiveTokensBack")
	roles := asJSON(policy.at("Roles"))
	for _, role := range []string{`"RunmapRole`, `"WakeRole`, `"ApiRole`} {
		if !strings.Contains(roles, role) {
			t.Errorf("%s is not among %s", role, roles)
		}
	}
	if strings.Contains(roles, "Toolexec") {
		t.Errorf("toolexec too: %s", roles)
	}
}

func TestFunctionsReachOnlyTheirFoldersOfTheBucket(t *testing.T) {
	for role, want := range map[string]map[string][]string{
		"RunmapRole":   {"s3:GetObject": {"uploads", "runs", "values", "cells"}, "s3:PutObject": {"runs", "values", "cells", "published"}},
		"ToolexecRole": {"s3:GetObject": {"values"}, "s3:PutObject": {"values", "runs/*/answers"}},
		"WakeRole":     {"s3:GetObject": {"uploads", "runs", "values", "cells"}, "s3:PutObject": {"runs", "values"}},
		"ApiRole":      {"s3:GetObject": {"uploads", "runs", "values", "cells", "published"}, "s3:PutObject": {"uploads", "runs", "values"}},
	} {
		for action, folders := range want {
			var got []string
			for _, s := range template.statements(role) {
				if !slices.Contains(many(s["Action"]), any(action)) {
					continue
				}
				for _, r := range many(s["Resource"]) {
					_, name, _ := strings.Cut(asJSON(r), `,"/`)
					got = append(got, strings.TrimSuffix(name, `/*"]]}`))
				}
			}
			if !slices.Equal(got, folders) {
				t.Errorf("%s: %s on %q, want %q", role, action, got, folders)
			}
		}
	}
}
