package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// tmpl is a CloudFormation template, as far as the tests read it.
type tmpl struct {
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
	size      int
}

type resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
}

// ofType returns the resources of a type, by logical id.
func (t tmpl) ofType(kind string) map[string]resource {
	found := map[string]resource{}
	for id, r := range t.Resources {
		if r.Type == "AWS::"+kind {
			found[id] = r
		}
	}
	return found
}

// one returns the resource of a type whose logical id starts with a prefix; there must be exactly one.
func (t tmpl) one(tb testing.TB, kind, prefix string) resource {
	tb.Helper()
	var found []string
	for id := range t.ofType(kind) {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		tb.Fatalf("%d resources of type %s start with %q: %v", len(found), kind, prefix, found)
	}
	return t.Resources[found[0]]
}

// at follows a path of keys and indexes into the properties; nil where it leads nowhere.
func (r resource) at(path ...any) any { return at(r.Properties, path...) }

func at(value any, path ...any) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			key, _ := step.(string)
			value = v[key]
		case []any:
			n, ok := step.(int)
			if !ok || n >= len(v) {
				return nil
			}
			value = v[n]
		default:
			return nil
		}
	}
	return value
}

// asJSON is a value as JSON, to look for names of other resources in it.
func asJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// statements returns the policy statements of the roles and policies whose logical id starts with a prefix.
func (t tmpl) statements(prefix string) []map[string]any {
	var list []map[string]any
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[id]
		if !strings.HasPrefix(id, prefix) || r.Type != "AWS::IAM::Policy" {
			continue
		}
		found, _ := r.at("PolicyDocument", "Statement").([]any)
		for _, s := range found {
			list = append(list, s.(map[string]any))
		}
	}
	return list
}

// strings of a policy's Action or Resource, which is one value or a list.
func many(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// actions returns all actions that policies with a prefix allow.
func (t tmpl) actions(prefix string) []string {
	set := map[string]bool{}
	for _, s := range t.statements(prefix) {
		for _, a := range many(s["Action"]) {
			set[a.(string)] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
