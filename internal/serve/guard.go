package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"sluice/internal/answers"
	"sluice/internal/api"
)

// KeyHeader carries the key, as in the cloud.
const KeyHeader = "X-Api-Key"

// guard lets through who may ask. With a key: whoever has it. Without one: programs of this machine, and pages that this
// server has sent. Other pages that a browser of this machine shows may not: they come with a foreign Origin, or, where their
// name was made to lead here (DNS rebinding), with a foreign Host.
type guard struct {
	next  http.Handler
	key   string // empty: none is asked for
	cross *http.CrossOriginProtection
}

func newGuard(key string, next http.Handler) *guard {
	return &guard{next: next, key: key, cross: http.NewCrossOriginProtection()}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case g.key == "" && !loopbackName(r.Host):
		refuse(w, http.StatusForbidden, api.Forbidden, "this server is asked by a name that is not this machine's; without a key it answers to localhost alone")
	case g.cross.Check(r) != nil:
		refuse(w, http.StatusForbidden, api.Forbidden, "a page of another origin may not ask this server")
	case g.key != "" && !g.open(r) && !g.has(r):
		refuse(w, http.StatusUnauthorized, api.Unauthorized, "this server asks for a key, in the header "+strings.ToLower(KeyHeader))
	default:
		g.next.ServeHTTP(w, r)
	}
}

// open is what asks for no key: links, which carry their right in themselves, what is published for everybody, and the page,
// which is the same for everybody.
func (g *guard) open(r *http.Request) bool {
	p := r.URL.Path
	if link, ok := strings.CutPrefix(p, answers.Path); ok {
		return strings.Trim(link, "/") != "" // without a link it is a route of the API
	}
	return strings.HasPrefix(p, linkPath) || strings.HasPrefix(p, "/published/") || r.Method == http.MethodGet && (p == "/" || strings.HasPrefix(p, "/page/"))
}

func (g *guard) has(r *http.Request) bool {
	want, have := sha256.Sum256([]byte(g.key)), sha256.Sum256([]byte(r.Header.Get(KeyHeader)))
	return subtle.ConstantTimeCompare(want[:], have[:]) == 1
}

// loopbackName reports whether a Host is a name of this machine for itself, which no other site can have.
func loopbackName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// Loopback reports whether an address to listen at can be reached from this machine alone.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopbackName(host)
}
