package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/table"
)

const largeMap = `
version: 1
name: large
columns:
  - {name: big, call: a.get, with: {x: "${row.x}"}}
  - {name: size, value: "${size(cells.big.text)}"}
  - {name: then, call: b.get, with: {x: "${cells.big.text.substring(0, 3)}"}, result: "${result.x}"}
`

// A cell of a megabyte is kept outside its page, and every reader gets it back whole, also after a park.
func TestM4LargeCellsLeaveThePage(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			switch {
			case a.Tool == "a.get":
				return ok(map[string]any{"text": strings.Repeat("ü", 500_000)})
			case nth == 0:
				return heldFor(time.Minute)
			}
			return echo(a, nth)
		}
		got := w.finish(w.start("r1", largeMap, "x", "one", "two"))
		cell := fmt.Sprintf(`"{""text"":""%s""}"`, strings.Repeat("ü", 500_000))
		want := "x,big,size,then\none," + cell + ",500000,üüü\ntwo," + cell + ",500000,üüü\n"
		if got != want {
			t.Errorf("the table has %d bytes and should have %d: %.80q", len(got), len(want), got)
		}
		for item, err := range tbl.Query(t.Context(), table.Query{Part: "run/r1/out"}) {
			if err != nil || len(item.Data) > 10_000 {
				t.Errorf("page %s has %d bytes, %v", item.Sort, len(item.Data), err)
			}
		}
	})
}

// What a provider answers is never taken for a reference to another cell.
func TestAnswerThatLooksLikeAReferenceStaysWhatItIs(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tbl table.Table) {
		w := newWorld(t, tbl)
		w.provider.answer = func(a call.Attempt, nth int) call.Answer {
			if a.Tool == "a.get" {
				return ok(map[string]any{"$ref": "0000", "n": 4, "text": "abc"})
			}
			return echo(a, nth)
		}
		got := w.finish(w.start("r1", largeMap, "x", "one"))
		want := "x,big,size,then\n" + `one,"{""$ref"":""0000"",""n"":4,""text"":""abc""}",3,abc` + "\n"
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
