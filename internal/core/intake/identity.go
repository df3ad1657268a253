package intake

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/core/value"
)

// Identity says what makes two rows the same (M3): exactly one of its fields is set; none is Position. First row
// wins; later ones are duplicates: counted, listed and not kept.
type Identity struct {
	// Columns: the values of these columns together. None of them may be empty or null.
	Columns []string
	// Key computes the key of a row from its values by column and its 0-based position. A key that is null, empty
	// text, an empty list or a list with an empty member is refused.
	Key func(row map[string]any, index int64) (any, error)
}

// Position is the identity of rows that are all different: the position in the source.
func Position() Identity { return Identity{} }

// ByColumns is the identity by the values of columns.
func ByColumns(columns ...string) Identity { return Identity{Columns: columns} }

// ByKey is the identity by a computed key.
func ByKey(key func(row map[string]any, index int64) (any, error)) Identity {
	return Identity{Key: key}
}

// errEmptyKey: the key of a row is empty or null.
var errEmptyKey = errors.New("the key is empty")

// keyer computes the digests of rows' keys.
type keyer struct {
	id  Identity
	at  []int // of Columns in the source; resolved lazily, since sources may learn columns
	buf []byte
}

// check refuses what is known to be wrong before the first row: columns of a source with a header.
func (k *keyer) check(src Source) error {
	if k.id.Key != nil && len(k.id.Columns) > 0 {
		return errors.New("identity: both columns and a key function are given")
	}
	for i, c := range k.id.Columns {
		if slices.Contains(k.id.Columns[:i], c) {
			return fmt.Errorf("identity: the column %q is given twice", c)
		}
		if cols := src.Columns(); !src.Typed() && !slices.Contains(cols, c) {
			return fmt.Errorf("identity: the source has no column %q; it has %s", c, quoteList(cols))
		}
	}
	return nil
}

func quoteList(names []string) string {
	const most = 20
	quoted := make([]string, 0, most+1)
	for i, n := range names {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	return strings.Join(quoted, ", ")
}

// digest is the 128-bit digest of a row's key: the first half of the SHA-256 of its canonical JSON. The chance that
// two of 10^9 different keys meet is below 10^-20.
func (k *keyer) digest(columns []string, values []any, index int64) (d [16]byte, err error) {
	if k.id.Key != nil {
		err = k.computed(columns, values, index)
	} else {
		err = k.columns(columns, values)
	}
	if err != nil {
		return d, err
	}
	sum := sha256.Sum256(k.buf)
	copy(d[:], sum[:])
	return d, nil
}

func (k *keyer) computed(columns []string, values []any, index int64) error {
	key, err := k.id.Key(rowMap(columns, values), index)
	if err != nil {
		return fmt.Errorf("the key cannot be computed: %w", err)
	}
	if list, ok := key.([]any); isEmpty(key) || ok && (len(list) == 0 || slices.ContainsFunc(list, isEmpty)) {
		return errEmptyKey
	}
	k.buf, err = value.Append(k.buf[:0], key)
	return err
}

func (k *keyer) columns(columns []string, values []any) error {
	if len(k.at) == 0 {
		k.at = slices.Repeat([]int{-1}, len(k.id.Columns))
	}
	k.buf = append(k.buf[:0], '[')
	for n, name := range k.id.Columns {
		if k.at[n] < 0 {
			k.at[n] = slices.Index(columns, name)
		}
		i := k.at[n]
		if i < 0 || i >= len(values) || isEmpty(values[i]) {
			return fmt.Errorf("%w: the column %q has no value", errEmptyKey, name)
		}
		var err error
		if k.buf, err = value.Append(k.buf, values[i]); err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
		k.buf = append(k.buf, ',')
	}
	return nil
}

func isEmpty(v any) bool { return v == nil || v == "" }

func rowMap(columns []string, values []any) map[string]any {
	m := make(map[string]any, len(columns))
	for i, c := range columns {
		if i < len(values) {
			m[c] = values[i]
		} else {
			m[c] = nil
		}
	}
	return m
}
