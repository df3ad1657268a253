package main

import (
	"slices"
	"strings"
	"testing"
)

func TestRoutesAreReadFromTheDocumentation(t *testing.T) {
	got, err := parseRoutes([]byte(`
paths:
  /runs:
    post: {requestBody: {required: true}}
    get: {}
  /a/{token}:
    parameters: [{name: token}]
    get: {security: []}
    post: {requestBody: {content: {}}, security: [{key: []}]}
`))
	want := []route{{method: "GET", path: "/a/{token}", open: true}, {method: "POST", path: "/a/{token}"}, {method: "GET", path: "/runs"}, {method: "POST", path: "/runs", body: true}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseRoutes([]byte("paths: 7")); err == nil {
		t.Error("no error")
	}
}

// What is published for everybody takes two consents: the map's, and the deployment's. Without the second there is no way
// in, and the functions know.
func TestPublishingForEverybodyIsOffUnlessItIsAskedFor(t *testing.T) {
	for name, d := range map[string]struct {
		template tmpl
		ways     int
		told     string
	}{"default": {template, 0, "false"}, "allowed": {small, 1, "true"}} {
		ways := 0
		for id, r := range d.template.ofType("ApiGateway::Method") {
			if strings.Contains(id, "published") {
				ways++
				if r.at("ApiKeyRequired") != false || r.at("HttpMethod") != "GET" {
					t.Errorf("%s: %s", name, asJSON(r.Properties))
				}
			}
		}
		if ways != d.ways {
			t.Errorf("%s: %d ways in", name, ways)
		}
		for _, fn := range []string{"Api", "Wake"} {
			for id, r := range d.template.ofType("Lambda::Function") {
				if strings.HasPrefix(id, fn) && r.at("Environment", "Variables", "SLUICE_ALLOW_PUBLIC") != d.told {
					t.Errorf("%s: %s is told %v", name, id, r.at("Environment", "Variables", "SLUICE_ALLOW_PUBLIC"))
				}
			}
		}
	}
}
