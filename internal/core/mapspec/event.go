package mapspec

import (
	"errors"
	"fmt"
)

// MaxKeyBytes bounds the key of an event.
const MaxKeyBytes = 500

// OnTimeout is what becomes of a cell whose event is not answered in time.
type OnTimeout string

// What a timeout does (E4).
const (
	TimeoutFail  OnTimeout = "fail"  // the cell fails
	TimeoutValue OnTimeout = "value" // the cell takes Event.Default
	TimeoutPark  OnTimeout = "park"  // the row goes on waiting, without a limit
)

// Event is a durable wait for an answer from outside.
type Event struct {
	Key       *Template // gives the name under which it is answered
	Expires   *Span
	OnTimeout OnTimeout
	Default   *Template // with TimeoutValue
	Result    *Template // what to keep of the answer; nil keeps all of it
}

var errKey = errors.New("the key must be text that is not empty")

// KeyOf computes the event's key.
func (e *Event) KeyOf(env *Env) (string, error) {
	v, err := e.Key.Eval(env)
	if err != nil {
		return "", err
	}
	key, err := Text(v)
	if err == nil {
		err = CheckKey(key)
	}
	if err != nil {
		return "", &ExprError{Source: e.Key.bare(), Reason: err.Error()}
	}
	return key, nil
}

// CheckKey says what is wrong with the key of an event.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errKey
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("the key has %d bytes, at most %d are possible", len(key), MaxKeyBytes)
	}
	return nil
}

func (e *Event) templates() []*Template {
	return []*Template{e.Key, e.Expires.Template(), e.Default, e.Result}
}

func (e *Event) meaning() any {
	return map[string]any{
		"key": written(e.Key), "expires": written(e.Expires.Template()), "onTimeout": string(e.OnTimeout),
		"default": written(e.Default), "result": written(e.Result),
	}
}
