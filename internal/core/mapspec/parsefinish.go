package mapspec

import (
	"slices"
	"strings"
)

// MaxFinish bounds the steps of `finish`: what became of each is in the run's record.
const MaxFinish = 20

// RunFields are what expressions see of the run that has ended, and callFields what its `calls` have: the name of its map,
// and the fields of the object that --json prints, but for those that make no sense there.
var (
	RunFields = []string{
		"id", "name", "total", "completed", "failed", "duplicates", "calls", "slices", "parks", "residentWaitMs", "heldMs",
		"cost", "startedAt", "finishedAt", "out",
	}
	callFields = []string{"logical", "dispatched", "refused429", "reused", "cached"}
)

var (
	finishCallKeys = []string{"call", "with", "result", "onError"}
	publishKeys    = []string{"name", "public", "content"}
)

func (p *mapParser) finish(n *node) {
	switch {
	case n == nil:
		return
	case n.kind != kindList || len(n.items) == 0:
		p.add(n.at, "write `- {call: ..., with: {...}}` or `- publish: {...}` for each", "finish must be a list of at least one step, not %s", describe(n))
		return
	case len(n.items) > MaxFinish:
		p.add(n.items[MaxFinish].at, "", "finish has %d steps; at most %d are possible", len(n.items), MaxFinish)
		return
	}
	for _, item := range n.items {
		p.m.Finish = append(p.m.Finish, p.finishStep(item))
	}
}

func (p *mapParser) finishStep(n *node) FinishStep {
	const what, remedy = "a step of finish", "write {call: ..., with: {...}} or publish: {name: ..., public: false, content: ...}"
	switch call, publish := n.get("call"), n.get("publish"); {
	case n.kind != kindMap:
		p.add(n.at, remedy, "%s must be a mapping, not %s", what, describe(n))
	case call != nil && publish != nil:
		p.add(publish.at, "make two steps of it", "%s cannot have both `call` and `publish`", what)
	case call != nil:
		if p.mapping(n, "a call of finish", finishCallKeys) {
			return p.finishCall(n)
		}
	case publish != nil:
		if p.mapping(n, "a publishing step of finish", []string{"publish"}) {
			return FinishStep{Publish: p.publish(publish)}
		}
	default:
		p.mapping(n, what, append([]string{"publish"}, finishCallKeys...))
		p.add(n.at, remedy, "%s needs `call` or `publish`", what)
	}
	return FinishStep{}
}

func (p *mapParser) finishCall(n *node) FinishStep {
	step := p.step(n, finishScope, finishResultScope)
	if n.get("result") == nil { // nothing reads it
		step.Result = p.template(&node{kind: kindNull, at: n.at}, noScope, nil)
	}
	s := FinishStep{Call: &step}
	if on := n.get("onError"); on != nil {
		s.OnError = p.onError(on, finishScope)
	}
	return s
}

func (p *mapParser) publish(n *node) *Publish {
	out := &Publish{}
	if !p.mapping(n, "publish", publishKeys) {
		return out
	}
	if name := n.get("name"); name == nil {
		p.add(n.at, "add `name:`, a file name such as report.json", "publish needs a name")
	} else if s, ok := p.plain(name, "the name", "write a file name such as report.json"); ok {
		out.Name = s
		p.fileName(s, name.at)
	}
	if public := n.get("public"); public == nil {
		p.add(n.at, "add `public: false`, or `public: true` if everybody who knows the address may read it", "publish must say whether it is public")
	} else {
		out.Public, out.publicAt = p.boolean(public, "public"), public.at
	}
	if content := n.get("content"); content == nil {
		p.add(n.at, "add `content:`, such as ${run}", "publish needs its content")
	} else {
		out.Content = p.template(content, finishScope, p.check)
	}
	return out
}

// MaxPublishedName bounds a published name: a file name everywhere.
const MaxPublishedName = 100

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// fileName refuses what is not a plain file name on every system, and what would replace another step's file.
func (p *mapParser) fileName(s string, at pos) {
	switch {
	case len(s) > MaxPublishedName || strings.Trim(s, nameChars) != "" || s[0] == '.' || s[len(s)-1] == '.':
		p.add(at, "use letters, digits, `-`, `_` and `.`, not at the beginning or end", "`%s` is not a file name of at most %d plain characters", s, MaxPublishedName)
	case slices.ContainsFunc(p.m.Finish, func(f FinishStep) bool { return f.Publish != nil && strings.EqualFold(f.Publish.Name, s) }):
		p.add(at, "give each its own name; capitals do not tell names apart everywhere", "two steps publish `%s`", s)
	}
}

// checkRun reports uses of fields that a run does not have.
func (p *mapParser) checkRun(r reference, at pos) {
	switch {
	case r.whole:
	case !slices.Contains(RunFields, r.name):
		p.add(at, suggest(r.name, RunFields, "fields"), "`run` has no `%s`", r.name)
	case r.field == "":
	case r.name != "calls":
		p.add(at, "use `run."+r.name+"` alone", "`run.%s` has no fields", r.name)
	case !slices.Contains(callFields, r.field):
		p.add(at, suggest(r.field, callFields, "fields"), "`run.calls` has no `%s`", r.field)
	}
}
