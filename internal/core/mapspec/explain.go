package mapspec

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
)

// explain turns CEL's compile errors into the words of the map language.
func explain(s *scope, env *cel.Env, source string, issues *cel.Issues) []exprMistake {
	var out []exprMistake
	for _, problem := range issues.Errors() {
		m := exprMistake{offset: byteOffset(source, problem.Location.Line(), problem.Location.Column())}
		if rest, ok := strings.CutPrefix(problem.Message, "undeclared reference to '"); ok {
			name, _, _ := strings.Cut(rest, "'")
			m.message, m.remedy = undeclared(s, env, source, name)
		} else {
			m.message = celMessage(problem.Message)
		}
		out = append(out, m)
	}
	return out
}

// undeclared explains a name that CEL does not know in this scope.
func undeclared(s *scope, env *cel.Env, source, name string) (message, remedy string) {
	here := "expressions here see " + strings.Join(s.roots, ", ")
	if _, known := rootTypes[name]; known {
		return "`" + name + "` is not available here", here
	}
	if strings.Contains(source, name+"(") {
		if near := nearest(name, slices.Collect(maps.Keys(env.Functions()))); near != "" {
			remedy = "did you mean `" + near + "`?"
		}
		return "there is no function `" + name + "`", remedy
	}
	if near := nearest(name, s.roots); near != "" {
		return "`" + name + "` is not known", "did you mean `" + near + "`?"
	}
	return "`" + name + "` is not known", here + "; text is quoted inside an expression"
}

var (
	operatorName = regexp.MustCompile(`'_(\S{1,2})_'`)
	unexpected   = regexp.MustCompile(`^(?:mismatched input|extraneous input|no viable alternative at input) '(.*)'$`)
)

// celMessage drops what only the authors of CEL understand: mangled operators and lists of possible tokens.
func celMessage(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	rest, isSyntax := strings.CutPrefix(message, "Syntax error: ")
	if !isSyntax {
		return operatorName.ReplaceAllString(message, "'$1'")
	}
	rest, _, _ = strings.Cut(rest, " expecting ")
	if found := unexpected.FindStringSubmatch(rest); found != nil {
		rest = "unexpected '" + found[1] + "'"
		if strings.HasSuffix(found[1], "<EOF>") {
			rest = "it ends too early"
		}
	}
	return "the expression cannot be read: " + rest
}
