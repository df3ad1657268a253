package intake

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrEmpty: the source has no header and no rows.
	ErrEmpty = errors.New("the source is empty")
	// ErrSealed: the run's input is sealed already; sealed input is never overwritten.
	ErrSealed = errors.New("the input is sealed already")
	// ErrSourceChanged: the source is not the one that an interrupted sealing of this run began with, or it was
	// written to while it was read.
	ErrSourceChanged = errors.New("the source has changed")
	// ErrBudget: the key index does not fit its memory budget.
	ErrBudget = errors.New("memory budget exceeded")
	// ErrNotSealed: the run has no sealed input.
	ErrNotSealed = errors.New("the input is not sealed")
)

// PosError is a refusal of a source with its position: name:line:column: message.
type PosError struct {
	Name   string // of the source; "-" is standard input
	Line   int64  // 1-based; 0: not known
	Column int64  // 1-based, in characters; 0: the whole line
	Msg    string
	Err    error // may be nil
}

func (e *PosError) Error() string {
	var b strings.Builder
	b.WriteString(displayName(e.Name))
	if e.Line > 0 {
		b.WriteString(":" + strconv.FormatInt(e.Line, 10))
		if e.Column > 0 {
			b.WriteString(":" + strconv.FormatInt(e.Column, 10))
		}
	}
	b.WriteString(": " + e.Msg)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *PosError) Unwrap() error { return e.Err }

// displayName is what a message calls a source.
func displayName(name string) string {
	switch name {
	case "-":
		return "standard input"
	case "":
		return "source"
	}
	return name
}

// PageError is a sealed page, or the manifest that lists it, that is missing or is not what was sealed (H8). The
// run must fail: the rest of the input is not the whole.
type PageError struct {
	Page   int // -1: the manifest itself
	Reason string
	Err    error // may be nil
}

func (e *PageError) Error() string {
	what := "the manifest of the sealed input"
	if e.Page >= 0 {
		what = "page " + strconv.Itoa(e.Page) + " of the sealed input"
	}
	if e.Err != nil {
		return fmt.Sprintf("%s %s: %v", what, e.Reason, e.Err)
	}
	return what + " " + e.Reason
}

func (e *PageError) Unwrap() error { return e.Err }

// Refused reports whether err speaks of the source itself: reading the same bytes again would end the same way.
func Refused(err error) bool {
	var r refusal
	var at *PosError
	return errors.As(err, &r) || errors.As(err, &at) || errors.Is(err, ErrEmpty) || errors.Is(err, ErrSourceChanged)
}
