package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/value"
)

// longestTurn is how long a single call waits for its turn before it gives up.
const longestTurn = time.Minute

type toolsCmd struct {
	Tool  string            `arg:"" help:"Name of the tool, such as acme.company."`
	Tools string            `required:"" placeholder:"FILE" help:"Tool catalogue."`
	With  map[string]string `mapsep:"none" placeholder:"K=V" help:"Input of the call; may be repeated. Numbers, booleans, lists and maps are read as the tool declares them."`
	placeFlags
}

// Help implements kong.HelpProvider.
func (*toolsCmd) Help() string {
	return `Examples:
  sluice tools acme.company --tools tools.yaml --with domain=example.com
  sluice tools crm.search --tools tools.yaml --with 'filter={"country":"DE"}' --with limit=5

The call counts against the provider's limits, together with the runs of the same state folder. It is made once:
nothing is cached, and a failure is not tried again. The exit code is 1 if the call fails.`
}

// Run implements the command.
func (c *toolsCmd) Run(a *app) (err error) {
	ctx, cancel := a.context()
	defer cancel()
	tools, text, err := loadTools(c.Tools)
	if err != nil {
		return err
	}
	tool := tools.Tools[c.Tool]
	if tool == nil {
		return usagef("%s has no tool %q; it has: %s", c.Tools, c.Tool, strings.Join(slices.Sorted(maps.Keys(tools.Tools)), ", "))
	}
	in, err := typed(tool, c.With)
	if err != nil {
		return usage(err)
	}
	remote, err := c.remote(a)
	if err != nil {
		return err
	}
	if remote != nil { // its secrets are there
		answer, err := c.call(ctx, a, client.Tools{Client: remote, File: api.Catalogue{Name: baseName(c.Tools), Text: string(text)}}, in)
		if err != nil {
			return remoteUsage(err)
		}
		return c.print(a, answer)
	}
	if err := checkSecrets(ctx, a.secretsSource(), map[string]*mapspec.Tool{c.Tool: tool}); err != nil {
		return err
	}
	st, err := a.create(ctx, c.dir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	answer, err := c.call(ctx, a, st.Gateway(tools, a.secretsSource(), userAgent()), in)
	if err != nil {
		return err
	}
	return c.print(a, answer)
}

// call makes the attempt; what is refused before it is dispatched waits for its turn.
func (c *toolsCmd) call(ctx context.Context, a *app, g call.Gateway, in json.RawMessage) (call.Answer, error) {
	id := call.ID("tools/" + ulid.Make().String())
	attempt := call.Attempt{Tool: c.Tool, Input: in, RequestID: id.Request(0), Fence: id.Fence()}
	for {
		var answer call.Answer
		err := g.Execute(ctx, []call.Attempt{attempt}, func(_ int, got call.Answer) { answer = got })
		if err != nil {
			return answer, err
		}
		if err := ctx.Err(); err != nil {
			return answer, err
		}
		wait := time.Until(answer.Until)
		if answer.Outcome != call.Refused && (answer.Outcome != call.Held || answer.Dispatched) || wait > longestTurn {
			return answer, nil
		}
		if wait > time.Second {
			fmt.Fprintf(a.stderr, "sluice: waiting for a turn until %s\n", clock(answer.Until, time.Now()))
		}
		select {
		case <-time.After(max(wait, time.Millisecond)):
		case <-ctx.Done():
			return answer, ctx.Err()
		}
	}
}

func (c *toolsCmd) print(a *app, answer call.Answer) error {
	switch answer.Outcome {
	case call.Result:
		_, err := fmt.Fprintln(a.stdout, jsonSafe(string(answer.Value)))
		return err
	case call.Missing:
		_, err := fmt.Fprintln(a.stdout, "null")
		return err
	}
	text := string(answer.Outcome)
	if answer.Error != nil {
		text = answer.Error.Error()
	}
	if !answer.Until.IsZero() {
		text += fmt.Sprintf("; not before %s", clock(answer.Until, time.Now()))
	}
	return fmt.Errorf("%s: %s", c.Tool, text)
}

// typed reads the values as the tool declares its inputs.
func typed(tool *mapspec.Tool, with map[string]string) (json.RawMessage, error) {
	in := map[string]any{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(with)) {
		v, err := readValue(typeOf(tool, name), with[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("--with %s: %w", name, err))
		}
		in[name] = v
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	checked, err := tool.CheckInput(in)
	if err != nil {
		return nil, err
	}
	return value.Encode(checked)
}

func typeOf(tool *mapspec.Tool, name string) string {
	for _, p := range tool.Input {
		if p.Name == name {
			return p.Type
		}
	}
	return "any"
}

func readValue(kind, text string) (any, error) {
	var v any
	var err error
	switch kind {
	case "string":
		return text, nil
	case "integer":
		v, err = strconv.ParseInt(text, 10, 64)
	case "boolean":
		v, err = strconv.ParseBool(text)
	case "any":
		if v, err = value.Decode([]byte(text)); err != nil {
			return text, nil
		}
	default: // number, list, map: CheckInput tells them apart
		v, err = value.Decode([]byte(text))
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no %s", text, kind)
	}
	return v, nil
}
