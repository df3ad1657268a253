package run_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/memory"
)

// An input that was replaced between the start and the plan is refused, in every format and however little of it is read, and
// nothing of it is sealed: with the file that was announced the same run is planned.
func TestH7AnInputThatWasReplacedIsRefused(t *testing.T) {
	for format, texts := range map[string][2]string{
		"csv":   {"x\na\nb\n", "x\na\nB\n"},
		"jsonl": {`{"x":"a"}` + "\n" + `{"x":"b"}` + "\n", `{"x":"a"}` + "\n" + `{"x":"B"}` + "\n"},
		"json":  {`[{"x":"a"},{"x":"b"}]`, `[{"x":"a"},{"x":"B"}]`},
	} {
		for _, limit := range []int64{0, 1} {
			st := &store.Store{Table: memory.New(), Blobs: memory.NewBlobs()}
			put := func(text string) {
				if err := st.Blobs.Put(t.Context(), "uploads/in", strings.NewReader(text)); err != nil {
					t.Fatal(err)
				}
			}
			sum := sha256.Sum256([]byte(texts[0]))
			req := registered("r", "uploads/in")
			req.Source = &sheet.Source{Object: "uploads/in", Format: format, SHA256: hex.EncodeToString(sum[:])}
			req.Format.Limit = limit
			if _, err := register(t, st, req); err != nil {
				t.Fatal(err)
			}
			put(texts[1])
			for range 2 {
				_, err := run.Plan(t.Context(), st, "r")
				var refused *run.RefusedError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), "its SHA-256 is ") || !strings.Contains(err.Error(), req.Source.SHA256) {
					t.Fatalf("%s, limit %d: %v", format, limit, err)
				}
			}
			put(texts[0])
			job, err := run.Plan(t.Context(), st, "r")
			if want := 2 - limit; err != nil || job.Run.Sealed.Rows != want {
				t.Errorf("%s, limit %d: %v, want %d rows", format, limit, err, want)
			}
		}
	}
}
