package statemachine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// handler is where runmap reads what the machines send and writes what they read. Its types are out of reach for an
// import (they are internal to functions/), so its source is read.
const handler = "../functions/internal/runmap"

func TestPayloadsAreWhatTheFunctionReadsAndWrites(t *testing.T) {
	fields, texts := source(t, handler, "../internal/core/run")
	knows := func(kind string, set map[string]bool, name, where string) {
		if !set[name] {
			t.Errorf("%s: the function knows no %s %s", where, kind, name)
		}
	}
	for _, file := range files {
		m, _ := load(t, file)
		m.each(func(name string, s state) {
			payload, _ := s.Parameters["Payload"].(map[string]any)
			for _, field := range slices.Sorted(maps.Keys(payload)) {
				knows("field", fields, strings.TrimSuffix(field, ".$"), file+": "+name)
			}
			if lambdaTask(s) {
				knows("operation", texts, s.op(), file+": "+name)
			}
			for _, c := range s.Choices {
				if value, ok := c["StringEquals"].(string); ok {
					knows("outcome", texts, value, file+": "+name)
				}
			}
		})
	}
}

// path finds references, also inside the arguments of intrinsic functions.
var path = regexp.MustCompile(`\$\$?\.[A-Za-z.]+`)

func TestPathsLeadToWhatIsThere(t *testing.T) {
	fields, _ := source(t, handler)
	// What the machines themselves add, and what Step Functions gives.
	added := []string{"$.failure", "$.failure.Error", "$.failure.Cause", "$.unsaid", "$.Payload"}
	given := []string{"$$.Execution.Id", "$$.StateMachine.Id", "$$.Task.Token", "$$.Map.Item.Value.shard"}
	for _, file := range files {
		_, raw := load(t, file)
		walk(raw, "", func(key, value string) {
			if key == "Comment" {
				return
			}
			for _, p := range path.FindAllString(value, -1) {
				field, isField := strings.CutPrefix(p, "$.")
				if !slices.Contains(added, p) && !slices.Contains(given, p) && (!isField || !fields[field]) {
					t.Errorf("%s: %s %s leads nowhere", file, key, value)
				}
			}
		})
	}
}

// Step Functions ends an execution at 25,000 history events (Service quotas). A slice that parks makes nine: five of its
// task, two of the choice, two of the wait; one that awaits makes fifteen: two more of a second choice, and six of the token
// instead of the wait; a retry makes three more. A fifth is left for retries and for the end.
func TestShardRollsOverBeforeItsHistoryIsFull(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(handler, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	after := 0
	found := regexp.MustCompile(`(?m)^const RolloverAfter = (\d+)$`)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := found.FindSubmatch(text); m != nil {
			after, _ = strconv.Atoi(string(m[1]))
		}
	}
	if after == 0 || after*15 > 25_000*4/5 {
		t.Errorf("a shard rolls over after %d slices, which make %d events", after, after*15)
	}
}

// source returns the names of the JSON fields and all string constants in the Go files of folders, without tests.
func source(t *testing.T, folders ...string) (fields, texts map[string]bool) {
	t.Helper()
	fields, texts = map[string]bool{}, map[string]bool{}
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("there is no Go in %s (%v)", folder, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				collect(t, name, fields, texts)
			}
		}
	}
	return fields, texts
}

func collect(t *testing.T, name string, fields, texts map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				tag, _ := strconv.Unquote(n.Tag.Value)
				json, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				fields[json] = true
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, _ := strconv.Unquote(n.Value)
				texts[text] = true
			}
		}
		return true
	})
}
