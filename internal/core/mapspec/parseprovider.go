package mapspec

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Defaults and bounds of providers (H14, H17, R5).
const (
	DefaultRate        = 5                // dispatches per DefaultPer of a provider that declares no limits
	DefaultPer         = time.Second      //
	DefaultConcurrency = 4                // calls in flight, to begin with, of a provider that declares neither limits nor concurrency
	DefaultNoProgress  = 30 * time.Minute // without a success before waiting calls end
	DefaultCooldown    = 10 * time.Second // base for a 429 without a deadline
	MaxRate            = 1_000_000
	MaxPer             = 31 * day
	MaxWait            = 31 * day // noProgress and cooldown
	maxLimits          = 8
)

var (
	providerKeys = []string{"url", "auth", "limits", "concurrency", "noProgress", "cooldown", "resetHeaders", "allowPrivate"}
	limitKeys    = []string{"rate", "per", "burst"}
)

func (p *toolParser) provider(f field) *Provider {
	out := &Provider{Name: f.name, URL: &url.URL{}, NoProgress: DefaultNoProgress, Cooldown: DefaultCooldown}
	if !isName(f.name) {
		p.add(f.at, "use letters, digits, - and _", "`%s` is not a provider's name", f.name)
	}
	n := f.value
	if !p.mapping(n, "a provider", providerKeys) {
		return out
	}
	if v := n.get("allowPrivate"); v != nil {
		out.AllowPrivate = p.boolean(v, "allowPrivate")
	}
	if v := n.get("auth"); v != nil && v.kind != kindNull {
		out.Auth = p.auth(v, out.AllowPrivate)
	}
	if v := n.get("url"); v == nil {
		p.add(f.at, "add `url: https://...`", "the provider `%s` needs a url", f.name)
	} else {
		out.URL = p.providerURL(v, out)
	}
	p.pace(out, n)
	if v := n.get("noProgress"); v != nil {
		out.NoProgress = p.duration(v, "noProgress", MaxWait)
	}
	if v := n.get("cooldown"); v != nil {
		out.Cooldown = p.duration(v, "cooldown", MaxWait)
	}
	if v := n.get("resetHeaders"); v != nil {
		for _, name := range p.texts(v, "resetHeaders") {
			if !isToken(name) {
				p.add(v.at, "use letters, digits and -", "`%s` is not a header's name", name)
			}
			out.ResetHeaders = append(out.ResetHeaders, http.CanonicalHeaderKey(name))
		}
	}
	return out
}

// providerURL reads the base of all requests: their host can never be another one.
func (p *toolParser) providerURL(n *node, provider *Provider) *url.URL {
	s, ok := p.plain(n, "url", "write https://host/path")
	if !ok {
		return &url.URL{}
	}
	u := p.absoluteURL(s, n.at, "url")
	switch {
	case u == nil:
		return &url.URL{}
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#"):
		p.add(n.at, "put parameters into the tools' `query`", "url cannot have a query or a fragment")
	case hasDotSegment(u.EscapedPath()):
		p.add(n.at, "write the path out", "url cannot have `.` or `..` in its path")
	case u.Scheme == "http" && provider.Auth.Kind != AuthNone && !provider.AllowPrivate:
		p.add(n.at, "use https, or allowPrivate: true for a server of your own", "the credential would travel unencrypted over http")
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	return u
}

func (p *compiler) absoluteURL(s string, at pos, what string) *url.URL {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.ContainsAny(s, "\\ "):
		p.add(at, "write https://host/path", "%s is not an absolute http(s) URL", what)
	case strings.IndexFunc(u.Host, func(c rune) bool { return c > 127 || c == '%' }) >= 0:
		p.add(at, "write an international name in its xn-- form", "the host of %s has characters that cannot be sent", what)
	case !validPort(u.Port()):
		p.add(at, "", "the port of %s must be from 1 to 65535", what)
	case u.User != nil:
		p.add(at, "use auth: {basic: {user: ...}, secret: ...}", "%s holds a user name or a password", what)
	default:
		u.Host = strings.ToLower(u.Host)
		return u
	}
	return nil
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

func hasDotSegment(escapedPath string) bool {
	for segment := range strings.SplitSeq(escapedPath, "/") {
		if isDots(segment) {
			return true
		}
	}
	return false
}

// isDots reports whether a segment is "." or "..", also when written with %2e.
func isDots(segment string) bool {
	plain := strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
	return plain == "." || plain == ".."
}

// pace reads the limits. A provider that declares none gets the default, not "unlimited" (H17).
func (p *toolParser) pace(out *Provider, n *node) {
	limits := n.get("limits")
	if v := n.get("concurrency"); v != nil {
		out.Concurrency = int(p.whole(v, "concurrency", 1, MaxConcurrency))
	}
	if limits != nil && limits.kind != kindList && limits.kind != kindNull {
		p.add(limits.at, "write `- {rate: 20, per: 1s}` for each", "limits must be a list, not %s", describe(limits))
		return
	}
	if limits == nil || len(limits.items) == 0 {
		out.Limits = []Limit{{Rate: DefaultRate, Per: DefaultPer}}
		if out.Concurrency == 0 {
			out.Concurrency, out.Adaptive = DefaultConcurrency, true
		}
		return
	}
	if len(limits.items) > maxLimits {
		p.add(limits.at, "", "at most %d limits are possible", maxLimits)
	}
	for _, item := range limits.items {
		if p.mapping(item, "a limit", limitKeys) {
			out.Limits = append(out.Limits, p.limit(item))
		}
	}
}

func (p *toolParser) limit(n *node) Limit {
	l := Limit{Rate: 1, Per: time.Second}
	rate, per := n.get("rate"), n.get("per")
	if rate == nil || per == nil {
		p.add(n.at, "write {rate: 20, per: 1s}", "a limit needs both `rate` and `per`")
		return l
	}
	l.Rate = int(p.whole(rate, "rate", 1, MaxRate))
	l.Per = p.duration(per, "per", MaxPer)
	if v := n.get("burst"); v != nil {
		l.Burst = int(p.whole(v, "burst", 1, int64(l.Rate)))
	}
	return l
}
