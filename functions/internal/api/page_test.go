package api

import (
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"sluice/internal/api"
	"sluice/internal/page"
)

// staged is a GET as API Gateway sends it: the path is without the stage, which only the context has.
func staged(address *url.URL) events.APIGatewayProxyRequest {
	in := events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: strings.TrimPrefix(address.Path, "/prod"), RequestContext: events.APIGatewayProxyRequestContext{Stage: "prod", Path: address.Path}}
	if in.Path == "" {
		in.Path = "/"
	}
	return in
}

// The document, and all that it and its scripts name, lie below the stage, whether or not its address was given with the slash.
func TestThePageLiesBelowItsStage(t *testing.T) {
	f := Function{api.New(api.Ports{Page: page.Handler(), Log: slog.New(slog.DiscardHandler)})}
	get := func(at *url.URL) events.APIGatewayProxyResponse {
		t.Helper()
		res, err := f.Handle(t.Context(), staged(at))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	at, err := url.Parse("https://abc.execute-api.eu-central-1.amazonaws.com/prod")
	if err != nil {
		t.Fatal(err)
	}
	res := get(at)
	if at, err = at.Parse(res.Headers["Location"]); res.StatusCode != 302 || err != nil || at.String() != "https://abc.execute-api.eu-central-1.amazonaws.com/prod/?slash" {
		t.Fatalf("without the slash: %d, to %s, %v", res.StatusCode, at, err)
	}
	named := regexp.MustCompile(`(?:href|src)="([^"#]+)"|from "(\./[a-z]+\.js)"`)
	seen, todo := map[string]bool{}, []*url.URL{at}
	for len(todo) > 0 {
		at, todo = todo[0], todo[1:]
		if seen[at.Path] {
			continue
		}
		seen[at.Path] = true
		res := get(at)
		if !strings.HasPrefix(at.Path, "/prod/") || res.StatusCode != 200 || res.Headers["Content-Security-Policy"] == "" {
			t.Errorf("%s: %d %v", at, res.StatusCode, res.Headers)
		}
		for _, m := range named.FindAllStringSubmatch(res.Body, -1) {
			next, err := at.Parse(m[1] + m[2])
			if err != nil {
				t.Fatal(err)
			}
			todo = append(todo, next)
		}
	}
	if !seen["/prod/page/main.js"] || !seen["/prod/page/style.css"] || !seen["/prod/page/why.js"] {
		t.Errorf("only %v were found", seen)
	}
}

// The way to the slash never leads to another host, and nothing else is led anywhere.
func TestOnlyTheStageWithoutItsSlashIsLedOn(t *testing.T) {
	for _, c := range []struct{ method, path, at, want string }{
		{"GET", "/", "/prod", "./prod/?slash"},
		{"HEAD", "/", "/base/v 1", "./v%201/?slash"},
		{"GET", "/", "//evil.example", "./evil.example/?slash"},
		{"GET", "/", "/prod/", ""},
		{"GET", "/", "", ""},
		{"GET", "/runs", "/prod/runs", ""},
		{"POST", "/", "/prod", ""},
	} {
		in := events.APIGatewayProxyRequest{HTTPMethod: c.method, Path: c.path, RequestContext: events.APIGatewayProxyRequestContext{Path: c.at}}
		if got := slashless(in); got != c.want {
			t.Errorf("%s %s at %s leads to %q, want %q", c.method, c.path, c.at, got, c.want)
		}
		if in.QueryStringParameters = map[string]string{"slash": ""}; slashless(in) != "" {
			t.Errorf("%s is led on for ever", c.at)
		}
	}
}
