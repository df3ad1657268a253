package mapspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds a report: past it the file is so wrong that more lines do not help.
const maxProblems = 100

// Problem is one mistake in a map or a tool catalogue.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // 1-based
	Column  int    `json:"column"` // 1-based, in characters
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	if p.Remedy != "" {
		s += " (" + p.Remedy + ")"
	}
	return s
}

// Problems is every mistake of a file, sorted by position. It is the error of ParseMap, ParseTools and CheckInput.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// pos is a place in a file.
type pos struct{ line, col int }

// reporter collects the mistakes of one file.
type reporter struct {
	file     string
	problems Problems
}

func (r *reporter) add(at pos, remedy, format string, args ...any) {
	if len(r.problems) >= maxProblems {
		return
	}
	p := Problem{File: r.file, Line: max(at.line, 1), Column: max(at.col, 1), Message: fmt.Sprintf(format, args...), Remedy: remedy}
	if !slices.Contains(r.problems, p) { // an aliased node is read more than once
		r.problems = append(r.problems, p)
	}
}

// err returns the sorted problems, or nil.
func (r *reporter) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.problems
}
