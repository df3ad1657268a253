package mapspec

import "slices"

// maxBudget bounds budget.calls, and budget.cost in millionths.
const maxBudget = 1e15

// Budget is what a run may spend before it pauses. Zero is no bound.
type Budget struct {
	Calls      int64 // dispatches
	CostMicros int64 // millionths of the money unit
}

func (p *mapParser) budget(n *node) {
	if n == nil || n.kind == kindNull || !p.mapping(n, "budget", []string{"calls", "cost"}) {
		return
	}
	b := &p.m.Budget
	if v := n.get("calls"); v != nil {
		b.Calls = p.whole(v, "calls", 1, maxBudget)
	}
	if v := n.get("cost"); v != nil {
		if b.CostMicros = p.money(v); b.CostMicros == 0 && v.scalar != nil && !p.reported(v.at) {
			p.add(v.at, "leave it out for no bound", "cost must be more than nothing")
		}
	}
	if n.get("calls") == nil && n.get("cost") == nil {
		p.add(n.at, "add `calls: 10000` or `cost: 50.00`", "budget bounds nothing")
	}
}

// reported reports whether a mistake at this place has been told already.
func (r *reporter) reported(at pos) bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Line == at.line && p.Column == at.col })
}
