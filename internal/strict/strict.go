// Package strict reads requests as they are meant: what is not known is refused by its name, and never passed over.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Error: the request is not one that can be carried out. The message is for whoever made it, and says what would be right.
type Error struct {
	Message string
	Err     error // what was wrong, where that is an error of its own
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns what was wrong.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error.
func Errorf(format string, args ...any) error { return &Error{Message: fmt.Sprintf(format, args...)} }

// Wrap makes an Error of another one, which is the user's mistake.
func Wrap(err error) error { return &Error{Message: err.Error(), Err: err} }

// Decode reads a request strictly: a field that is not known, or anything after the value, is an *Error.
func Decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &Error{Message: "the request is not valid: " + reason(err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &Error{Message: "the request is not valid: there is something after the JSON value"}
	}
	return nil
}

// reason says what is wrong in terms of JSON, not of Go types.
func reason(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return fmt.Sprintf("%s must not be a JSON %s", nonempty(kind.Field, "the value"), kind.Value)
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	}
	const prefix = "json: "
	if text := err.Error(); len(text) > len(prefix) && text[:len(prefix)] == prefix {
		return text[len(prefix):]
	}
	return err.Error()
}

func nonempty(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
