package sheet

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/value"
)

// Kind is what a journal entry says.
type Kind string

// The kinds of journal entries.
const (
	Received Kind = "c" // a call of a row has ended: a receipt
	Tried    Kind = "a" // a call goes on with attempt number Next
	Intended Kind = "i" // a call that must not be repeated is about to be dispatched
	Bounded  Kind = "b" // a row waits at a boundary
	RowEnded Kind = "e" // a row has ended
	Reopened Kind = "o" // a row that had failed is run again
)

// Entry is one line of the journal. Which fields count depends on Kind.
type Entry struct {
	Kind Kind  `json:"k"`
	Row  int64 `json:"r"`
	Receipt
	Next    int   `json:"n,omitempty"` // Tried, Intended: number of the attempt
	Refused int   `json:"u,omitempty"` // Tried, Intended: definite refusals so far, from which the request id follows
	At      int64 `json:"t,omitempty"` // Intended: when, in milliseconds since 1970
	// Tried, of a call of a resolver: until when it is held, by whom and why. Its row may come back earlier, for something else.
	Until time.Time   `json:"h,omitzero"`
	Scope string      `json:"s,omitempty"`
	Why   call.Why    `json:"q,omitzero"`
	Batch *call.Batch `json:"b,omitempty"` // Tried, Intended: the request that the call shares with others
	Bound *Boundary   `json:"g,omitempty"` // Bounded
	Fault *Fault      `json:"f,omitempty"` // RowEnded: why the row failed
	Cells Cells       `json:"w,omitempty"` // RowEnded: cells that no receipt carries
	Again *Again      `json:"o,omitempty"` // Reopened
}

// Receipt is the durable result of a call, at its place in the row: what the column keeps of it, or how it ended.
type Receipt struct {
	Column   int             `json:"c"`
	Step     int             `json:"p,omitempty"`
	Value    json.RawMessage `json:"v,omitempty"`
	Rejected bool            `json:"j,omitempty"` // a waterfall step that was missing or not accepted
	Error    *call.Error     `json:"x,omitempty"`
	Shared   string          `json:"d,omitempty"` // identity of the call, if identical calls may take this result
	Op       string          `json:"y,omitempty"` // of an operation of a resolver: which one it is. Its value is no cell
	Used     int             `json:"z,omitempty"` // positions that such an operation took besides its own
}

// ends counts the row that ends with this entry, or that has not ended after all.
func (e *Entry) ends() Counts {
	switch {
	case e.Kind == Reopened:
		return Counts{Failed: -1}
	case e.Kind != RowEnded:
		return Counts{}
	case e.Fault != nil:
		return Counts{Failed: 1}
	}
	return Counts{Completed: 1}
}

// Fault is why a row failed, in the form in which it is stored and shown.
type Fault struct {
	Column     string         `json:"column,omitempty"`
	Code       string         `json:"code"`
	Message    string         `json:"message"`
	Status     int            `json:"status,omitempty"`     // the rest as in call.Error
	Attempt    int            `json:"attempt,omitempty"`    //
	Dispatched bool           `json:"dispatched,omitempty"` //
	Dispatch   *call.Dispatch `json:"dispatch,omitempty"`   //
}

// FaultOf is the failure of a row by that of one of its columns.
func FaultOf(column string, e *call.Error) *Fault {
	return &Fault{Column: column, Code: e.Code, Message: e.Message, Status: e.Status, Attempt: e.Attempt, Dispatched: e.Dispatched, Dispatch: e.Dispatch}
}

func (f *Fault) Error() string {
	s := f.Code + ": " + f.Message
	if f.Column != "" {
		s = f.Column + ": " + s
	}
	return s
}

// appendEntry writes the JSON of e. It is written by hand because it runs once or more for every row: the generic
// encoder takes five times as long.
func appendEntry(b []byte, e *Entry) []byte {
	b = append(b, `{"k":"`...)
	b = append(b, e.Kind...)
	b = append(b, `","r":`...)
	b = strconv.AppendInt(b, e.Row, 10)
	b = append(b, `,"c":`...)
	b = strconv.AppendInt(b, int64(e.Column), 10)
	if e.Step != 0 {
		b = append(b, `,"p":`...)
		b = strconv.AppendInt(b, int64(e.Step), 10)
	}
	if e.Value != nil {
		b = append(b, `,"v":`...)
		b = append(b, e.Value...)
	}
	if e.Rejected {
		b = append(b, `,"j":true`...)
	}
	if e.Error != nil {
		b = appendJSON(append(b, `,"x":`...), e.Error)
	}
	if e.Shared != "" {
		b = appendJSON(append(b, `,"d":`...), e.Shared)
	}
	if e.Op != "" {
		b = appendJSON(append(b, `,"y":`...), e.Op)
	}
	if e.Used != 0 {
		b = append(b, `,"z":`...)
		b = strconv.AppendInt(b, int64(e.Used), 10)
	}
	if e.Next != 0 {
		b = append(b, `,"n":`...)
		b = strconv.AppendInt(b, int64(e.Next), 10)
	}
	if e.Refused != 0 {
		b = append(b, `,"u":`...)
		b = strconv.AppendInt(b, int64(e.Refused), 10)
	}
	if e.At != 0 {
		b = append(b, `,"t":`...)
		b = strconv.AppendInt(b, e.At, 10)
	}
	if !e.Until.IsZero() {
		b = appendJSON(append(b, `,"h":`...), e.Until)
	}
	if e.Scope != "" {
		b = appendJSON(append(b, `,"s":`...), e.Scope)
	}
	if e.Why != (call.Why{}) {
		b = appendJSON(append(b, `,"q":`...), e.Why)
	}
	if e.Batch != nil {
		b = appendJSON(append(b, `,"b":`...), e.Batch)
	}
	if e.Bound != nil {
		b = appendJSON(append(b, `,"g":`...), e.Bound)
	}
	if e.Fault != nil {
		b = appendJSON(append(b, `,"f":`...), e.Fault)
	}
	if len(e.Cells) > 0 {
		b = e.Cells.appendTo(append(b, `,"w":`...))
	}
	if e.Again != nil {
		b = appendJSON(append(b, `,"o":`...), e.Again)
	}
	return append(b, '}')
}

// appendJSON appends a value that always has a JSON form: texts are made valid UTF-8 by the encoder.
func appendJSON(b []byte, v any) []byte {
	if s, ok := v.(string); ok {
		if out, err := value.Append(b, s); err == nil {
			return out
		}
	}
	enc, err := json.Marshal(v)
	if err != nil {
		enc = []byte("null")
	}
	return append(b, enc...)
}

// Cells are cells by column number; nil where there is none. Stored they are an object, so that a row with few of
// them is short.
type Cells []json.RawMessage

func (cells Cells) appendTo(b []byte) []byte {
	b = append(b, '{')
	first := true
	for column, cell := range cells {
		if cell == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(column), 10)
		b = append(append(b, '"', ':'), cell...)
	}
	return append(b, '}')
}

// maxColumns bounds the column numbers that are believed when an entry is read.
const maxColumns = 100_000

// UnmarshalJSON reads the stored form.
func (cells *Cells) UnmarshalJSON(b []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	for key, cell := range m {
		column, err := strconv.Atoi(key)
		if err != nil || column < 0 || column >= maxColumns {
			return fmt.Errorf("a cell of column %q", key)
		}
		for len(*cells) <= column {
			*cells = append(*cells, nil)
		}
		(*cells)[column] = cell
	}
	return nil
}
