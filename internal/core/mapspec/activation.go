package mapspec

import "github.com/google/cel-go/interpreter"

// activation lets CEL read an Env without a map being built for every evaluation.
type activation struct{ env *Env }

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) { return a.env.root(name) }

// Parent implements interpreter.Activation: there is none.
func (a *activation) Parent() interpreter.Activation { return nil }

// root returns a variable. Which of them exist in which place was decided when the expression was compiled.
func (e *Env) root(name string) (any, bool) {
	switch name {
	case "row", "run":
		return e.Row, true
	case "cells":
		return e.Cells, true
	case "vars":
		return e.Vars, true
	case "index":
		return e.Index, true
	case "result":
		return e.Result, true
	case "status":
		return e.Status, true
	case "headers":
		return e.Headers, true
	case "body":
		return e.Body, true
	case "input":
		return e.Input, true
	case "inputs":
		return e.Inputs, true
	case "answer":
		return e.Answer, true
	}
	return nil, false
}
