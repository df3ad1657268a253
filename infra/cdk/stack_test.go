package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/cxapi"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// template is the stack with the defaults; small is one with settings the other way round; restored uses a table that is
// there. Making a template takes seconds, so all tests share these.
var (
	template, small, restored tmpl
	findings                  []string // what cdk-nag says about the first two
)

func TestMain(m *testing.M) {
	defer jsii.Close()
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "sluice-cdk")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		placeholders(folder)
		os.Setenv("CDK_VALIDATION", "false") // the tests check each resource; this halves their time

		s := defaults()
		s.Build = filepath.Join(folder, "build")
		var more []string
		template, findings = synthesize(filepath.Join(folder, "out1"), s)

		s.Architecture, s.KeepData, s.APILogs, s.AllowPublic = "amd64", false, false, true
		s.RunmapConcurrency, s.ToolexecConcurrency = 50, 10
		s.PublicURL = "https://sluice.example"
		s.AlarmTopic = "arn:aws:sns:us-east-1:123456789012:alarms"
		s.SecretParameters, s.SecretNames = nil, []string{"hunter"}
		s.SecretKeys = []string{"arn:aws:kms:us-east-1:123456789012:key/1"}
		small, more = synthesize(filepath.Join(folder, "out2"), s)

		findings = append(findings, more...)
		s = defaults()
		s.Build, s.Table = filepath.Join(folder, "build"), "restored"
		restored, _ = synthesize(filepath.Join(folder, "out3"), s)
		return m.Run()
	}())
}

// placeholders stand for the built functions.
func placeholders(folder string) {
	for _, arch := range []string{"arm64", "amd64"} {
		for _, name := range []string{"runmap", "toolexec", "wake", "api"} {
			at := filepath.Join(folder, "build", arch, name)
			if err := os.MkdirAll(at, 0o755); err != nil {
				panic(err)
			}
			if err := os.WriteFile(filepath.Join(at, "bootstrap.zip"), []byte(name+" for "+arch), 0o755); err != nil {
				panic(err)
			}
		}
	}
}

func synthesize(out string, s settings) (tmpl, []string) {
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: &out, AnalyticsReporting: jsii.Bool(false), Context: contextOfFile()})
	st, err := newStack(app, s)
	if err != nil {
		panic(err)
	}
	found := check(app, st.scope)
	text, err := json.Marshal(assertions.Template_FromStack(st.scope, nil).ToJSON())
	if err != nil {
		panic(err)
	}
	var t tmpl
	if err := json.Unmarshal(text, &t); err != nil {
		panic(err)
	}
	t.size = len(text)
	return t, found
}

// nagged returns what cdk-nag says about a bucket as plain as can be.
func nagged() []string {
	app := awscdk.NewApp(nil)
	plain := awscdk.NewStack(app, jsii.String("Plain"), nil)
	awss3.NewBucket(plain, jsii.String("Bucket"), nil)
	return check(app, plain)
}

// check runs cdk-nag over an app, and returns what it says about a stack.
func check(app awscdk.App, st awscdk.Stack) []string {
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Reports: jsii.Bool(false), Verbose: jsii.Bool(true)}), nil)
	notes := assertions.Annotations_FromStack(st)
	any := assertions.Match_StringLikeRegexp(jsii.String(".*"))
	return append(messages(notes.FindError(jsii.String("*"), any)), messages(notes.FindWarning(jsii.String("*"), any))...)
}

func messages(found *[]*cxapi.SynthesisMessage) []string {
	var list []string
	for _, m := range *found {
		list = append(list, fmt.Sprintf("%s: %v", *m.Id, m.Entry.Data))
	}
	return list
}

// contextOfFile is the context of cdk.json, which the CDK command passes to the app.
func contextOfFile() *map[string]any {
	var file struct{ Context map[string]any }
	text, err := os.ReadFile("cdk.json")
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		panic(err)
	}
	return &file.Context
}
