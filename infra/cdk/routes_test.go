package main

import (
	"slices"
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
