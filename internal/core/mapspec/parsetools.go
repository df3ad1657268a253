package mapspec

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Defaults and bounds of tools.
const (
	DefaultTimeout  = 30 * time.Second // of one exchange with the provider
	MaxTimeout      = 15 * time.Minute // the longest that a Lambda invocation lasts
	DefaultMaxBody  = 5_000_000        // bytes of an answer's body
	MaxMaxBody      = 64 << 20         // bytes; what is stored of a call may not expand beyond it
	DefaultAttempts = 4                // physical attempts for failures that may pass
	MaxAttempts     = 20
	MaxCache        = 3650 * day
)

var (
	toolKeys = []string{"method", "path", "query", "headers", "body", "input", "timeout", "maxBody", "idempotent", "fence",
		"retry", "cache", "cost", "missing", "fail", "result", "batch"}
	methods        = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	catalogueKeys  = []string{"version", "providers", "tools"}
	bodylessMethod = []string{"GET", "HEAD"}
)

// ParseTools reads a tool catalogue. The error is Problems: every mistake of the file.
func ParseTools(file string, src []byte) (*Catalogue, error) {
	r := &reporter{file: file}
	root := readFile(r, src)
	if root == nil {
		return nil, r.err()
	}
	p := &toolParser{compiler: newCompiler(r, src), cat: &Catalogue{Providers: map[string]*Provider{}, Tools: map[string]*Tool{}}}
	p.parse(root)
	if err := r.err(); err != nil {
		return nil, err
	}
	for _, t := range p.cat.Tools {
		t.Digest = t.digest()
	}
	p.cat.Digest = p.cat.digest()
	return p.cat, nil
}

type toolParser struct {
	*compiler
	cat *Catalogue
}

func (p *toolParser) parse(root *node) {
	if !p.mapping(root, "a tool catalogue", catalogueKeys) {
		return
	}
	p.version(root)
	if n := p.entries(root, "providers"); n != nil {
		for _, f := range n.fields {
			p.cat.Providers[f.name] = p.provider(f)
		}
	}
	if n := p.entries(root, "tools"); n != nil {
		for _, f := range n.fields {
			p.cat.Tools[f.name] = p.tool(f)
		}
	}
}

func (p *toolParser) entries(root *node, name string) *node {
	n := root.get(name)
	switch {
	case n == nil:
		p.add(root.at, "add `"+name+":`", "the %s are missing", name)
		return nil
	case n.kind != kindMap || len(n.fields) == 0:
		p.add(n.at, "", "%s must be a mapping from names to their descriptions, not %s", name, describe(n))
		return nil
	}
	return n
}

func (p *toolParser) tool(f field) *Tool {
	t := &Tool{Name: f.name, Provider: p.providerOf(f), Method: http.MethodGet, Timeout: DefaultTimeout,
		MaxBody: DefaultMaxBody, Attempts: DefaultAttempts}
	n := f.value
	if n.kind == kindNull {
		n = &node{kind: kindMap, at: f.at} // `acme.ping:` alone is a GET of the provider's URL
	}
	if !p.mapping(n, "a tool", toolKeys) {
		return t
	}
	p.inputs(t, n.get("input"))
	p.batch(t, n.get("batch"))
	p.request(t, n, f.at)
	p.checkBatch(t, n)
	p.limitsOf(t, n)
	p.answer(t, n)
	return t
}

// providerOf finds the provider: the tool's name up to the first dot.
func (p *toolParser) providerOf(f field) *Provider {
	name, operation, dotted := strings.Cut(f.name, ".")
	if !dotted || !isName(name) || !isOperation(operation) {
		p.add(f.at, "call it provider.operation, as in acme.company", "`%s` is not a tool's name", f.name)
		return nil
	}
	provider, ok := p.cat.Providers[name]
	if !ok {
		p.add(f.at, suggest(name, slices.Collect(maps.Keys(p.cat.Providers)), "providers"), "there is no provider `%s` for the tool `%s`", name, f.name)
	}
	return provider
}

// isName reports whether s can name a provider: letters, digits, - and _.
func isName(s string) bool {
	return s != "" && len(s) <= maxNameChars && strings.IndexFunc(s, func(c rune) bool {
		return c != '-' && (c > 127 || !isNameByte(byte(c)))
	}) < 0
}

