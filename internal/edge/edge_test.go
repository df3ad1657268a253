package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"sluice/internal/core/sheet"
)

func TestReadNamesAllThatIsMissing(t *testing.T) {
	env := map[string]string{Table: "t", "AWS_REGION": "eu-central-1", LogLevel: "warn", BodyMemory: "128MiB"}
	get := func(k string) string { return env[k] }
	_, err := Read(get, Table, Bucket, Bus)
	if err == nil || !strings.Contains(err.Error(), "lacks SLUICE_BUCKET, SLUICE_BUS;") {
		t.Errorf("error %v", err)
	}
	c, err := Read(get, Table)
	if err != nil || c.Table != "t" || c.AWS.Region != "eu-central-1" || c.LogLevel != slog.LevelWarn || c.BodyMemory != 128<<20 || c.PathStyle || c.AWS.BaseEndpoint != nil {
		t.Errorf("%+v, %v", c, err)
	}
	env["AWS_ENDPOINT_URL"] = "http://127.0.0.1:4566"
	if c, err = Read(get); err != nil || !c.PathStyle || *c.AWS.BaseEndpoint != "http://127.0.0.1:4566" {
		t.Errorf("%+v, %v", c, err)
	}
	for name, bad := range map[string]string{"AWS_ENDPOINT_URL": "nonsense", LogLevel: "loud", BodyMemory: "much"} {
		was := env[name]
		env[name] = bad
		if _, err := Read(get); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, bad, err)
		}
		env[name] = was
	}
}

func TestCredentialsOfTheEnvironment(t *testing.T) {
	env := map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
	c, err := environment(func(k string) string { return env[k] }).Retrieve(t.Context())
	if err != nil || c.AccessKeyID != "a" || c.SecretAccessKey != "s" || c.SessionToken != "t" {
		t.Errorf("credentials differ: %v", err)
	}
	if _, err := environment(func(string) string { return "" }).Retrieve(t.Context()); err == nil {
		t.Error("no credentials, and no error")
	}
}

// What the runtime reports for each error is the name that the state machines know.
func TestErrorsReachTheStateMachineByName(t *testing.T) {
	cause := errors.New("because")
	tests := map[string]error{
		"RunNotFound": fmt.Errorf("loading: %w", fmt.Errorf("%w: %q", sheet.ErrNoRun, "r")),
		"RunFailed":   fmt.Errorf("slice: %w", &RunFailed{cause}),
		"BadRequest":  &BadRequest{"no"},
		"Transient":   cause,
	}
	if Named("r", nil) != nil {
		t.Error("no error was named")
	}
	for name, err := range tests {
		named := Named("r", err)
		h := lambda.NewHandler(func() error { return named })
		_, out := h.Invoke(t.Context(), nil)
		if out == nil || reflect.TypeOf(out).Elem().Name() != name || Name(named) != name || !slices.Contains(ErrorNames(), name) {
			t.Errorf("%s: reported as %T (%s)", name, out, Name(named))
		}
	}
}

func TestDecodeIsStrict(t *testing.T) {
	for raw, want := range map[string]string{
		`{"run":"a"}`:        "",
		`{"run":"a","x":1}`:  `unknown field "x"`,
		`{"run":1}`:          "run must not be a JSON number",
		`{"run":"a"} {}`:     "after the JSON value",
		``:                   "it is empty",
		`{"run":`:            "ends too early",
		`[]`:                 "the value must not be a JSON array",
		`{"run":"a"}garbage`: "after the JSON value",
	} {
		var v struct {
			Run string `json:"run"`
		}
		err := Decode([]byte(raw), &v)
		var bad *BadRequest
		if (err == nil) != (want == "") || err != nil && (!errors.As(err, &bad) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

func TestDeadlineLeavesTimeToAnswer(t *testing.T) {
	if !Deadline(t.Context()).IsZero() {
		t.Error("a deadline out of nothing")
	}
	at := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), at)
	defer cancel()
	if got := Deadline(ctx); at.Sub(got) != time.Second {
		t.Errorf("%v before the end", at.Sub(got))
	}
}

func TestLogLinesAreJSON(t *testing.T) {
	var b strings.Builder
	With(t.Context(), NewLogger(&b, slog.LevelInfo, "runmap")).Info("slice", KeyRun, "r")
	var line map[string]any
	if err := json.Unmarshal([]byte(b.String()), &line); err != nil || line["function"] != "runmap" || line["run"] != "r" {
		t.Errorf("%s: %v", b.String(), err)
	}
}
