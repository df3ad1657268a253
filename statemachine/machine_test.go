package statemachine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// files are the definitions that are deployed.
var files = []string{"run.asl.json", "shard.asl.json"}

// machine is a definition as far as the tests read it.
type machine struct {
	Comment        string
	StartAt        string
	TimeoutSeconds int
	QueryLanguage  string
	States         map[string]state
}

type state struct {
	Type, Next, Resource, Default string
	End                           bool
	TimeoutSeconds                int
	Parameters                    map[string]any
	Retry                         []retrier
	Catch                         []catcher
	Choices                       []map[string]any
	ItemProcessor                 *machine
}

type retrier struct {
	ErrorEquals     []string
	IntervalSeconds int
	MaxDelaySeconds int
	MaxAttempts     *int
	BackoffRate     float64
	JitterStrategy  string
}

type catcher struct {
	ErrorEquals      []string
	Next, ResultPath string
}

// load reads a definition, both as what the tests know and as it is.
func load(t *testing.T, file string) (machine, any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m machine
	var raw any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(file, err)
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(file, err)
	}
	return m, raw
}

// each visits the states of a machine and of the machines inside it.
func (m machine) each(visit func(name string, s state)) {
	for _, name := range slices.Sorted(maps.Keys(m.States)) {
		visit(name, m.States[name])
		if inner := m.States[name].ItemProcessor; inner != nil {
			inner.each(visit)
		}
	}
}

// next returns the states that may follow.
func (s state) next() []string {
	var list []string
	for _, name := range []string{s.Next, s.Default} {
		if name != "" {
			list = append(list, name)
		}
	}
	for _, c := range s.Choices {
		list = append(list, fmt.Sprint(c["Next"]))
	}
	for _, c := range s.Catch {
		list = append(list, c.Next)
	}
	return list
}

// op is the operation that a task asks runmap for.
func (s state) op() string {
	payload, _ := s.Parameters["Payload"].(map[string]any)
	op, _ := payload["op"].(string)
	return op
}

// walk visits every string of a definition, with the key that it stands under.
func walk(v any, key string, visit func(key, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			walk(inner, k, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, key, visit)
		}
	case string:
		visit(key, v)
	}
}

// keys visits every key of a definition, except those of payloads, which are ours.
func keys(v any, visit func(key string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			visit(k)
			if k != "Parameters" && k != "States" {
				keys(inner, visit)
			}
			if states, ok := inner.(map[string]any); ok && k == "States" {
				for _, s := range states {
					keys(s, visit)
				}
			}
		}
	case []any:
		for _, inner := range v {
			keys(inner, visit)
		}
	}
}

func lambdaTask(s state) bool { return strings.HasPrefix(s.Resource, "arn:aws:states:::lambda:") }
