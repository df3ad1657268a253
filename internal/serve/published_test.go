package serve

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/client"
	"sluice/internal/start"
)

const publishing = "version: 1\ncolumns:\n  - {name: y, value: \"${row.x}\"}\nfinish:\n  - {publish: {name: note.html, public: false, content: \"<script>\"}}\n"

// What a run has published is saved as a file; a browser does not take it for a page of this server.
func TestPublishedIsSavedAndNotShown(t *testing.T) {
	w := serving(t, t.TempDir(), "")
	if _, err := w.client().Start(t.Context(), start.Request{Run: "r", Map: publishing, Rows: rowsOf("a")}); err != nil {
		t.Fatal(err)
	}
	v := w.until("r", "completed")
	if len(v.Finish) != 1 || v.Finish[0].Link == nil {
		t.Fatalf("%+v", v.Finish)
	}
	res, err := http.Get(w.url + "/" + v.Finish[0].Link.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	head := res.Header
	if err != nil || string(b) != "<script>" || head.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(head.Get("Content-Disposition"), "attachment") ||
		!strings.Contains(head.Get("Content-Security-Policy"), "sandbox") || head.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s %v %v", b, head, err)
	}
	w.wants(404, "NOT_FOUND", "GET", "/published/r/note.html", "")
	public := strings.Replace(publishing, "public: false", "public: true", 1)
	if _, err := w.client().Start(t.Context(), start.Request{Run: "p", Map: public, Rows: rowsOf("a")}); client.Code(err) != "BAD_REQUEST" ||
		!strings.Contains(err.Error(), "sluice serve --allow-public") {
		t.Errorf("%v", err)
	}
}
