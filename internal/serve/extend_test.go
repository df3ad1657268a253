package serve

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice/internal/active"
	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
	"sluice/internal/start"
)

// keyedRun starts a run of inputs whose key is x.
func (w *server) keyedRun(id, tools string, inputs ...string) {
	w.t.Helper()
	text := strings.Replace(strings.ReplaceAll(mapText, "acme", providerOf(tools)), "columns:", "key: x\ncolumns:", 1)
	if _, err := w.client().Start(w.t.Context(), start.Request{Run: id, Map: text, Tools: tools, Rows: rowsOf(inputs...)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *server) extend(id, key string, rows ...json.RawMessage) {
	w.t.Helper()
	if _, err := w.client().Extend(w.t.Context(), id, key, start.Extension{Rows: rows}); err != nil {
		w.t.Fatal(err)
	}
}

// extended waits until the run has come to a status, with what it is extended by.
func (w *server) extended(id, status string) api.View {
	w.t.Helper()
	var v api.View
	eventually(w.t, "run "+id+" is extended and "+status, func() bool {
		v = w.view(id)
		return v.Asked == "" && string(v.Status) == status && v.Extension != nil
	})
	return v
}

// A run that has completed, one that is paused and one that was cancelled go on with new rows; what they have is not asked for
// again, and asking again under the same key adds nothing.
func TestX4RunsAreExtended(t *testing.T) {
	p := newProvider(t)
	w := serving(t, t.TempDir(), "")
	w.keyedRun("completed", p.tools(), "ada", "bad")
	w.until("completed", "completed")
	for range 2 {
		w.extend("completed", "k", rowsOf("ada", "eve")...)
	}
	if v := w.extended("completed", "completed"); v.Extension.Rows != 1 || v.Extension.Duplicates != 1 || v.Rows != 3 || v.Completed != 2 || v.Failed != 1 {
		t.Errorf("%+v, %+v", v, v.Extension)
	}
	w.extend("completed", "k", rowsOf("ada", "eve")...)
	for id, stop := range map[string]func() (api.Standing, error){
		"paused":    func() (api.Standing, error) { return w.client().Pause(t.Context(), "paused", "lunch") },
		"cancelled": func() (api.Standing, error) { return w.client().Cancel(t.Context(), "cancelled") },
	} {
		w.keyedRun(id, p.toolsOf(id), "hold")
		w.until(id, "parked")
		if _, err := stop(); err != nil {
			t.Fatal(err)
		}
		w.until(id, id)
		w.extend(id, "k", rowsOf("hold")...)
		if v := w.extended(id, id); v.Extension.Duplicates != 1 || v.Extension.Rows != 0 {
			t.Errorf("nothing new: %+v", v.Extension)
		}
		w.extend(id, "l", json.RawMessage(`{"x":null}`))
		eventually(t, "it is refused", func() bool { return w.extended(id, id).Extension.Error != "" })
		w.extend(id, "m", rowsOf("new"+id)...)
		if v := w.extended(id, "parked"); v.Rows != 2 || len(v.Holds) != 1 { // its provider's hold is not over
			t.Errorf("%+v", v)
		}
		_, err := w.client().Extend(t.Context(), id, "n", start.Extension{Rows: rowsOf("late")})
		if client.Code(err) != "AT_WORK" {
			t.Errorf("%v", err)
		}
	}
	for x, want := range map[string]int{"ada": 1, "bad": 1, "eve": 1, "hold": 2} { // by two providers
		if n := p.calls(x); n != want {
			t.Errorf("%s was asked for %d times", x, n)
		}
	}
}

// The server dies when an extension is noted, and nothing of it is done: who comes back finds it, though the run has ended.
func TestX4AnExtensionOutlivesTheServer(t *testing.T) {
	p, dir := newProvider(t), t.TempDir()
	w := serving(t, dir, "")
	w.keyedRun("r", p.tools(), "ada")
	w.until("r", "completed")
	w.park()
	st, err := local.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Store.Blobs.Put(t.Context(), "runs/r/more.jsonl", strings.NewReader(`{"x":"eve"}`)); err != nil {
		t.Fatal(err)
	}
	if err := active.Add(t.Context(), st.Store.Table, "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := run.AskExtend(t.Context(), st.Store, "r", "k", sheet.More{Input: "rows", Source: sheet.Source{Object: "runs/r/more.jsonl"}}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	w = serving(t, dir, "")
	if v := w.extended("r", "completed"); v.Completed != 2 || p.calls("ada") != 1 || p.calls("eve") != 1 {
		t.Errorf("%+v, %d and %d calls", v, p.calls("ada"), p.calls("eve"))
	}
	eventually(t, "it is off the list", func() bool {
		for range active.All(t.Context(), w.state.Store.Table) {
			return false
		}
		return true
	})
}
