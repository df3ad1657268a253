package provider

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"sluice/internal/core/gateway"
)

// controlFunc is net.Dialer's hook: it sees the very address that is about to be connected to, after name
// resolution. A check there cannot be deceived by a name that resolves differently the second time.
type controlFunc = func(network, address string, _ syscall.RawConn) error

// errAddress marks an address that must not be connected to.
var errAddress = errors.New("address refused")

func refusePrivate(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an IP address", errAddress)
	}
	if why := special(ap.Addr()); why != "" {
		return fmt.Errorf("%w: %s is %s", errAddress, ap.Addr().WithZone("").Unmap(), why)
	}
	return nil
}

// ranges are the addresses that no public provider can have: the IANA special-purpose registries (RFC 6890 and its
// updates), the multicast ranges, and the one cloud metadata address that lies outside of these.
var ranges = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fec0::/10"), "a private address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"}, // also the metadata service of most clouds
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-grade NAT address"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata address"}, // Azure's "wire server"
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("::/96"), "an unspecified address"}, // also the deprecated IPv4-compatible form
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"}, // IETF assignments; Oracle's metadata service
	{netip.MustParsePrefix("192.0.2.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a reserved address"}, // relays of 6to4
	{netip.MustParsePrefix("198.18.0.0/15"), "a reserved address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a reserved address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a reserved address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"}, // also 255.255.255.255
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a reserved address"},
	{netip.MustParsePrefix("100::/32"), "a reserved address"},
	{netip.MustParsePrefix("2001::/23"), "a reserved address"}, // Teredo, ORCHID
	{netip.MustParsePrefix("2001:db8::/32"), "a reserved address"},
	{netip.MustParsePrefix("3fff::/20"), "a reserved address"},
	{netip.MustParsePrefix("2002::/16"), "a reserved address"}, // 6to4 carries an IPv4 address of anyone's choice
}

// global is what of IPv6 is given out to the public internet at all (RFC 4291, section 2.4).
var global = netip.MustParsePrefix("2000::/3")

// nat64 is how IPv6-only networks reach IPv4 addresses (RFC 6052): what counts is the address inside.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// special says what a is when it is not an address of the public internet, and "" when it is.
func special(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, r := range ranges {
		if r.prefix.Contains(a) {
			return r.why
		}
	}
	if a.Is6() && !global.Contains(a) {
		return "a reserved address"
	}
	return ""
}

// checkRequest refuses what must not be sent at all, before any connection is made.
func checkRequest(req *gateway.Request) (*url.URL, *gateway.SendError) {
	u, err := url.Parse(req.URL)
	if err != nil || u.Host == "" || u.Opaque != "" {
		// The parser's message would quote the URL, and with it the query.
		return nil, malformed("the tool's address is not a URL")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	// Plain http is a provider's own choice: its URL is written by the user, and in-house providers often have no TLS.
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, denied(fmt.Sprintf("%s is neither http nor https", origin(u)))
	}
	if !sameHost(u, req.Egress.Host) {
		return nil, denied(fmt.Sprintf("the request goes to %s, but its provider declares %q", origin(u), req.Egress.Host))
	}
	u.Fragment, u.RawFragment, u.User = "", "", nil
	if req.Method != "" && !token(req.Method) {
		return nil, malformed("the tool's method is not a word")
	}
	if name, ok := badHeader(req.Header); ok {
		return nil, malformed(fmt.Sprintf("the header %q has a name or a value with characters that HTTP does not allow, "+
			"such as a line break", name))
	}
	return u, nil
}

func sameHost(u *url.URL, declared string) bool {
	withPort := func(host string) string {
		host = strings.ToLower(host)
		port := ":80"
		if u.Scheme == "https" {
			port = ":443"
		}
		if i := strings.LastIndexByte(host, ':'); i < 0 || strings.HasSuffix(host, "]") {
			return host + port
		}
		return host
	}
	return declared != "" && withPort(u.Host) == withPort(declared)
}

func badHeader(h http.Header) (string, bool) {
	for name, values := range h {
		if !token(name) {
			return name, true
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return name, true
			}
		}
	}
	return "", false
}

// token reports whether s is a token of RFC 9110, section 5.6.2.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
