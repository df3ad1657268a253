package mapspec

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
)

// MaxSpan bounds how long a row may sleep, or wait for an answer.
const MaxSpan = 365 * day

// DefaultExpires is how long an event is waited for where the map does not say.
const DefaultExpires = 7 * day

// Span is a length of time: written out, or computed for each row.
type Span struct {
	written *Template
}

// Eval computes the length, at least zero and at most MaxSpan. Text is a duration such as 90m or 30d, a number counts
// seconds. The error is an *ExprError.
func (s *Span) Eval(env *Env) (time.Duration, error) {
	v, err := s.written.Eval(env)
	if err != nil {
		return 0, err
	}
	d, reason := spanOf(v)
	if reason != "" {
		return 0, &ExprError{Source: s.written.bare(), Reason: reason}
	}
	return d, nil
}

// spanOf reads a value as a length of time, or says why it is none.
func spanOf(v any) (time.Duration, string) {
	const most = float64(MaxSpan) / float64(time.Second)
	var seconds float64
	switch v := v.(type) {
	case string:
		d, err := parseDuration(v)
		switch {
		case err != nil:
			return 0, fmt.Sprintf("%q: %v", v, err)
		case d > MaxSpan:
			return 0, tooLong
		}
		return d, ""
	case int64:
		seconds = float64(v)
	case float64:
		seconds = v
	default:
		return 0, "it must give a duration such as 90m, or a number of seconds, not " + typeName(v)
	}
	switch {
	case math.IsNaN(seconds) || seconds < 0:
		return 0, "it must not be negative"
	case seconds > most:
		return 0, tooLong
	}
	return time.Duration(seconds * float64(time.Second)), ""
}

var tooLong = "it is too long: at most " + DurationText(MaxSpan)

// Template is what the length is computed from.
func (s *Span) Template() *Template {
	if s == nil {
		return nil
	}
	return s.written
}

// bare is the template as written, without the braces of a lone expression.
func (t *Template) bare() string {
	if e, ok := t.root.(*expr); ok {
		return e.source
	}
	return t.Source()
}

// span reads a length of time that may be an expression.
func (p *mapParser) span(n *node, what string, s *scope) *Span {
	if text, ok := n.scalar.(string); !ok || !strings.Contains(text, "${") {
		p.duration(n, what, MaxSpan)
		return &Span{p.template(n, noScope, nil)}
	}
	t := p.template(n, s, p.check)
	if root, ok := t.root.(*expr); ok && !root.mayBe(types.StringKind, types.IntKind, types.DoubleKind, types.UintKind) {
		p.add(n.at, "give text such as 90m, or a number of seconds", "%s must be a duration, but the expression gives %s", what, root.result)
	}
	return &Span{t}
}
