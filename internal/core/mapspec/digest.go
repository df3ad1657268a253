package mapspec

import (
	"crypto/sha256"
	"encoding/hex"

	"sluice/internal/core/value"
)

// digestOf is the hex SHA-256 of a value's canonical JSON.
func digestOf(v any) string {
	b, err := value.Encode(v)
	if err != nil {
		// Meanings are built from parsed files, whose values all have a JSON form.
		b = []byte("unencodable: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// written is a template's meaning; an absent one is null and differs from a template that says null.
func written(t *Template) any {
	if t == nil {
		return nil
	}
	return map[string]any{"is": t.meaning}
}

func writtenAll(m map[string]*Template) any {
	out := make(map[string]any, len(m))
	for name, t := range m {
		out[name] = written(t)
	}
	return out
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// digest leaves out a name that was only taken from the file's.
func (m *Map) digest(named bool) string {
	name := ""
	if named {
		name = m.Name
	}
	columns := make([]any, len(m.Columns))
	for i, col := range m.Columns {
		columns[i] = col.meaning()
	}
	var output any
	if m.Output != nil {
		list := make([]any, len(m.Output))
		for i, o := range m.Output {
			list[i] = []any{o.Name, written(o.Value)}
		}
		output = list
	}
	meaning := map[string]any{
		"version": 1, "name": name, "key": []any{texts(m.Key.Columns), written(m.Key.Expr)}, "vars": m.Vars,
		"concurrency": m.Concurrency, "failFast": m.FailFast, "columns": columns, "output": output,
	}
	if len(m.Finish) > 0 { // maps without it mean what they meant before there was one
		meaning["finish"] = finishMeaning(m.Finish)
	}
	if m.Budget != (Budget{}) {
		meaning["budget"] = []any{m.Budget.Calls, m.Budget.CostMicros}
	}
	return digestOf(meaning)
}

func finishMeaning(steps []FinishStep) any {
	list := make([]any, len(steps))
	for i, s := range steps {
		switch {
		case s.Call != nil:
			list[i] = []any{s.Call.Tool.Name, written(s.Call.With), written(s.Call.Result), written(s.OnError)}
		case s.Publish != nil:
			list[i] = []any{s.Publish.Name, s.Publish.Public, written(s.Publish.Content)}
		}
	}
	return list
}

func (c *Column) meaning() any {
	steps := make([]any, len(c.Steps))
	for i, s := range c.Steps {
		steps[i] = map[string]any{"tool": s.Tool.Name, "with": written(s.With), "accept": written(s.Accept), "result": written(s.Result)}
	}
	m := map[string]any{
		"name": c.Name, "when": written(c.When), "value": written(c.Value), "steps": steps, "waterfall": c.Waterfall,
		"otherwise": written(c.Otherwise), "onError": written(c.OnError),
	}
	// Kinds that came later are not named where they are not used, so that older runs keep their digests.
	if c.Sleep != nil {
		m["sleep"] = written(c.Sleep.Template())
	}
	if c.Event != nil {
		m["event"] = c.Event.meaning()
	}
	if c.Resolve != nil {
		m["resolve"] = c.Resolve.meaning()
	}
	return m
}

func (c *Catalogue) digest() string {
	providers, tools := map[string]any{}, map[string]any{}
	for name, p := range c.Providers {
		providers[name] = p.meaning()
	}
	for name, t := range c.Tools {
		tools[name] = t.meaning()
	}
	return digestOf(map[string]any{"version": 1, "providers": providers, "tools": tools})
}

func (p *Provider) meaning() any {
	limits := make([]any, len(p.Limits))
	for i, l := range p.Limits {
		limits[i] = []any{l.Rate, int64(l.Per), l.Burst}
	}
	return map[string]any{
		"url": p.URL.String(), "limits": limits, "concurrency": p.Concurrency, "noProgress": int64(p.NoProgress),
		"cooldown": int64(p.Cooldown), "resetHeaders": texts(p.ResetHeaders), "allowPrivate": p.AllowPrivate,
		"auth": []any{string(p.Auth.Kind), p.Auth.Name, p.Auth.Format, p.Auth.User, p.Auth.TokenURL, p.Auth.ClientID,
			texts(p.Auth.Scopes), p.Auth.Secret},
	}
}

func (t *Tool) meaning() any {
	input := make([]any, len(t.Input))
	for i, p := range t.Input {
		input[i] = []any{p.Name, p.Type, p.Optional}
	}
	means := map[string]any{
		"call": t.digest(), "declares": t.Input != nil, "input": input, "timeout": int64(t.Timeout), "maxBody": t.MaxBody,
		"idempotent": t.Idempotent, "fence": t.Fence, "attempts": t.Attempts, "cache": int64(t.Cache), "cost": t.CostMicros,
	}
	if t.Batch != nil {
		means["batch"] = []any{t.Batch.Size, written(t.Batch.TooLarge)}
	}
	return means
}

// digest covers what a call asks for and what its result means, so that a saved result is used only for the same call.
func (t *Tool) digest() string {
	means := map[string]any{
		"provider": t.Provider.Name, "url": t.Provider.URL.String(), "method": t.Method, "path": written(t.Path),
		"query": writtenAll(t.Query), "headers": writtenAll(t.Headers), "body": written(t.Body),
		"missing": written(t.Missing), "fail": written(t.Fail), "result": written(t.Result),
	}
	if t.Batch != nil {
		means["batch"] = []any{written(t.Batch.Body), written(t.Batch.Each)}
	}
	return digestOf(means)
}
