package mapspec

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// Bounds of one expression.
const (
	// CostLimit bounds the work of one evaluation, in CEL's cost units: about one per operation and one per ten
	// characters of text touched. Ordinary expressions cost below a hundred; the limit allows filtering some 20,000 list
	// entries or touching 2 MB of text. CEL's accounting grows with the square of a filtered list, so a limit ten times
	// as high would allow minutes instead of one or two seconds. A count, not a clock: a replay decides the same.
	CostLimit = 200_000
	// MaxValueBytes bounds the size of one evaluation's value; it is larger than any answer accepted by default (DefaultMaxBody).
	MaxValueBytes = 16 << 20

	maxExprChars = 10_000
	maxExprDepth = 50
	maxRange     = 100_000 // elements of lists.range
)

// scope is the set of variables that an expression may see in one place of a file. Using another one there is a
// mistake that is reported before anything runs.
type scope struct {
	roots []string
	env   func() (*cel.Env, error) // built on first use; immutable

	absentIsNull bool // a field that an answer lacks reads as null
}

var rootTypes = map[string]*cel.Type{
	"row": cel.MapType(cel.StringType, cel.DynType), "cells": cel.MapType(cel.StringType, cel.DynType),
	"vars": cel.MapType(cel.StringType, cel.DynType), "index": cel.IntType,
	"result": cel.DynType, "status": cel.IntType, "headers": cel.MapType(cel.StringType, cel.DynType),
	"body": cel.DynType, "input": cel.MapType(cel.StringType, cel.DynType),
	"run":    cel.MapType(cel.StringType, cel.DynType),
	"inputs": cel.ListType(cel.MapType(cel.StringType, cel.DynType)),
	"answer": cel.MapType(cel.StringType, cel.DynType),
}

// The places where expressions stand.
var (
	keyScope     = newScope("row", "vars", "index")                             // identity is decided before any cell
	columnScope  = newScope("row", "cells", "vars", "index")                    // value, when, with, otherwise, onError, output
	stepScope    = newScope("row", "cells", "vars", "index", "result", "input") // result and accept of a call: its receipt keeps the result alone
	notifyScope  = newScope("row", "cells", "vars", "index", "answer")          // with of an event's notify
	eventScope   = newScope("row", "cells", "vars", "index", "result")          // result of an event: what was answered
	inputScope   = newScope("input")                                            // a tool's path, query, headers and body
	answerScope  = newScope("status", "headers", "body", "input")               // a tool's result
	verdictScope = tolerantScope(answerScope)                                   // a tool's missing and fail
	inputsScope  = newScope("inputs")                                           // the request of a batch
	partsScope   = newScope("status", "headers", "body", "inputs")              // a batch's each
	noScope      = newScope()                                                   // literals

	finishScope       = newScope("run", "vars")                    // with, onError and content of finish
	finishResultScope = newScope("run", "vars", "result", "input") // result of a call of finish
	partsVerdictScope = tolerantScope(partsScope)                  // a batch's tooLarge
)

func newScope(roots ...string) *scope {
	return &scope{roots: roots, env: sync.OnceValues(func() (*cel.Env, error) { return newEnv(roots) })}
}

func tolerantScope(s *scope) *scope {
	return &scope{roots: s.roots, env: s.env, absentIsNull: true}
}

func newEnv(roots []string) (*cel.Env, error) {
	options := []cel.EnvOption{
		ext.Strings(), ext.Math(), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Encoders(), ext.Sets(),
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(maxExprDepth), cel.ParserExpressionSizeLimit(maxExprChars),
	}
	for _, name := range roots {
		options = append(options, cel.Variable(name, rootTypes[name]))
	}
	return cel.NewEnv(options...)
}
