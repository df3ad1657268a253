package mapspec

import (
	"net/textproto"
	"regexp"
	"slices"
	"strings"
)

// The forms of a reference to a secret. The secret itself never stands in a file.
var secretForms = []*regexp.Regexp{
	regexp.MustCompile(`^env:[A-Za-z_][A-Za-z0-9_]{0,199}$`),
	regexp.MustCompile(`^ssm:/[A-Za-z0-9_.\-/]{1,1000}$`),
	regexp.MustCompile(`^secretsmanager:[A-Za-z0-9/_+=.@:\-]{1,1000}(#[A-Za-z0-9_.\-]{1,200})?$`),
}

const secretRemedy = "write env:NAME, ssm:/name or secretsmanager:id#field"

var authKeys = map[AuthKind][]string{
	AuthHeader: {"header", "value", "secret"},
	AuthQuery:  {"query", "secret"},
	AuthBasic:  {"basic", "secret"},
	AuthOAuth2: {"oauth2", "secret"},
}

// headerName is the canonical name of the header that carries the credential, if one does.
func (a Auth) headerName() string {
	switch a.Kind {
	case AuthHeader:
		return textproto.CanonicalMIMEHeaderKey(a.Name)
	case AuthBasic, AuthOAuth2:
		return "Authorization"
	}
	return ""
}

func (p *toolParser) auth(n *node, allowPrivate bool) Auth {
	a := Auth{Kind: p.authKind(n)}
	if a.Kind == AuthNone {
		return a
	}
	p.mapping(n, "auth of kind "+string(a.Kind), authKeys[a.Kind])
	switch v := n.get(string(a.Kind)); a.Kind {
	case AuthHeader:
		p.authHeader(&a, n, v)
	case AuthQuery:
		a.Name, _ = p.plain(v, "query", "name the parameter")
	case AuthBasic:
		if p.mapping(v, "basic", []string{"user"}) {
			a.User = p.need(v, "user", "basic")
		}
		if strings.Contains(a.User, ":") {
			p.add(v.get("user").at, "", "the user of basic authentication cannot contain `:`")
		}
	case AuthOAuth2:
		p.oauth2(&a, v, allowPrivate)
	}
	a.Secret = p.secret(n)
	return a
}

func (p *toolParser) authKind(n *node) AuthKind {
	kinds := []string{"header", "query", "basic", "oauth2"}
	found := AuthNone
	for _, f := range n.fields {
		if !slices.Contains(kinds, f.name) {
			continue
		}
		if found != AuthNone {
			p.add(f.at, "keep one of them", "auth cannot have both `%s` and `%s`", found, f.name)
			continue
		}
		found = AuthKind(f.name)
	}
	if found == AuthNone {
		p.add(n.at, "write {header: Authorization, value: \"Bearer ${secret}\", secret: \"env:NAME\"}; other kinds: query, basic, oauth2",
			"auth does not say how the credential travels")
	}
	return found
}

func (p *toolParser) authHeader(a *Auth, n, name *node) {
	a.Format = "${secret}"
	if s, ok := p.plain(name, "header", "name the header"); ok && p.headerName(s, name.at) {
		a.Name = s
	}
	v := n.get("value")
	if v == nil {
		return
	}
	s, ok := v.scalar.(string)
	switch {
	case !ok || !strings.Contains(s, "${secret}"):
		p.add(v.at, "write \"Bearer ${secret}\" and give the reference in `secret`", "the header's value must contain ${secret}: a secret never stands in the file")
	case strings.Contains(strings.ReplaceAll(s, "${secret}", ""), "${"):
		p.add(v.at, "", "the header's value can hold ${secret} and no other expression")
	case !validHeaderValue(s):
		p.add(v.at, "remove line breaks and control characters", "the header's value cannot be sent")
	default:
		a.Format = s
	}
}

func (p *toolParser) oauth2(a *Auth, n *node, allowPrivate bool) {
	if !p.mapping(n, "oauth2", []string{"tokenURL", "clientID", "scopes"}) {
		return
	}
	a.TokenURL = p.need(n, "tokenURL", "oauth2")
	a.ClientID = p.need(n, "clientID", "oauth2")
	if v := n.get("scopes"); v != nil {
		a.Scopes = p.texts(v, "scopes")
	}
	if a.TokenURL == "" {
		return
	}
	at := n.get("tokenURL").at
	if u := p.absoluteURL(a.TokenURL, at, "tokenURL"); u != nil && u.Scheme != "https" && !allowPrivate {
		p.add(at, "use https, or allowPrivate: true for a server of your own", "the client's secret would travel unencrypted over http")
	}
}

// need reads a required text.
func (p *toolParser) need(n *node, name, what string) string {
	v := n.get(name)
	if v == nil {
		p.add(n.at, "add `"+name+":`", "%s needs `%s`", what, name)
		return ""
	}
	s, _ := p.plain(v, name, "")
	return s
}

// secret reads the reference. What does not look like one may be the secret itself, so no message repeats it.
func (p *toolParser) secret(n *node) string {
	v := n.get("secret")
	if v == nil {
		p.add(n.at, secretRemedy, "auth needs `secret`, a reference to the credential")
		return ""
	}
	s, _ := v.scalar.(string)
	for _, form := range secretForms {
		if form.MatchString(s) {
			return s
		}
	}
	p.add(v.at, secretRemedy, "secret must be a reference, never the secret itself")
	return ""
}
