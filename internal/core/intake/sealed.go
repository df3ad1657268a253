package intake

// Sealed describes a sealed input: read-only pages of rows, numbered from 0. It is kept in the run's record and
// travels between functions, so it stays small however many rows there are.
type Sealed struct {
	Columns      []string `json:"columns"`
	Total        int64    `json:"total"`      // rows in the source
	Duplicates   int64    `json:"duplicates"` // rows with a key seen before; listed, not kept
	Rows         int64    `json:"rows"`       // Total - Duplicates
	Pages        int      `json:"pages"`
	Digest       string   `json:"digest"`       // of all pages, in order
	SourceDigest string   `json:"sourceDigest"` // of the source's bytes
	HasPosition  bool     `json:"hasPosition"`  // the source's own row numbers are known
	Typed        bool     `json:"typed"`
	Parts        []Part   `json:"parts,omitempty"` // of an input that was extended: what it consists of, in order
}

// PageRef is a sealed page's entry in the manifest.
type PageRef struct {
	First  int64  `json:"first"` // ordinal of its first row among the kept rows
	Rows   int    `json:"rows"`
	Digest string `json:"digest"`

	Part   string `json:"-"` // name of the part that it belongs to
	Number int    `json:"-"` // of the page in its part, if that is not the first
}

// Page is a sealed page, decoded. Row i of the page has ordinal First+i.
type Page struct {
	Number  int
	First   int64
	Columns []string
	Index   []int64 // 0-based position of each row in the source
	Values  [][]any // a row may be shorter than Columns: the rest is null
}