func isOperation(s string) bool {
	return !slices.ContainsFunc(strings.Split(s, "."), func(word string) bool { return !isName(word) })
}

func (p *toolParser) inputs(t *Tool, n *node) {
	if n == nil || n.kind == kindNull {
		return
	}
	if n.kind != kindMap {
		p.add(n.at, "write {domain: string}", "input must be a mapping from names to types, not %s", describe(n))
		return
	}
	t.Input = []Param{}
	for _, f := range n.fields {
		name, optional := strings.CutSuffix(f.name, "?")
		p.checkName(name, f.at, "an input's name")
		if _, dup := t.param(name); dup {
			p.add(f.at, "keep one of them", "the input `%s` is given twice", name)
		}
		kind := p.oneOf(f.value, "the type of `"+name+"`", sortedKeys(paramTypes)...)
		t.Input = append(t.Input, Param{Name: name, Type: kind, Optional: optional})
	}
}

// limitsOf reads how often, how long and for how much a tool may be called.
func (p *toolParser) limitsOf(t *Tool, n *node) {
	t.Idempotent = t.Method != http.MethodPost && t.Method != http.MethodPatch
	if v := n.get("idempotent"); v != nil {
		t.Idempotent = p.boolean(v, "idempotent")
	}
	if v := n.get("timeout"); v != nil {
		t.Timeout = p.duration(v, "timeout", MaxTimeout)
	}
	if v := n.get("cache"); v != nil && v.kind != kindNull {
		t.Cache = p.duration(v, "cache", MaxCache)
		if !t.Idempotent {
			p.add(v.at, "say `idempotent: true` if asking again changes nothing", "the results of a tool that is not idempotent cannot be kept for later runs")
		}
	}
	if v := n.get("retry"); v != nil && p.mapping(v, "retry", []string{"attempts"}) {
		if a := v.get("attempts"); a != nil {
			t.Attempts = int(p.whole(a, "attempts", 1, MaxAttempts))
		}
	}
	if v := n.get("maxBody"); v != nil {
		t.MaxBody = p.size(v)
	}
	if v := n.get("cost"); v != nil {
		t.CostMicros = p.money(v)
	}
}

func (p *toolParser) size(n *node) int64 {
	s, _ := n.scalar.(string)
	size, err := ParseSize(s)
	switch {
	case err != nil:
		p.add(n.at, err.Error(), "maxBody is not a size: %s", asWritten(n))
	case size < 1 || size > MaxMaxBody:
		p.add(n.at, "", "maxBody must be from 1B to 64MiB")
	default:
		return size
	}
	return DefaultMaxBody
}

func (p *compiler) money(n *node) int64 {
	s := n.text
	if n.kind == kindString {
		s = n.scalar.(string)
	}
	micros, err := parseMicros(s)
	if err != nil {
		p.add(n.at, err.Error(), "cost is not an amount: %s", asWritten(n))
	}
	return micros
}

// asWritten is a scalar as a user wrote it, for messages.
func asWritten(n *node) string {
	if s, ok := n.scalar.(string); ok {
		return "`" + s + "`"
	}
	return describe(n)
}

// answer reads what an answer means.
func (p *toolParser) answer(t *Tool, n *node) {
	check := p.checkInputRef(t)
	if v := n.get("missing"); v != nil {
		t.Missing = p.condition(v, verdictScope, check)
	}
	if v := n.get("fail"); v != nil {
		t.Fail = p.condition(v, verdictScope, check)
	}
	if v := n.get("result"); v != nil {
		t.Result = p.template(v, answerScope, check)
	}
}

// checkInputRef reports uses of inputs that the tool does not declare.
func (p *toolParser) checkInputRef(t *Tool) checkRef {
	return func(r reference, at pos) {
		if r.root != "input" || r.whole || t.Input == nil {
			return
		}
		if _, ok := t.param(r.name); !ok {
			p.add(at, suggest(r.name, t.paramNames(), "inputs"), "the tool declares no input `%s`", r.name)
		}
	}
}
