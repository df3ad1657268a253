package edge

import (
	"context"
	"errors"
	"time"

	"sluice/internal/strict"
)

// Decode reads a request strictly: a field that is not known, or anything after the value, is a *BadRequest.
func Decode(raw []byte, into any) error {
	err := strict.Decode(raw, into)
	var bad *strict.Error
	if errors.As(err, &bad) {
		return &BadRequest{Message: bad.Message}
	}
	return err
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
