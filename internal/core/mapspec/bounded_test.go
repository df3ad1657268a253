package mapspec

import (
	"fmt"
	"strings"
	"testing"
)

// Files of the largest size that is read, each of one thing over and over. A reading that is not linear takes
// minutes here and fails by the time limit of the test run.
func TestLargeFilesAreReadInBoundedTime(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes")
	}
	fill := func(s string) string { return strings.Repeat(s, MaxFileBytes/16/len(s)) }
	var indented, oneLine strings.Builder
	for i := range 500 {
		fmt.Fprintf(&indented, "%sa:\n", strings.Repeat(" ", i))
	}
	oneLine.WriteString(`{"version":1,"columns":[`)
	for i := range 3000 {
		fmt.Fprintf(&oneLine, `{"name":"c%d","value":"${row.a}"},`, i)
	}
	oneLine.WriteString(`{"name":"z","value":1}]}`)
	for name, src := range map[string]string{
		"indentation": indented.String(), "one line": oneLine.String(), "expressions": "version: 1\ncolumns: [{name: a, value: '" + fill("${1}") + "'}]",
		"quotes": fill(`"`), "commas": "[" + fill(","), "open list": "[" + fill("a,"), "colons": fill(":"), "spaces": fill(" "), "pipes": fill("|\n"), "list": fill("- a\n"),
		"tabs": fill("\t"), "plain lines": "a:\n" + fill("  b\n"), "block": "a: |\n" + fill("  b\n"), "folded": "a: >\n" + fill("  b\n"),
		"quoted lines": `a: "` + fill("b\n") + `"`, "escapes": `a: "` + fill(`\n`) + `"`, "comments": fill("#\n"), "documents": fill("---\n"),
		"aliases": fill("*a "), "tags": fill("! "), "too many keys": fill("a: 1\n"), "many keys": strings.Repeat("a: 1\n", maxKeys/4), "text": "a: " + fill("x"),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ParseMap("m", []byte(src), nil)
			checkProblems(t, m != nil, err)
		})
	}
}
