package mapspec

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxListed bounds how many known names a remedy lists.
const maxListed = 12

// suggest is the remedy for an unknown name: the nearest known one, or else the list of all.
func suggest(name string, known []string, kind string) string {
	if near := nearest(name, known); near != "" {
		return "did you mean `" + near + "`?"
	}
	if len(known) == 0 {
		return "there are no " + kind
	}
	sorted := slices.Sorted(slices.Values(known))
	more := ""
	if len(sorted) > maxListed {
		sorted, more = sorted[:maxListed], ", ..."
	}
	return kind + ": " + strings.Join(sorted, ", ") + more
}

// nearest returns the known name with the smallest edit distance, if it is near enough to be a slip: a third of its
// length. Names of one letter resemble nothing.
func nearest(name string, known []string) string {
	best, bestDistance := "", (utf8.RuneCountInString(name)+1)/3
	if len(name) > 200 {
		return ""
	}
	for _, k := range slices.Sorted(slices.Values(known)) {
		if strings.EqualFold(k, name) {
			return k
		}
		if d := distance(name, k); d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the edit distance in which swapping two neighbours counts as one edit.
func distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	before, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(y)]
}
