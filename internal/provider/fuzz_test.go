package provider

import (
	"strings"
	"testing"

	"sluice/internal/core/gateway"
)

// Whatever the address looks like: what passes goes to the declared host, and what does not pass is refused without
// its query being shown.
func FuzzT7CheckRequest(f *testing.F) {
	for _, seed := range []string{
		"https://api.example/v1", "HTTPS://API.example:443/", "https://api.example@evil.example/", "//api.example", "ftp://api.example",
		"https://api.example:443@evil.example", "https://api.example\\@evil.example", "https://[::1]:443/", "mailto:a@api.example", "", "https:api.example",
		"https://api.example%2eevil.example/", "https://api.example:99999/", "https://u:p@api.example/a#b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if strings.Contains(raw, "s3cret") {
			t.Skip()
		}
		u, fault := checkRequest(&gateway.Request{URL: raw + "?key=s3cret", Egress: gateway.Egress{Host: "api.example:443"}})
		if fault != nil {
			if fault.Sent || strings.Contains(fault.Message, "s3cret") {
				t.Fatalf("%q: %+v", raw, fault)
			}
			return
		}
		if port := u.Port(); !strings.EqualFold(u.Hostname(), "api.example") || port != "443" && (port != "" || u.Scheme != "https") || u.User != nil {
			t.Fatalf("%q passes and goes to %s", raw, u)
		}
	})
}
