package provider

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sluice/internal/core/gateway"
)

func TestT7EgressRefusesOtherHosts(t *testing.T) {
	calls := 0
	base := server(t, func(http.ResponseWriter, *http.Request) { calls++ })
	tests := map[string]func(*gateway.Request){
		"host with a user in front": func(r *gateway.Request) {
			r.URL = strings.Replace(r.URL, "//", "//api.example@", 1)
			r.Egress.Host = "api.example"
		},
		"host not declared":         func(r *gateway.Request) { r.Egress.Host = "" },
		"another host":              func(r *gateway.Request) { r.Egress.Host = "api.example" },
		"another port":              func(r *gateway.Request) { r.Egress.Host = "127.0.0.1:1" },
		"another scheme":            func(r *gateway.Request) { r.URL = strings.Replace(r.URL, "http:", "ftp:", 1) },
		"loopback":                  func(r *gateway.Request) { r.Egress.AllowPrivate = false },
		"a name that is loopback":   func(r *gateway.Request) { useHost(r, "localhost"); r.Egress.AllowPrivate = false },
		"loopback mapped into IPv6": func(r *gateway.Request) { useHost(r, "[::ffff:127.0.0.1]"); r.Egress.AllowPrivate = false },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			req := request(base)
			change(req)
			_, err := client(t, Options{}).Send(t.Context(), req)
			wantError(t, err, "EGRESS_DENIED", false)
		})
	}
	if calls != 0 {
		t.Errorf("the server was reached %d times", calls)
	}
}

func useHost(r *gateway.Request, host string) {
	u, _ := url.Parse(r.URL)
	u.Host = host + ":" + u.Port()
	r.URL, r.Egress.Host = u.String(), u.Host
}

// A connection that was opened for a provider that may be private is not lent to one that may not.
func TestT7PoolsAreSeparate(t *testing.T) {
	calls := 0
	base := server(t, func(http.ResponseWriter, *http.Request) { calls++ })
	c := client(t, Options{})
	if _, err := c.Send(t.Context(), request(base)); err != nil {
		t.Fatal(err)
	}
	req := request(base)
	req.Egress.AllowPrivate = false
	_, err := c.Send(t.Context(), req)
	wantError(t, err, "EGRESS_DENIED", false)
	if calls != 1 {
		t.Errorf("the server was reached %d times, want once", calls)
	}
}

func TestSpecialAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"8.8.8.8:443": "", "172.15.0.1:80": "", "172.32.0.1:80": "", "100.63.0.1:80": "", "100.128.0.1:80": "",
		"[2606:4700::1111]:443": "", "[64:ff9b::808:808]:443": "",
		"127.8.9.1:80": "loopback", "[::1]:80": "loopback", "[::ffff:127.0.0.1]:80": "loopback",
		"10.1.2.3:80": "private", "172.16.0.1:80": "private", "172.31.255.255:80": "private", "192.168.1.1:80": "private",
		"[fd00:ec2::254]:80": "private", "[::ffff:10.0.0.1]:80": "private", "[64:ff9b::a00:1]:80": "private",
		"169.254.169.254:80": "link-local", "[fe80::1%eth0]:80": "link-local", "[::ffff:169.254.169.254]:80": "link-local",
		"100.100.100.200:80": "NAT", "168.63.129.16:80": "metadata", "192.0.0.192:80": "reserved",
		"0.0.0.0:80": "unspecified", "[::]:80": "unspecified", "[::127.0.0.1]:80": "unspecified",
		"224.0.0.1:80": "multicast", "[ff02::1]:80": "multicast", "255.255.255.255:80": "reserved",
		"[2002:7f00:1::]:80": "reserved", "[2001:0:7f00:1::]:80": "reserved", "[4000::1]:80": "reserved", "[3fff::1]:80": "reserved", "192.88.99.1:80": "reserved", "not an address": "not an IP address",
	} {
		err := refusePrivate("tcp", addr, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	for name, change := range map[string]func(*gateway.Request){
		"line break in a header": func(r *gateway.Request) { r.Header = http.Header{"X-Name": {"a\r\nX-Evil: 1"}} },
		"header name":            func(r *gateway.Request) { r.Header = http.Header{"X Name": {"a"}} },
		"method":                 func(r *gateway.Request) { r.Method = "GET /" },
		"url":                    func(r *gateway.Request) { r.URL = "http://%zz/?api_key=s3cret" },
	} {
		t.Run(name, func(t *testing.T) {
			req := request("http://127.0.0.1:1")
			change(req)
			_, err := client(t, Options{}).Send(t.Context(), req)
			wantError(t, err, "BAD_REQUEST", false)
		})
	}
}

// Where others write the tool files, what may be reached inside is not theirs to decide.
func TestT7DeploymentOverrulesAllowPrivate(t *testing.T) {
	base := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	_, err := client(t, Options{OnlyPublic: true}).Send(t.Context(), request(base)) // which allows private addresses
	wantError(t, err, "EGRESS_DENIED", false)
}
