package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
)

// settings are what a deployment may choose, as CDK context: `cdk deploy -c sluice:keepData=false`, or in cdk.json.
// docs/deploy.md lists them. Names that are not here are refused, so that a misspelt one is not silently a default.
type settings struct {
	Stack        string // name of the stack
	Architecture string // of the functions: arm64 or amd64
	Build        string // folder of the built functions: ARCHITECTURE/FUNCTION/bootstrap.zip
	KeepData     bool   // the table and the bucket survive the stack, and the table cannot be deleted by accident
	Table        string // an existing table to use, such as one restored from a backup; empty: the stack makes one
	LogDays      int    // how long logs are kept
	LogLevel     string // of the functions: debug, info, warn, error
	UploadDays   int    // how long an uploaded input is kept

	RunmapMemory   int // MB; a function's CPU grows with its memory
	ToolexecMemory int
	EdgeMemory     int // of wake and api

	RunmapConcurrency   int // reserved for the function, and its limit; 0: neither
	ToolexecConcurrency int

	SecretParameters []string // SSM parameters that toolexec may read: names, or prefixes that end with /
	SecretNames      []string // secrets in Secrets Manager: names, or prefixes that end with /
	SecretKeys       []string // ARNs of the KMS keys of your own that encrypt them

	AllowPrivate bool // tools may reach private addresses, if their provider says so: for emulators and for providers inside a VPC
	AllowPublic  bool // maps may publish for everybody, with `public: true`; off, what they publish is for who may see the run

	PublicURL  string // where people reach the API, if it has a name of its own; empty: that which API Gateway gives it
	AlarmTopic string // ARN of the SNS topic that alarms go to; empty: they show on the dashboard only
	APIRate    int    // requests per second
	APIBurst   int
	APILogs    bool // access and error logs of the API; sets the account's API Gateway log role
}

func defaults() settings {
	return settings{
		Stack: "Sluice", Architecture: "arm64", Build: "../../build", KeepData: true,
		LogDays: 30, LogLevel: "info", UploadDays: 7,
		RunmapMemory: 512, ToolexecMemory: 512, EdgeMemory: 512,
		SecretParameters: []string{"/sluice/"}, SecretNames: []string{"sluice/"},
		APIRate: 20, APIBurst: 40, APILogs: true,
	}
}

// prefix keeps our settings apart from CDK's own flags in the context.
const prefix = "sluice:"

// fields ties the names of settings to their places and limits.
func (s *settings) fields() map[string]func(string) error {
	return map[string]func(string) error{
		"stack":               text(&s.Stack),
		"architecture":        oneOf(&s.Architecture, "arm64", "amd64"),
		"build":               text(&s.Build),
		"keepData":            flag(&s.KeepData),
		"table":               text(&s.Table),
		"logDays":             oneOfNumbers(&s.LogDays, slices.Sorted(maps.Keys(retentions))...),
		"logLevel":            oneOf(&s.LogLevel, "debug", "info", "warn", "error"),
		"uploadDays":          number(&s.UploadDays, 1, 3650),
		"runmapMemory":        number(&s.RunmapMemory, 256, 10240), // Lambda's upper limit; below it, the smallest that was tried
		"toolexecMemory":      number(&s.ToolexecMemory, 128, 10240),
		"edgeMemory":          number(&s.EdgeMemory, 128, 10240),
		"runmapConcurrency":   number(&s.RunmapConcurrency, 0, 10000),
		"toolexecConcurrency": number(&s.ToolexecConcurrency, 0, 10000),
		"secretParameters":    list(&s.SecretParameters, "/"),
		"secretNames":         list(&s.SecretNames, ""),
		"secretKeys":          list(&s.SecretKeys, "arn:"),
		"allowPrivate":        flag(&s.AllowPrivate),
		"allowPublic":         flag(&s.AllowPublic),
		"publicUrl":           address(&s.PublicURL),
		"alarmTopic":          text(&s.AlarmTopic),
		"apiRate":             number(&s.APIRate, 1, 10000),
		"apiBurst":            number(&s.APIBurst, 1, 5000),
		"apiLogs":             flag(&s.APILogs),
	}
}

// settingsFrom reads the settings from the app's context.
func settingsFrom(app awscdk.App) (settings, error) {
	context, _ := app.Node().GetAllContext(nil).(map[string]any)
	return parse(context)
}

func parse(context map[string]any) (settings, error) {
	s := defaults()
	fields := s.fields()
	for _, key := range slices.Sorted(maps.Keys(context)) {
		name, ours := strings.CutPrefix(key, prefix)
		if !ours {
			continue
		}
		set, known := fields[name]
		if !known {
			return s, fmt.Errorf("there is no setting %s; the settings are %s", key, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if err := set(asText(context[key])); err != nil {
			return s, fmt.Errorf("setting %s: %w", key, err)
		}
	}
	return s, nil
}

// asText gives a value of cdk.json, which has types, the form that it has on the command line, which has none.
func asText(value any) string {
	items, isList := value.([]any)
	if !isList {
		return fmt.Sprint(value)
	}
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = fmt.Sprint(item)
	}
	return strings.Join(parts, ",")
}

func text(to *string) func(string) error {
	return func(s string) error { *to = s; return nil }
}

// address is a URL of the web, to which a path can be added.
func address(to *string) func(string) error {
	return func(s string) error {
		u, err := url.Parse(s)
		if s != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
			return fmt.Errorf("%q is no URL that begins with https://", s)
		}
		*to = strings.TrimSuffix(s, "/")
		return nil
	}
}

func oneOf(to *string, allowed ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(allowed, s) {
			return fmt.Errorf("%q is none of %s", s, strings.Join(allowed, ", "))
		}
		*to = s
		return nil
	}
}

func flag(to *bool) func(string) error {
	return func(s string) (err error) {
		if *to, err = strconv.ParseBool(s); err != nil {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		return nil
	}
}

func number(to *int, low, high int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is not a whole number from %d to %d", s, low, high)
		}
		*to = n
		return nil
	}
}

func oneOfNumbers(to *int, allowed ...int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || !slices.Contains(allowed, n) {
			return fmt.Errorf("%q is none of %v", s, allowed)
		}
		*to = n
		return nil
	}
}

// list reads what is separated by commas; each item starts with the given text. An empty list is allowed: nothing.
// A star is not: a setting must not widen a permission in passing.
func list(to *[]string, start string) func(string) error {
	return func(s string) error {
		*to = nil
		for item := range strings.SplitSeq(s, ",") {
			item = strings.TrimSpace(item)
			switch {
			case item == "":
			case !strings.HasPrefix(item, start):
				return fmt.Errorf("%q does not start with %s", item, start)
			case strings.ContainsAny(item, "*?") || item == "/":
				return fmt.Errorf("%q would allow too much: give a name, or a prefix that ends with /", item)
			default:
				*to = append(*to, item)
			}
		}
		return nil
	}
}
