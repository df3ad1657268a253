package intake

import (
	"fmt"
	"strings"
)

// detectDelimiter takes the candidate that occurs most often in the header outside quotes; of equals, the comma.
func detectDelimiter(head []byte, eol byte) byte {
	var commas, semicolons, tabs int
	quoted, empty := false, true
	for _, c := range head {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == eol && !empty:
			goto counted
		case c == ',':
			commas++
		case c == ';':
			semicolons++
		case c == '\t':
			tabs++
		}
		empty = empty && (c == '\r' || c == '\n')
	}
counted:
	switch {
	case semicolons > commas && semicolons >= tabs:
		return ';'
	case tabs > commas:
		return '\t'
	}
	return ','
}

func checkHeader(name string, line int64, columns []string) error {
	refuse := func(format string, args ...any) error {
		return &PosError{Name: name, Line: line, Msg: fmt.Sprintf(format, args...)}
	}
	if len(columns) > MaxColumns {
		return refuse("the header has %d columns; at most %d are possible", len(columns), MaxColumns)
	}
	first := make(map[string]int, len(columns))
	for i, c := range columns {
		if strings.TrimSpace(c) == "" {
			return refuse("column %d of the header has no name; name it, or remove the column", i+1)
		}
		if j, seen := first[c]; seen {
			return refuse("the header has %q twice, in columns %d and %d; rename one", c, j+1, i+1)
		}
		first[c] = i
	}
	return nil
}
