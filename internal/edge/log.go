package edge

import (
	"context"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"sluice/internal/core/gateway"
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
	KeyTool      = "tool"
	// The phases of a retry, in milliseconds since its permit was asked for (gateway.Trace).
	KeyGranted    = "granted"
	KeySlept      = "slept"
	KeyChecked    = "checked"
	KeyDispatched = "dispatched"
	KeyAnswered   = "answered"
	KeyVoid       = "voidPermits"
)

// NewLogger writes JSON lines for the named function.
func NewLogger(w io.Writer, level slog.Level, function string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})).With(slog.String(KeyFunction, function))
}

// Retried writes the line of a call's retry (R14). It names nobody: no request, no receipt, no customer.
func Retried(log *slog.Logger) func(gateway.Trace) {
	return func(t gateway.Trace) {
		log.Info("retry", slog.String(KeyTool, t.Tool), slog.String(KeyOutcome, string(t.Outcome)), slog.Int(KeyStatus, t.Status),
			slog.Int64(KeyGranted, t.Granted.Milliseconds()), slog.Int64(KeySlept, t.Slept.Milliseconds()), slog.Int64(KeyChecked, t.Checked.Milliseconds()),
			slog.Int64(KeyDispatched, t.Dispatched.Milliseconds()), slog.Int64(KeyAnswered, t.Answered.Milliseconds()), slog.Int(KeyVoid, t.Void))
	}
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
