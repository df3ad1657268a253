package mapspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resolvers are those that the tests know.
var resolvers = map[string][]string{"lead_score": {"acme.company"}, "broken": {"acme.compny"}, "plain": nil}

func TestMapWithAResolver(t *testing.T) {
	src := []byte("version: 1\ncolumns:\n  - {name: a, value: 1}\n  - {name: s, resolve: lead_score, with: {a: \"${cells.a}\"}, when: \"${row.x != null}\"}\n")
	m, err := ParseMap("m.yaml", src, catalogue(t), Resolvers(resolvers))
	if err != nil {
		t.Fatal(err)
	}
	col := m.Columns[1]
	if col.Resolve.Name != "lead_score" || len(col.Resolve.Tools) != 1 || col.Resolve.Tools[0].Name != "acme.company" {
		t.Errorf("%+v", col.Resolve)
	}
	if names, all := col.Cells(); all || !cmp.Equal(names, []string{"a"}) {
		t.Error(names, all)
	}
	with, err := col.Resolve.With.Eval(&Env{Cells: map[string]any{"a": int64(1)}})
	if diff := cmp.Diff(map[string]any{"a": int64(1)}, with); err != nil || diff != "" {
		t.Error(err, diff)
	}
	// Read again, perhaps by a program that does not have it, the map means the same.
	again, err := ParseMap("m.yaml", src, catalogue(t), AnyResolver())
	if err != nil || again.Digest != m.Digest || again.Columns[1].Resolve.Name != "lead_score" {
		t.Error(err)
	}
}

func TestResolverWithoutACatalogue(t *testing.T) {
	src := []byte("version: 1\ncolumns: [{name: a, resolve: lead_score}, {name: b, resolve: plain}]")
	_, err := ParseMap("m.yaml", src, nil, Resolvers(resolvers))
	want := Problems{{"m.yaml", 2, 30, "no tool catalogue given for the resolver `lead_score`, which calls `acme.company`", "pass --tools"}}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Error(diff)
	}
	_, err = ParseMap("m.yaml", src, nil)
	if got := problems(t, err); len(got) != 2 || got[0].Message != "there is no resolver `lead_score`" || got[0].Remedy != "there are no resolvers in this program" {
		t.Error(got)
	}
}
