package resolvertest

import (
	"errors"
	"slices"
	"time"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/resolver"
	"sluice/internal/core/value"
)

// Call implements resolver.Host.
func (h *host) Call(position int, op, tool string, with map[string]any) (resolver.Record, error) {
	rec, err := h.call(op, tool, with)
	if err != nil {
		return rec, err
	}
	return rec, h.Save(position, rec)
}

// call asks the tool. Several may be asked at once.
func (h *host) call(op, tool string, with map[string]any) (resolver.Record, error) {
	rec := resolver.Record{Op: op, Done: true}
	do := h.Tools[tool]
	if do == nil {
		rec.Error = &resolver.Error{Code: "UNKNOWN_TOOL", Message: "the test has no tool " + tool}
		return rec, nil
	}
	input, bad := raw(with)
	if bad != nil {
		rec.Error = &resolver.Error{Code: "BAD_INPUT", Message: bad.Message}
		return rec, nil
	}
	decoded, err := value.Decode(input)
	if err != nil {
		return rec, err
	}
	v, err := do(decoded.(map[string]any))
	var held *hold
	var known *resolver.Error
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.As(err, &held) {
		return rec, &resolver.Suspension{Reason: wait{h.now.Add(held.wait), tool}}
	}
	h.calls = append(h.calls, tool+" "+string(input))
	switch {
	case errors.As(err, &known):
		rec.Error = known
	case err != nil:
		rec.Error = &resolver.Error{Code: "FAILED", Message: err.Error()}
	default:
		rec.Value, rec.Error = raw(v)
	}
	return rec, nil
}

// Sleep implements resolver.Host.
func (h *host) Sleep(position int, op string, d time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.ends[position]; !ok {
		h.ends[position] = h.now.Add(d)
		if err := h.save(position, resolver.Record{Op: op}); err != nil {
			return err
		}
	}
	if end := h.ends[position]; h.now.Before(end) {
		return &resolver.Suspension{Reason: wait{end, "the end of a sleep"}}
	}
	return nil
}

// Event implements resolver.Host.
func (h *host) Event(position int, op string, e resolver.Event) (resolver.Record, error) {
	at := position + h.stride(position) // of the answer
	if err := mapspec.CheckKey(e.Key); err != nil {
		rec := resolver.Record{Op: op, Done: true, Error: &resolver.Error{Code: "BAD_INPUT", Message: err.Error()}}
		return rec, h.Save(at, rec)
	}
	if err := h.ask(at, op, e); err != nil {
		return resolver.Record{}, err
	}
	if rec, err := h.tell(position, op, e, h.ends[at]); err != nil || rec.Error != nil {
		return rec, err
	}
	return h.await(at, op, e)
}

// stride is the distance of the position that follows one in its sequence.
func (h *host) stride(position int) int { return resolver.Next(position) - position }

func (h *host) ask(at int, op string, e resolver.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.ends[at]; ok {
		return nil
	}
	expires := e.Expires
	if expires == 0 {
		expires = mapspec.DefaultExpires
	}
	h.ends[at], h.asked[at] = h.now.Add(expires), h.now
	return h.save(at, resolver.Record{Op: op})
}

// tell makes the notification, once.
func (h *host) tell(position int, op string, e resolver.Event, expires time.Time) (resolver.Record, error) {
	if e.Notify == nil {
		return resolver.Record{}, nil
	}
	if rec, ok, _ := h.Known(position); ok {
		return rec, nil
	}
	asked := resolver.Asked{Key: e.Key, URL: "https://sluice.example/answers/test"}
	if !e.Open {
		asked.Expires = expires
	}
	return h.Call(position, op, e.Notify.Tool, e.Notify.With(asked))
}

func (h *host) await(at int, op string, e resolver.Event) (resolver.Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rec := resolver.Record{Op: op, Done: true}
	answer, given := h.Answers[e.Key]
	when, end := h.asked[at].Add(answer.After), h.ends[at]
	inTime := given && (e.Open || when.Before(end))
	switch {
	case inTime && !h.now.Before(when):
		rec.Value, rec.Error = raw(answer.Value)
	case inTime:
		return rec, &resolver.Suspension{Reason: wait{when, "the answer to " + e.Key}}
	case e.Open:
		return rec, &resolver.Suspension{Reason: wait{time.Time{}, "the answer to " + e.Key}}
	case h.now.Before(end):
		return rec, &resolver.Suspension{Reason: wait{end, "the answer to " + e.Key}}
	default:
		rec.Error = &resolver.Error{Code: resolver.CodeExpired, Message: "nobody answered " + e.Key}
	}
	return rec, h.save(at, rec)
}

func sorted(calls []string) []string { return slices.Sorted(slices.Values(calls)) }
