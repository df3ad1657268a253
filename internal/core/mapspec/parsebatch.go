package mapspec

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common/types"
)

// MaxBatch bounds batch.size: the calls in one request.
const MaxBatch = 1000

// Batch makes one request of many calls of a tool. Every one of them is settled by itself.
type Batch struct {
	Size     int       // calls in one request, at most
	Body     *Template // what is sent, over `inputs`; nil: no body
	Each     *Template // the answer's parts, one for each call, in order; each is the `body` that the tool's expressions see
	TooLarge *Template // answers, besides a 413, that ask for fewer calls at once; nil: none
}

var batchKeys = []string{"size", "body", "each", "tooLarge"}

// batch reads how calls of the tool travel together. It comes before the request, whose expressions see `inputs` then.
func (p *toolParser) batch(t *Tool, n *node) {
	if n == nil || n.kind == kindNull {
		return
	}
	if !p.mapping(n, "batch", batchKeys) {
		return
	}
	t.Batch = &Batch{Size: 1}
	if v := n.get("size"); v == nil {
		p.add(n.at, "add `size: 50`", "batch needs a size: how many calls one request may carry")
	} else {
		t.Batch.Size = int(p.whole(v, "size", 1, MaxBatch))
	}
	if v := n.get("body"); v != nil && v.kind != kindNull {
		t.Batch.Body = p.template(v, inputsScope, nil)
	}
	if v := n.get("each"); v == nil {
		p.add(n.at, "add `each: ${body.items}`", "batch needs `each`: the list of the answer's parts, one for each call, in order")
	} else {
		t.Batch.Each = p.list(v, partsScope)
	}
	if v := n.get("tooLarge"); v != nil {
		t.Batch.TooLarge = p.condition(v, partsVerdictScope, nil)
	}
}

// list compiles a template that must give a list.
func (p *toolParser) list(n *node, s *scope) *Template {
	t := p.template(n, s, nil)
	remedy := "write an expression such as ${body.items}"
	switch root := t.root.(type) {
	case listPart:
	case *expr:
		if !root.mayBe(types.ListKind) {
			p.add(n.at, remedy, "each must give a list, but the expression gives %s", root.result)
		}
	case text:
		if len(root) > 0 { // else the mistake in its expression has been told
			p.add(n.at, remedy, "each must give a list, not text")
		}
	default:
		if !n.hasExpr() {
			p.add(n.at, remedy, "each must give a list, not %s", describe(n))
		}
	}
	return t
}

// checkBatch reports what a request for many calls cannot have.
func (p *toolParser) checkBatch(t *Tool, n *node) {
	if t.Batch == nil {
		return
	}
	at := n.get("batch").at
	if v := n.get("body"); v != nil && v.kind != kindNull {
		p.add(v.at, "move it into batch.body, over `inputs`", "a tool with `batch` sends batch.body, also for one call")
	}
	if slices.Contains(bodylessMethod, t.Method) && t.Batch.Body != nil {
		p.add(at, "use method: POST, or put `inputs` into `query`", "a %s request has no body", t.Method)
	}
	asks := t.Batch.Body.Reads("inputs") || t.Path.Reads("inputs")
	for _, q := range t.Query {
		asks = asks || q.Reads("inputs")
	}
	if !asks {
		p.add(at, "write body: {ids: \"${inputs.map(i, i.id)}\"}", "nothing in the request says what is asked: batch.body must use `inputs`")
	}
}

// requestScope is what the expressions of a tool's request see.
func (t *Tool) requestScope() *scope {
	if t.Batch != nil {
		return inputsScope
	}
	return inputScope
}

// Parts divides an answer to a batch: one part for each input, in order. An error means that no part can be told to
// belong to an input.
func (t *Tool) Parts(status int, header map[string]any, body any, inputs []map[string]any) ([]any, error) {
	v, err := t.Batch.Each.Eval(t.partsEnv(status, header, body, inputs))
	if err != nil {
		return nil, fmt.Errorf("tool %s: batch.each: %w", t.Name, err)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("tool %s: batch.each must give a list, not %s", t.Name, typeName(v))
	}
	if len(list) != len(inputs) {
		return nil, fmt.Errorf("tool %s: batch.each gave %d entries for %d calls: it must give one for each call, in order, and null where there is nothing",
			t.Name, len(list), len(inputs))
	}
	return list, nil
}

// TooLarge reports whether an answer asks for fewer calls at once.
func (t *Tool) TooLarge(status int, header map[string]any, body any, inputs []map[string]any) bool {
	if t.Batch.TooLarge == nil {
		return false
	}
	yes, err := t.Batch.TooLarge.EvalBool(t.partsEnv(status, header, body, inputs))
	return err == nil && yes
}

func (t *Tool) partsEnv(status int, header map[string]any, body any, inputs []map[string]any) *Env {
	return &Env{Status: int64(status), Headers: header, Body: body, Inputs: t.inputs(inputs)}
}

// inputs are the inputs of a batch as expressions see them.
func (t *Tool) inputs(inputs []map[string]any) []any {
	list := make([]any, len(inputs))
	for i, in := range inputs {
		list[i] = t.complete(in)
	}
	return list
}
