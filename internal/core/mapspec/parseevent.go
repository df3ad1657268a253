package mapspec

import "time"

var (
	eventKeys  = []string{"key", "expires", "notify", "onTimeout"}
	notifyKeys = []string{"call", "with"}
	answerKeys = []string{"url", "key", "expires"}
)

// event reads an `event` column. Its notification, if it has one, becomes the column's only step.
func (p *mapParser) event(col *Column, n *node) {
	col.Event = &Event{OnTimeout: TimeoutFail, Expires: p.defaultExpires()}
	if result := n.get("result"); result != nil {
		col.Event.Result = p.template(result, eventScope, p.check)
	}
	e := n.get("event")
	if !p.mapping(e, "an event", eventKeys) {
		return
	}
	if key := e.get("key"); key == nil {
		p.add(e.at, "add `key:`, the name under which the answer comes, such as \"approve-${row.email}\"", "an event needs a key")
	} else {
		col.Event.Key = p.eventKey(key)
	}
	if expires := e.get("expires"); expires != nil {
		col.Event.Expires = p.span(expires, "expires", columnScope)
	}
	if notify := e.get("notify"); notify != nil {
		p.notify(col, notify)
	}
	if on := e.get("onTimeout"); on != nil {
		p.onTimeout(col.Event, on)
	}
}

func (p *mapParser) defaultExpires() *Span {
	text := DurationText(DefaultExpires)
	return &Span{&Template{root: constant{text}, meaning: text}}
}

func (p *mapParser) eventKey(n *node) *Template {
	t := p.template(n, columnScope, p.check)
	switch fixed, isFixed := t.Constant(); {
	case n.kind != kindString:
		p.add(n.at, "write text, such as \"approve-${row.email}\"", "an event's key must be text, not %s", describe(n))
	case isFixed:
		if key, ok := fixed.(string); ok && CheckKey(key) != nil {
			p.add(n.at, "name what is asked, such as \"approve-${row.email}\"", "an event's key: %v", CheckKey(key))
		}
	}
	return t
}

// notify reads the call that tells somebody that an answer is waited for.
func (p *mapParser) notify(col *Column, n *node) {
	if !p.mapping(n, "notify", notifyKeys) {
		return
	}
	if n.get("call") == nil {
		p.add(n.at, "add `call:`", "notify needs a call")
		return
	}
	col.Steps = []Step{p.step(n, notifyScope, stepScope)}
}

func (p *mapParser) onTimeout(e *Event, n *node) {
	if n.kind != kindMap {
		const remedy = "write fail, park, or {value: null}"
		switch n.scalar {
		case string(TimeoutFail), string(TimeoutPark):
			e.OnTimeout = OnTimeout(n.scalar.(string))
		default:
			what := describe(n)
			if text, ok := n.scalar.(string); ok {
				what = "`" + text + "`"
			}
			p.add(n.at, remedy, "onTimeout cannot be %s", what)
		}
		return
	}
	if !p.mapping(n, "onTimeout", []string{"value"}) {
		return
	}
	v := n.get("value")
	if v == nil {
		p.add(n.at, "write {value: null}", "onTimeout needs a value")
		return
	}
	e.OnTimeout, e.Default = TimeoutValue, p.template(v, columnScope, p.check)
}

// sleep reads a `sleep` column.
func (p *mapParser) sleep(col *Column, n *node) {
	col.Sleep = p.span(n.get("sleep"), "sleep", columnScope)
}

// Answer is what a notification's expressions see of the event.
func Answer(key, url string, expires time.Time) map[string]any {
	a := map[string]any{"key": key, "url": nil, "expires": nil}
	if url != "" {
		a["url"] = url
	}
	if !expires.IsZero() {
		a["expires"] = expires.UTC().Format(time.RFC3339)
	}
	return a
}
