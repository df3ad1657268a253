package toolexec

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"sluice/internal/core/call"
	"sluice/internal/edge"
	"sluice/internal/invoke"
	"sluice/internal/provider"
)

// A call of no run brings its tools along.
func TestToolsThatAreGiven(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`"` + r.URL.Path + `"`))
	}))
	t.Cleanup(server.Close)
	raw, err := os.ReadFile("../../../events/toolexec-request-tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var req invoke.Request
	if err := edge.Decode(raw, &req); err != nil {
		t.Fatal(err)
	}
	req.Tools.Text = strings.ReplaceAll(req.Tools.Text, "https://acme.example", server.URL+", allowPrivate: true")
	h := handler(nil, provider.New(provider.Options{}))
	h.MaxPayload = 1 // an answer that is too large comes as an object
	g := invoke.New(platform{lambda.NewHandler(h.Handle), t}, "", nil, h.Blobs)
	g.Tools = req.Tools
	var got call.Answer
	if err := g.Execute(t.Context(), req.Attempts, func(_ int, a call.Answer) { got = a }); err != nil || string(got.Value) != `"/get/ada"` {
		t.Errorf("%+v %v", got, err)
	}
	for name, req := range map[string]invoke.Request{
		"neither": {Attempts: req.Attempts}, "both": {Run: "r", Tools: req.Tools, Attempts: req.Attempts},
		"no tools": {Tools: &invoke.Tools{Name: "t.yaml", Text: "x"}, Attempts: req.Attempts},
	} {
		raw, _ := json.Marshal(req)
		if _, err := h.Handle(t.Context(), raw); err == nil || edge.Name(err) != "BadRequest" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
