package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// openAPI documents the API; its paths are the routes, so that nothing is stated twice.
const openAPI = "../../docs/openapi.yaml"

// route is one method of one path. What is not a route is refused before a function runs.
type route struct {
	method, path string
	body         bool // it must have a JSON object
	open         bool // it asks for no key
}

// pages are what a browser loads before it asks the API for anything; they are the same for everybody.
var pages = []route{
	{method: "GET", path: "/", open: true},
	{method: "GET", path: "/page/{file}", open: true},
}

// publicRoute leads to what runs have published for everybody. It is there only where the settings allow that.
const publicRoute = "/published/{id}/{name}"

// routesOf are the routes of a deployment with these settings.
func routesOf(s settings) ([]route, error) {
	routes, err := readRoutes()
	if !s.AllowPublic {
		routes = slices.DeleteFunc(routes, func(r route) bool { return r.path == publicRoute })
	}
	return routes, err
}

func readRoutes() ([]route, error) {
	text, err := os.ReadFile(openAPI)
	if err != nil {
		return nil, err
	}
	routes, err := parseRoutes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", openAPI, err)
	}
	return append(routes, pages...), nil
}

func parseRoutes(text []byte) ([]route, error) {
	type operation struct {
		RequestBody struct {
			Required bool `yaml:"required"`
		} `yaml:"requestBody"`
		Security *[]any `yaml:"security"`
	}
	var doc struct {
		Paths map[string]map[string]yaml.RawMessage `yaml:"paths"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	var routes []route
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			if method == "parameters" {
				continue
			}
			var op operation
			if err := yaml.Unmarshal(doc.Paths[path][method], &op); err != nil {
				return nil, err
			}
			open := op.Security != nil && len(*op.Security) == 0
			routes = append(routes, route{method: strings.ToUpper(method), path: path, body: op.RequestBody.Required, open: open})
		}
	}
	return routes, nil
}
