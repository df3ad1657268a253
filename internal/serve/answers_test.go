package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"sluice/internal/start"
)

// A map sends a link; a person answers by it, without a key; the run goes on.
func TestAPersonAnswersByALink(t *testing.T) {
	var mu sync.Mutex
	var sent string
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		sent = body.Text
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(chat.Close)
	const key = "0123456789abcdef"
	w := serving(t, t.TempDir(), key)
	c := w.keyed(key)
	_, err := c.Start(t.Context(), start.Request{Run: "r", Rows: rowsOf("ada"),
		Map: "version: 1\nkey: x\ncolumns:\n  - {name: ok, event: {key: \"ok-${row.x}\", expires: 1h, notify: {call: chat.post, with: {text: \"${answer.url}\"}}}}\n",
		Tools: "version: 1\nproviders: {chat: {url: \"" + chat.URL + "\", allowPrivate: true}}\n" +
			"tools: {chat.post: {method: POST, path: /, body: {text: \"${input.text}\"}, input: {text: string}}}\n"})
	if err != nil {
		t.Fatal(err)
	}
	var link string
	eventually(t, "the link is sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		link = sent
		return link != ""
	})
	if !strings.HasPrefix(link, w.url+"/answers/") {
		t.Fatalf("it leads to %s", link)
	}
	w.wants(200, "", "GET", strings.TrimPrefix(link, w.url), "")
	w.wants(401, "UNAUTHORIZED", "POST", "/answers", `{"key":"ok-ada","value":1}`)
	w.wants(401, "UNAUTHORIZED", "POST", "/answers/", `{"key":"ok-ada","value":1}`, "Content-Type", "application/json")
	w.wants(401, "UNAUTHORIZED", "POST", "/answers//", `{"key":"ok-ada","value":1}`, "Content-Type", "application/json")
	res, err := http.PostForm(link, url.Values{"value": {"yes"}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	eventually(t, "the run is completed", func() bool {
		v, err := c.Run(t.Context(), "r")
		return err == nil && v.Status == "completed"
	})
	for row, err := range c.Rows(t.Context(), "r", "") {
		if err != nil || string(row.Cells["ok"]) != `"yes"` {
			t.Errorf("%+v %v", row, err)
		}
	}
}
