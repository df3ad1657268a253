package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Decode reads a request strictly: a field that is not known, or anything after the value, is a *BadRequest.
func Decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &BadRequest{Message: "the request is not valid: " + reason(err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &BadRequest{Message: "the request is not valid: there is something after the JSON value"}
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

// AnswerMargin is kept free at the end of an invocation for encoding and sending the answer.
const AnswerMargin = time.Second

// Deadline is when the function must have come to its answer; zero if nothing bounds it.
func Deadline(ctx context.Context) time.Time {
	at, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return at.Add(-AnswerMargin)
}
