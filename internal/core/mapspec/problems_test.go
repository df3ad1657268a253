package mapspec

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the texts that testdata/errors want")

const wantPrefix = "# want: "

// Every file of testdata/errors ends with the problems that it must give, in order.
func TestMistakesAreReportedTogetherWithTheirPlaces(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	tools := catalogue(t)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "map-") {
				_, err = ParseMap(name, src, tools, Resolvers(resolvers))
			} else {
				_, err = ParseTools(name, src)
			}
			compareProblems(t, file, string(src), err)
		})
	}
}

func compareProblems(t *testing.T, file, src string, err error) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got error %v, want Problems", err)
	}
	var got, want []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.String(), filepath.Base(file)+":"))
	}
	body, wanted, _ := strings.Cut(src, wantPrefix)
	for line := range strings.Lines(wantPrefix + wanted) {
		if text, ok := strings.CutPrefix(line, wantPrefix); ok {
			want = append(want, strings.TrimSuffix(text, "\n"))
		}
	}
	if *update {
		out := body + wantPrefix + strings.Join(got, "\n"+wantPrefix) + "\n"
		if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
