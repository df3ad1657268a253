package mapspec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/internal/core/value"
)

// seed adds all files of testdata.
func seed(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"testdata/*.yaml", "testdata/errors/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte(digestMapJSON))
}

// checkProblems: an error is always a list of problems with places, and nothing comes with it.
func checkProblems(t *testing.T, parsed bool, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var p Problems
	if parsed || !errors.As(err, &p) || len(p) == 0 || len(p) > maxProblems {
		t.Fatalf("parsed %v with error %v", parsed, err)
	}
	for _, one := range p {
		if one.Line < 1 || one.Column < 1 || one.Message == "" {
			t.Fatalf("%+v", one)
		}
	}
}

func FuzzParseMap(f *testing.F) {
	seed(f)
	tools := catalogue(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := ParseMap("m.yaml", src, tools, Resolvers(resolvers))
		checkProblems(t, m != nil, err)
		if m == nil {
			return
		}
		again, err := ParseMap("m.yaml", src, tools, Resolvers(resolvers))
		if err != nil || again.Digest != m.Digest {
			t.Fatalf("a second reading differs: %v", err)
		}
		for _, c := range m.Columns {
			checkKind(t, &c)
		}
		for _, s := range m.Finish {
			if (s.Call == nil) == (s.Publish == nil) || s.Call != nil && (s.Call.Tool == nil || s.Call.Result == nil) {
				t.Fatalf("%+v", s)
			}
			if s.Publish != nil {
				_, _ = s.Publish.Bytes(&Env{Row: map[string]any{}, Vars: m.Vars})
				if name := s.Publish.Name; name == "" || strings.ContainsAny(name, "/\\:") || name[0] == '.' {
					t.Fatalf("published under %q", name)
				}
			}
		}
	})
}

// checkKind: a column is filled in exactly one way.
func checkKind(t *testing.T, c *Column) {
	t.Helper()
	ways := 0
	for _, is := range []bool{c.Value != nil, c.Sleep != nil, c.Event != nil, c.Resolve != nil, c.Event == nil && len(c.Steps) > 0} {
		if is {
			ways++
		}
	}
	if ways != 1 || c.Event != nil && (c.Event.Key == nil || c.Event.Expires == nil || len(c.Steps) > 1) {
		t.Fatalf("%+v", c)
	}
}

func FuzzParseTools(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := ParseTools("t.yaml", src)
		checkProblems(t, c != nil, err)
		if c == nil {
			return
		}
		for _, tl := range c.Tools {
			if tl.Provider == nil || len(tl.Provider.Limits) == 0 || tl.Timeout <= 0 || tl.Attempts < 1 || tl.Digest == "" {
				t.Fatalf("%+v", tl)
			}
			if req, err := tl.Request(map[string]any{"domain": "../x", "id": "a/b", "kind": "?"}); err == nil && req.URL == "" {
				t.Fatal("no address")
			}
		}
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"${row.a}", "a${", "$${x}", `${"}"}`, `${ {"a": {}} }`, "${row.a.split(',')}", `${'''}'''}`, "${r'\\'}", "${1/0}", "${[1].map(x, x)}",
		"${row.a // } x", "${'\\ud800'}", "${cells}", "${b'\\xff'}", "${string(b'\\xff')}"} {
		f.Add(s)
	}
	env := sampleEnv()
	f.Fuzz(func(t *testing.T, source string) {
		if !utf8.ValidString(source) {
			return // files are checked before
		}
		r := &reporter{file: "t"}
		n := &node{kind: kindString, at: pos{1, 1}, scalar: source}
		tpl := newCompiler(r, []byte(source)).template(n, everything, nil)
		if err := r.err(); err != nil {
			checkProblems(t, false, err)
			return
		}
		v, err := tpl.Eval(env)
		if err != nil {
			var e *ExprError
			if !errors.As(err, &e) || e.Reason == "" {
				t.Fatalf("%q: %v", source, err)
			}
			return
		}
		if _, err := value.Encode(v); err != nil {
			t.Fatalf("%q gives %#v: %v", source, v, err)
		}
	})
}
