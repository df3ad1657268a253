package mapspec

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestOfTheExample(t *testing.T) {
	cat := catalogue(t)
	req, err := cat.Tools["beta.phone"].Request(map[string]any{"domain": "ä b/c", "kind": "x y", "id": int64(7)})
	if err != nil {
		t.Fatal(err)
	}
	want := &Request{
		Method: "POST", URL: "http://127.0.0.1:8080/find/x%20y/x-7.json",
		Header: map[string][]string{"X-Trace": {"t 7"}, "Content-Type": {"application/json"}},
		Body:   []byte(`{"domain":"ä b/c","list":[1,7]}`),
	}
	if diff := cmp.Diff(want, req); diff != "" {
		t.Error(diff)
	}
}

func TestT7PathValuesStayInTheirSegment(t *testing.T) {
	tl := tool(t, "path: /a/{x}/b")
	for value, want := range map[string]string{
		"plain":         "/v1/a/plain/b",
		"a/b":           "/v1/a/a%2Fb/b",
		"x?y=1#z":       "/v1/a/x%3Fy=1%23z/b",
		"50%2f":         "/v1/a/50%252f/b",
		"\r\nHost: x":   "/v1/a/%0D%0AHost:%20x/b",
		"ä":             "/v1/a/%C3%A4/b",
		"a;b,c":         "/v1/a/a%3Bb%2Cc/b",
		"@evil.example": "/v1/a/@evil.example/b",
		"...":           "/v1/a/.../b",
		`\x`:            "/v1/a/%5Cx/b",
	} {
		req, err := tl.Request(map[string]any{"x": value})
		if err != nil || req.URL != "https://api.example:8443"+want {
			t.Errorf("%q: got %v, %v; want %s", value, req, err, want)
		}
	}
}

func TestT7PathValuesThatLeadElsewhereAreRefused(t *testing.T) {
	tl := tool(t, "path: /a/{x}/b")
	for _, value := range []any{"", ".", "..", "../x", `..\x`, "a/../b", "%2e%2e", "%2E.", nil, []any{}, map[string]any{}} {
		if req, err := tl.Request(map[string]any{"x": value}); err == nil {
			t.Errorf("%v: was sent to %s", value, req.URL)
		}
	}
	_, err := tl.Request(nil)
	wantError(t, err, "no such key: x")
	joined := tool(t, "path: /a/{x}{y}")
	_, err = joined.Request(map[string]any{"x": ".", "y": "z"})
	wantError(t, err, "leads elsewhere")
	dot := tool(t, `path: "/a/.{x}"`)
	_, err = dot.Request(map[string]any{"x": "."})
	wantError(t, err, "leads elsewhere")
}

func TestT7QueryAndHeaders(t *testing.T) {
	tl := tool(t, `
path: /s
query: {q: "${input.q}", list: "${input.list}", gone: "${input.nil}", fixed: 1, t: "a${input.nil}"}
headers: {X-A: "${input.h}", X-Gone: "${input.nil}", x-lower: true}`)
	req, err := tl.Request(map[string]any{"q": "a&b=c#d e", "list": []any{"x", nil, int64(2)}, "nil": nil, "h": " v "})
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://api.example:8443/v1/s?fixed=1&list=x&list=2&q=a%26b%3Dc%23d+e&t=a"; req.URL != want {
		t.Errorf("got  %s\nwant %s", req.URL, want)
	}
	if diff := cmp.Diff(map[string][]string{"X-A": {"v"}, "X-Lower": {"true"}}, map[string][]string(req.Header)); diff != "" {
		t.Error(diff)
	}
	for _, h := range []string{"a\r\nX-B: 1", "a\nb", "a\x00b", "a\x7f"} {
		_, err := tl.Request(map[string]any{"q": "", "list": nil, "nil": nil, "h": h})
		wantError(t, err, "cannot be sent in a header")
	}
	_, err = tl.Request(map[string]any{"q": map[string]any{}, "list": nil, "nil": nil, "h": ""})
	wantError(t, err, "`q`: a map cannot be sent here")
	_, err = tl.Request(map[string]any{"q": "", "list": []any{[]any{}}, "nil": nil, "h": ""})
	wantError(t, err, "`list`: a list cannot be sent here")
}

func TestBodyIsJSON(t *testing.T) {
	for src, want := range map[string]string{
		`{a: "${input.x}", b: [1, 2.5, null]}`: `{"a":"é\"","b":[1,2.5,null]}`,
		`"${input.x}"`:                         `"é\""`,
		`[]`:                                   `[]`,
		`"${input.none}"`:                      `null`,
	} {
		req, err := tool(t, "method: POST\nbody: "+src).Request(map[string]any{"x": `é"`, "none": nil})
		if err != nil || string(req.Body) != want {
			t.Errorf("%s: got %s, %v", src, req.Body, err)
		}
	}
	req, err := tool(t, "method: POST\nbody: null").Request(nil)
	if err != nil || req.Body != nil || len(req.Header) != 0 || req.URL != "https://api.example:8443/v1" {
		t.Errorf("got %+v, %v", req, err)
	}
}

func FuzzRequestEscape(f *testing.F) {
	for _, s := range []string{"a", "../..", "%2e%2e/", "?x#y", "\r\nHost: evil", "//evil.example/", "a\\..\\b", "", "\x00", "ä", "@", ";.."} {
		f.Add(s, s)
	}
	tl := tool(f, "path: /a/{x}/b-${input.y}.json\nquery: {q: \"${input.x}\"}\nheaders: {X-Y: \"${input.y}\"}")
	f.Fuzz(func(t *testing.T, x, y string) {
		req, err := tl.Request(map[string]any{"x": x, "y": y})
		if err != nil {
			return
		}
		u, err := url.Parse(req.URL)
		if err != nil {
			t.Fatal(err)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if u.Scheme != "https" || u.Host != "api.example:8443" || u.User != nil || u.Fragment != "" || len(segments) != 5 ||
			segments[1] != "v1" || segments[2] != "a" || len(u.Query()) != 1 || len(u.Query()["q"]) != 1 {
			t.Errorf("%q %q: %s", x, y, req.URL)
		}
		if got, err := url.PathUnescape(segments[3]); err != nil || got != x {
			t.Errorf("%q arrives as %q, %v", x, got, err)
		}
		if clean := u.JoinPath(); clean.EscapedPath() != u.EscapedPath() {
			t.Errorf("%q %q: %s cleans to %s", x, y, u.EscapedPath(), clean.EscapedPath())
		}
		if strings.ContainsAny(req.Header.Get("X-Y"), "\r\n\x00") {
			t.Errorf("header %q", req.Header.Get("X-Y"))
		}
	})
}
