// Package docs_test holds the documentation against the program: links lead somewhere, commands exist, examples compile.
package docs_test

import (
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/internal/core/mapspec"
)

// pages are the project's documents, relative to this folder.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, root := range []string{"..", "../examples", "../bench"} {
		names, err := filepath.Glob(filepath.Join(root, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			found = append(found, name)
		}
		return err
	})
	if err != nil || len(found) < 10 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	fence   = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text := fence.ReplaceAllString(read(t, page), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(match[1])
			if err != nil || target.Scheme != "" {
				continue
			}
			name := page
			if target.Path != "" {
				name = filepath.Join(filepath.Dir(page), target.Path)
			}
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
				continue
			}
			if target.Fragment != "" && !slices.Contains(anchors(read(t, name)), target.Fragment) {
				t.Errorf("%s links to %s: there is no such heading", page, match[1])
			}
		}
	}
}

// anchors are the names under which a page's headings can be linked to.
func anchors(text string) []string {
	var names []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case c == '-', c == '_', c >= '0' && c <= '9', c >= 'a' && c <= 'z', c > 127:
				return c
			}
			return -1
		}, strings.ToLower(match[1]))
		names = append(names, name)
	}
	return names
}

// Blocks that begin with ```yaml map, tools or columns are compiled. Columns are those of a map with some variables.
func TestExamplesOfTheMapLanguageCompile(t *testing.T) {
	blocks := fence.FindAllStringSubmatch(read(t, "map-language.md"), -1)
	var tools *mapspec.Catalogue
	for _, b := range blocks {
		if b[1] == "yaml tools" {
			c, err := mapspec.ParseTools("tools", []byte(b[2]))
			if err != nil {
				t.Fatal(err)
			}
			if tools == nil { // the first is the one that the maps use
				tools = c
			}
		}
	}
	compiled := 0
	for _, b := range blocks {
		source := b[2]
		switch b[1] {
		case "yaml map":
		case "yaml columns":
			source = "version: 1\nvars: {country: DE, minScore: 80}\ncolumns:\n" + source
		default:
			continue
		}
		if _, err := mapspec.ParseMap("map", []byte(source), tools); err != nil {
			t.Errorf("%v in\n%s", err, source)
		}
		compiled++
	}
	if compiled < 7 {
		t.Errorf("only %d examples", compiled)
	}
}

// Every code that the program can give is explained on the page of errors, with what to do, and no other.
func TestErrorCodesAreExplained(t *testing.T) {
	explained := map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| (`[^|]+?) \\|(.*)\\|$")
	name := regexp.MustCompile("`([A-Z][A-Z_]+)`")
	page, _, _ := strings.Cut(read(t, "errors.md"), "<!-- verdicts -->")
	for _, match := range row.FindAllStringSubmatch(page, -1) {
		for _, code := range name.FindAllStringSubmatch(match[1], -1) {
			explained[code[1]] = true
			for part := range strings.SplitSeq(match[2], "|") {
				if strings.TrimSpace(part) == "" {
					t.Errorf("%s: a part of its explanation is empty", code[1])
				}
			}
		}
	}
	given := codesInSource(t)
	for code := range given {
		if !explained[code] {
			t.Errorf("%s is given and not explained", code)
		}
	}
	for code := range explained {
		if !given[code] {
			t.Errorf("%s is explained and never given", code)
		}
	}
}

// codesInSource are the codes of call.Error, sheet.Fault and of the table of verdicts.
func codesInSource(t *testing.T) map[string]bool {
	t.Helper()
	code := regexp.MustCompile(`(?:(?:call\.Error|sheet\.Fault)\{[^}\n]*Code: |OutcomeUnknown = |^\tCode[A-Z][a-z]+ += |^\t\{[a-zA-Z]+, )"([A-Z][A-Z_]+)"`)
	found := map[string]bool{}
	for _, root := range []string{"../internal", "../cmd", "../functions"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			for line := range strings.SplitSeq(read(t, name), "\n") {
				if match := code.FindStringSubmatch(line); match != nil {
					found[match[1]] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 15 {
		t.Fatalf("only %v found", found)
	}
	return found
}

// What the pages say to type must exist: make targets, and commands of sluice with their flags.
func TestCommandsExist(t *testing.T) {
	makefile := read(t, "../Makefile")
	sluice := build(t)
	help := map[string]string{"": output(t, sluice, "--help")}
	line := regexp.MustCompile("(?m)(?:^(?:\\$ |    )?|`)(?:bin/)?(sluice|make) ([a-z][a-z0-9-]*)([^`\n]*)")
	flag := regexp.MustCompile(`--[a-z][a-z-]*`)
	seen := 0
	for _, page := range pages(t) {
		for _, match := range line.FindAllStringSubmatch(read(t, page), -1) {
			command, rest := match[2], match[3]
			if match[1] == "make" {
				if !strings.Contains(makefile, "\n"+command+":") {
					t.Errorf("%s: there is no target %q", page, command)
				}
				seen++
				continue
			}
			if !strings.Contains(help[""], "\n  "+command+" ") {
				t.Errorf("%s: there is no command %q", page, command)
				continue
			}
			if help[command] == "" {
				help[command] = output(t, sluice, command, "--help")
			}
			for _, f := range flag.FindAllString(rest, -1) {
				if !strings.Contains(help[command], f) {
					t.Errorf("%s: sluice %s has no flag %s", page, command, f)
				}
			}
			seen++
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands found", seen)
	}
}

func build(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sluice")
	if out, err := exec.Command("go", "build", "-o", name, "../cmd/sluice").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// Blocks that begin with ```go FILE are what stands in that file.
func TestGoInThePagesIsThatOfTheFiles(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		for _, b := range fence.FindAllStringSubmatch(read(t, page), -1) {
			file, ok := strings.CutPrefix(b[1], "go ")
			if !ok {
				continue
			}
			found++
			if !strings.Contains(read(t, filepath.Join("..", file)), b[2]) {
				t.Errorf("%s: this is not in %s:\n%s", page, file, b[2])
			}
		}
	}
	if found == 0 {
		t.Error("there is none")
	}
}
