package edge

import (
	"context"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// The keys of log lines, declared here and nowhere else, so that a query over all functions can rely on them. No line
// carries a payload, a row or a secret.
const (
	KeyFunction  = "function"
	KeyRequest   = "request" // id of the invocation
	KeyRun       = "run"
	KeyShard     = "shard"
	KeyOp        = "op"
	KeyOutcome   = "outcome"
	KeyWakeAt    = "wakeAt"
	KeyStatus    = "status"
	KeyError     = "error"
	KeyErrorName = "errorName"
	KeyMillis    = "ms"
	KeyAttempts  = "attempts"
	KeyWriteUnit = "writeUnits"
	KeyReadUnit  = "readUnits"
	KeyMethod    = "method"
	KeyRoute     = "route"
	KeyReaped    = "reaped"
	KeyTaken     = "taken"   // rows that an answer goes to
	KeyAlready   = "already" // rows that had one
)

// NewLogger writes JSON lines for the named function.
func NewLogger(w io.Writer, level slog.Level, function string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})).With(slog.String(KeyFunction, function))
}

// With adds the id of the invocation.
func With(ctx context.Context, log *slog.Logger) *slog.Logger {
	if id := RequestID(ctx); id != "" {
		return log.With(slog.String(KeyRequest, id))
	}
	return log
}

// RequestID is the id of the invocation; empty where there is none.
func RequestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.AwsRequestID
	}
	return ""
}
