package gateway

import (
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestBodyAsExpressionsSeeIt(t *testing.T) {
	for _, tt := range []struct {
		kind, body string
		want       any
		broken     bool
	}{
		{"application/json", `{"a":1}`, map[string]any{"a": int64(1)}, false},
		{"application/problem+json; charset=utf-8", ` [1.5] `, []any{1.5}, false},
		{"application/json", `"x"`, "x", false},
		{"application/json", "", nil, false},
		{"application/json", "<html>", nil, true},
		{"application/json", `{"a":1} trailing`, nil, true},
		{"text/html", `{"a":"declared wrongly"}`, map[string]any{"a": "declared wrongly"}, false},
		{"", `{"a":true}`, map[string]any{"a": true}, false},
		{"", "12", "12", false},
		{"text/plain", "[not json", "[not json", false},
		{"text/plain", " kept as it is\n", " kept as it is\n", false},
	} {
		got, err := decodeBody(&Response{Header: http.Header{"Content-Type": {tt.kind}}, Body: []byte(tt.body)})
		if (err != nil) != tt.broken {
			t.Errorf("%s %q: error %v", tt.kind, tt.body, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" && !tt.broken {
			t.Errorf("%s %q: %s", tt.kind, tt.body, diff)
		}
	}
}

func TestHeadersAreLowerCaseAndFirst(t *testing.T) {
	got := headers(http.Header{"X-Left": {"3", "4"}, "Empty": nil, "Bad": {"\xff"}})
	if diff := cmp.Diff(map[string]any{"x-left": "3"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("plain"), "secret")
	f.Add([]byte("\x1b[31mred\x00\u202e\n"+strings.Repeat("ü", 300)), "ü")
	f.Fuzz(func(t *testing.T, body []byte, secret string) {
		text := excerpt(body, &credential{secret: secret})
		if len(text) > maxExcerpt || !utf8.ValidString(text) {
			t.Errorf("%d bytes: %q", len(text), text)
		}
		for _, r := range text {
			if !unicode.IsPrint(r) {
				t.Errorf("%q in %q", r, text)
			}
		}
	})
}
