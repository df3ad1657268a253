package mapspec

import (
	"net/textproto"
	"slices"
	"strings"
)

// managedHeaders are set by the HTTP client; a tool that set them could change where a request ends.
var managedHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer",
	"Keep-Alive", "Proxy-Connection", "Accept-Encoding", "Expect"}

// secretHeaders usually carry credentials, which belong to the provider's auth and not into the file.
var secretHeaders = []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "Cookie"}

// secretParams usually carry credentials too.
var secretParams = []string{"api_key", "apikey", "api-key", "access_token", "client_secret", "secret", "password"}

// request reads what is sent.
func (p *toolParser) request(t *Tool, n *node, at pos) {
	if v := n.get("method"); v != nil {
		if m := p.oneOf(v, "method", methods...); m != "" {
			t.Method = m
		}
	}
	path := n.get("path")
	if path == nil {
		path = &node{kind: kindString, at: at, scalar: ""}
	}
	p.path(t, path)
	if v := n.get("query"); v != nil {
		t.Query = p.params(t, v, "query")
		p.checkQuery(t, v)
	}
	if v := n.get("headers"); v != nil {
		p.headers(t, v)
	}
	if v := n.get("body"); v != nil && v.kind != kindNull {
		t.Body = p.template(v, t.requestScope(), p.checkInputRef(t))
		if slices.Contains(bodylessMethod, t.Method) {
			p.add(v.at, "use method: POST", "a %s request has no body", t.Method)
		}
	}
	if v := n.get("fence"); v != nil && v.kind != kindNull {
		p.fence(t, v)
	}
}

func (p *toolParser) checkQuery(t *Tool, n *node) {
	if t.Query == nil {
		return
	}
	for _, f := range n.fields {
		constant, fixed := t.Query[f.name].Constant()
		switch {
		case t.Provider != nil && t.Provider.Auth.Kind == AuthQuery && t.Provider.Auth.Name == f.name:
			p.add(f.at, "remove it", "the provider's auth already sets the query parameter `%s`", f.name)
		case fixed && constant != nil && slices.Contains(secretParams, strings.ToLower(f.name)):
			p.add(f.value.at, "use the provider's auth with a secret such as env:ACME_KEY", "the query parameter `%s` holds a credential in the file", f.name)
		}
	}
}

func (p *toolParser) params(t *Tool, n *node, what string) map[string]*Template {
	if n.kind == kindNull {
		return nil
	}
	if n.kind != kindMap {
		p.add(n.at, "write {name: value}", "%s must be a mapping from names to values, not %s", what, describe(n))
		return nil
	}
	out := make(map[string]*Template, len(n.fields))
	for _, f := range n.fields {
		if f.name == "" {
			p.add(f.at, "", "a name in %s is empty", what)
		}
		if f.value.kind == kindMap {
			p.add(f.value.at, "text, numbers and lists of them can", "a mapping cannot be sent in %s", what)
		}
		out[f.name] = p.template(f.value, t.requestScope(), p.checkInputRef(t))
	}
	return out
}

func (p *toolParser) headers(t *Tool, n *node) {
	t.Headers = p.params(t, n, "headers")
	seen := map[string]bool{}
	for _, f := range n.fields {
		canonical := textproto.CanonicalMIMEHeaderKey(f.name)
		constant, fixed := t.Headers[f.name].Constant()
		switch {
		case !p.headerName(f.name, f.at):
		case seen[canonical]:
			p.add(f.at, "keep one of them", "the header `%s` is given twice", f.name)
		case t.Provider != nil && t.Provider.Auth.Kind != AuthNone && canonical == t.Provider.Auth.headerName():
			p.add(f.at, "remove it", "the provider's auth already sets the header `%s`", f.name)
		case slices.Contains(secretHeaders, canonical) && fixed && constant != nil:
			p.add(f.value.at, "use the provider's auth with a secret such as env:ACME_KEY", "the header `%s` holds a credential in the file", f.name)
		case f.value.kind == kindList:
			p.add(f.value.at, "write one text", "a list cannot be sent in a header")
		case fixed && constant != nil:
			if text, _ := Text(constant); !validHeaderValue(text) {
				p.add(f.value.at, "remove line breaks and control characters", "the value of the header `%s` cannot be sent", f.name)
			}
		}
		seen[canonical] = true
	}
}

// headerName checks a name that a tool or a provider sets.
func (p *compiler) headerName(name string, at pos) bool {
	switch {
	case !isToken(name):
		p.add(at, "use letters, digits and -", "`%s` is not a header's name", name)
	case slices.Contains(managedHeaders, textproto.CanonicalMIMEHeaderKey(name)):
		p.add(at, "remove it", "the header `%s` is set by Sluice itself", name)
	default:
		return true
	}
	return false
}

func (p *toolParser) fence(t *Tool, n *node) {
	name, ok := p.plain(n, "fence", "name a header, as in Idempotency-Key")
	if !ok || !p.headerName(name, n.at) {
		return
	}
	t.Fence = name
	for other := range t.Headers {
		if strings.EqualFold(other, name) {
			p.add(n.at, "remove one of them", "the fence `%s` is also in headers", name)
		}
	}
	if t.Provider != nil && strings.EqualFold(t.Provider.Auth.headerName(), name) {
		p.add(n.at, "choose another header", "the fence `%s` is the header of the provider's auth", name)
	}
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) && !strings.Contains("!#$%&'*+-.^`|~", s[i:i+1]) {
			return false
		}
	}
	return s != "" && len(s) <= maxNameChars
}

// validHeaderValue refuses what could end a header line: control characters but for the tab.
func validHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
