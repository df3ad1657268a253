package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/client"
)

// asked makes a request with headers, and returns the status, and the code of an error.
func (w *server) asked(method, target, body string, headers ...string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+target, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var told struct{ Error struct{ Code string } }
	_ = json.Unmarshal(b, &told)
	return res.StatusCode, told.Error.Code
}

func (w *server) wants(status int, code, method, target, body string, headers ...string) {
	w.t.Helper()
	if got, told := w.asked(method, target, body, headers...); got != status || told != code {
		w.t.Errorf("%s %s with %v: %d %s, want %d %s", method, target, headers, got, told, status, code)
	}
}

// Without a key, only this machine's own programs and the server's own page may ask.
func TestForeignPagesMayNotAsk(t *testing.T) {
	w := serving(t, t.TempDir(), "")
	_, port, _ := strings.Cut(strings.TrimPrefix(w.url, "http://"), ":")
	w.wants(200, "", "GET", "/runs", "")
	for _, host := range []string{"localhost:" + port, "LOCALHOST", "127.0.0.1", "[::1]:" + port, "127.8.9.1:1"} {
		w.wants(200, "", "GET", "/runs", "", "Host", host)
	}
	for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]"} {
		w.wants(403, "FORBIDDEN", "GET", "/runs", "", "Host", host) // DNS rebinding
		w.wants(403, "FORBIDDEN", "GET", "/", "", "Host", host)
	}
	// Cross-site requests, as browsers send them.
	const run = "/runs/r/cancel"
	w.wants(403, "FORBIDDEN", "POST", run, "", "Origin", "https://evil.example")
	w.wants(403, "FORBIDDEN", "POST", run, "", "Origin", "null")
	w.wants(403, "FORBIDDEN", "POST", run, "", "Sec-Fetch-Site", "cross-site")
	w.wants(403, "FORBIDDEN", "POST", run, "", "Sec-Fetch-Site", "same-site")
	w.wants(415, "UNSUPPORTED_MEDIA_TYPE", "POST", "/runs", `{}`, "Content-Type", "text/plain")
	// The page's own, and programs'.
	w.wants(404, "NOT_FOUND", "POST", run, "", "Origin", w.url, "Sec-Fetch-Site", "same-origin")
	w.wants(404, "NOT_FOUND", "POST", run, "")
}

func TestWithAKeyWhoeverHasItMayAsk(t *testing.T) {
	const key = "0123456789abcdef"
	w := serving(t, t.TempDir(), key)
	w.wants(401, "UNAUTHORIZED", "GET", "/runs", "")
	w.wants(401, "UNAUTHORIZED", "GET", "/runs", "", "x-api-key", "0123456789abcdeF")
	w.wants(401, "UNAUTHORIZED", "POST", "/", "")
	w.wants(401, "UNAUTHORIZED", "GET", "/page", "")
	w.wants(200, "", "GET", "/runs", "", "x-api-key", key)
	w.wants(200, "", "GET", "/runs", "", "x-api-key", key, "Host", "sluice.internal:8080") // behind a proxy
	w.wants(200, "", "GET", "/", "")
	w.wants(200, "", "GET", "/page/a.js", "")
	w.wants(403, "FORBIDDEN", "GET", "/links/tables/r.csv", "") // asks for a signature instead
	w.wants(403, "FORBIDDEN", "POST", "/runs/r/cancel", "", "x-api-key", key, "Origin", "https://evil.example")
	c, err := client.New(w.url, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), "r"); err == nil || !strings.Contains(err.Error(), "asks for a key; set SLUICE_API_KEY") {
		t.Errorf("%v", err)
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:8080": true, "localhost:0": true, "[::1]:1": true, ":8080": false, "0.0.0.0:8080": false,
		"[::]:8080": false, "192.168.1.2:80": false, "example.com:80": false, "127.0.0.1": false} {
		if got := Loopback(addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
