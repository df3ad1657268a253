package cloud

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A large input is worked by several shards side by side, and joined in the order of the input.
func TestShardsAreJoinedInInputOrder(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	const rows, shards = 250_000, 3 // a shard has at most 100,000 rows
	run := named("shards")
	var in, want strings.Builder
	in.WriteString("n\n")
	want.WriteString("n,twice\n")
	for i := range rows {
		n := (i * 7919) % rows // not in the order of anything
		fmt.Fprintf(&in, "%d\n", n)
		fmt.Fprintf(&want, "%d,%d\n", n, 2*n)
	}
	s.start(t, order{Run: run, Upload: s.upload(t, "numbers.csv", []byte(in.String())), Map: `version: 1
name: twice
columns:
  - {name: twice, value: "${int(row.n) * 2}"}
`})
	v := s.ended(t, run, "completed", 3*time.Minute)
	if v.Shards != shards || v.Completed != rows || v.Failed != 0 {
		t.Errorf("%d shards, %d rows completed, %d failed; want %d, %d, 0", v.Shards, v.Completed, v.Failed, shards, rows)
	}
	if n := len(s.shardExecutions(t, run)); n != shards {
		t.Errorf("%d executions worked on the shards, want %d", n, shards)
	}
	if got := s.export(t, run); got != want.String() {
		t.Errorf("the table differs from the expected one, first at %s", difference(got, want.String()))
	}
	t.Logf("%d rows in %v", rows, v.FinishedAt.Sub(v.CreatedAt).Round(time.Millisecond))
}

func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: %q, want %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("the end: %d lines, want %d", len(g), len(w))
}
