package mapspec

import "sluice/internal/core/value"

// FinishStep is something that is done once for the run, when every row has ended. Exactly one of Call and Publish is set.
type FinishStep struct {
	Call    *Step     // what it keeps of the result is only shown
	OnError *Template // of a call: what is kept if it fails; nil: its failure is a warning in the run's record
	Publish *Publish
}

// Publish puts text, bytes or JSON under a name.
type Publish struct {
	Name    string // a plain file name, unlike every other one of the map
	Public  bool   // for everybody who knows the address
	Content *Template

	publicAt pos
}

// CheckPrivate finds the steps that publish for everybody, for where that is not allowed. The error is Problems, placed in file,
// the map's.
func (m *Map) CheckPrivate(file string) error {
	r := &reporter{file: file}
	for _, s := range m.Finish {
		if s.Publish != nil && s.Publish.Public {
			r.add(s.Publish.publicAt, "write `public: false`; the setting sluice:allowPublic of a deployment, and `sluice serve --allow-public`, allow it",
				"`%s` would be for everybody, which is not allowed here", s.Publish.Name)
		}
	}
	return r.err()
}

// Bytes computes the content: text as UTF-8, bytes as they are, any other value as JSON with a line end. The error is an
// *ExprError.
func (p *Publish) Bytes(env *Env) ([]byte, error) {
	v, err := p.content(env)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	b, err := value.Encode(v)
	if err != nil {
		return nil, &ExprError{Source: p.Content.Source(), Reason: err.Error()}
	}
	return append(b, '\n'), nil
}

func (p *Publish) content(env *Env) (any, error) {
	if root, ok := p.Content.root.(*expr); ok {
		return root.binary(env)
	}
	return p.Content.Eval(env)
}
