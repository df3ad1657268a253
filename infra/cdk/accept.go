package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// nagKey is where cdk-nag looks for what is accepted.
const nagKey = "cdk_nag"

// accept says why a finding of cdk-nag is accepted for a construct and what is inside it by now. It writes the metadata
// that cdk-nag reads, which keeps cdk-nag itself out of a deployment: only the test loads it.
func accept(construct constructs.IConstruct, rule, reason string) {
	for _, c := range *construct.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		resource, ok := c.(awscdk.CfnResource)
		if !ok {
			continue
		}
		var accepted []any
		if before, ok := resource.GetMetadata(jsii.String(nagKey)).(map[string]any); ok {
			accepted, _ = before["rules_to_suppress"].([]any)
		}
		resource.AddMetadata(jsii.String(nagKey), map[string]any{
			"rules_to_suppress": append(accepted, map[string]any{"id": rule, "reason": reason}),
		})
	}
}
