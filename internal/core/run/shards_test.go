package run

import (
	"testing"

	"sluice/internal/core/mapspec"
)

func TestShardsFollowSizeAndLimits(t *testing.T) {
	tools, err := mapspec.ParseTools("t.yaml", []byte(`
version: 1
providers:
  slow: {url: "https://a.example", limits: [{rate: 600, per: 1m}]}
  fast: {url: "https://b.example", limits: [{rate: 1000, per: 1s}]}
tools:
  slow.get: {method: GET, path: "/{x}"}
  fast.get: {method: GET, path: "/{x}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, columns string
		rows          int64
		pages, want   int
	}{
		{"no calls, by size", `{name: v, value: "${index}"}`, 1_000_000, 1000, 10},
		{"small", `{name: v, value: "${index}"}`, 600, 1, 1},
		{"never more than pages", `{name: v, value: "${index}"}`, 1_000_000, 3, 3},
		{"a slow limit gets one", `{name: v, call: slow.get, with: {x: "${index}"}}`, 10_000_000, 10000, 1},
		{"1,000 calls a second keep four busy", `{name: v, call: fast.get, with: {x: "${index}"}}`, 10_000_000, 10000, 4},
		{"the slowest decides", `{name: v, call: fast.get, with: {x: "${index}"}}, {name: w, call: slow.get, with: {x: "${index}"}}`, 10_000_000, 10000, 1},
		{"bounded", `{name: v, value: "${index}"}`, 100_000_000, 100000, 40},
	} {
		m, err := mapspec.ParseMap("m.yaml", []byte("version: 1\ncolumns: ["+c.columns+"]\n"), tools)
		if err != nil {
			t.Fatal(err)
		}
		if got := shardsFor(m, c.rows, c.pages); got != c.want {
			t.Errorf("%s: %d shards, want %d", c.name, got, c.want)
		}
	}
}
