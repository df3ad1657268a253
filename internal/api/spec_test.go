package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// spec is the documentation of the API, made strict: an answer with a field that it does not tell of is wrong.
var spec = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../docs/openapi.yaml")
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	doc.Servers, doc.Security = nil, nil
	for _, s := range doc.Components.Schemas {
		closed(s.Value)
	}
	return doc, nil
})

func closed(s *openapi3.Schema) {
	if s == nil {
		return
	}
	if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
	for _, p := range s.Properties {
		closed(p.Value)
	}
	if s.Items != nil {
		closed(s.Items.Value)
	}
}

var router = sync.OnceValues(func() (routers.Router, error) {
	doc, err := spec()
	if err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("text/html", text)
	return gorillamux.NewRouter(doc)
})

// text decodes a page, which is looked at by people.
func text(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	b, err := io.ReadAll(body)
	return string(b), err
}

// documented holds an exchange against the documentation: the answer always, and the request where it was taken.
func documented(t *testing.T, r *http.Request, body string, res *httptest.ResponseRecorder) {
	t.Helper()
	routes, err := router()
	if err != nil {
		t.Fatal(err)
	}
	r = r.Clone(t.Context())
	r.Body = io.NopCloser(strings.NewReader(body))
	r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
	route, params, err := routes.FindRoute(r)
	if err != nil {
		if res.Code != http.StatusNotFound && res.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s is not documented, and answered with %d", r.Method, r.URL.Path, res.Code)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil && res.Code < 400 {
		t.Errorf("%s %s was taken, and is not as documented: %v", r.Method, r.URL.Path, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.Code, Header: res.Header(),
		Body: io.NopCloser(bytes.NewReader(res.Body.Bytes())), Options: &openapi3filter.Options{IncludeResponseStatus: true}}
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("the answer to %s %s is not as documented: %v", r.Method, r.URL.Path, err)
	}
}

func TestEveryRouteIsDocumentedAndNoOther(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, r := range Routes() {
		want = append(want, r.Method+" "+r.Path)
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			got = append(got, method+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("documented are\n%s\nthere are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The check of the documentation finds what is not documented.
func TestTheDocumentationIsStrict(t *testing.T) {
	doc, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Components.Schemas["Standing"].Value.VisitJSON(map[string]any{"run": "r", "status": "running", "more": 1}); err == nil {
		t.Error("a field that is not documented was passed over")
	}
}
