package mapspec

// Template is a compiled YAML value with expressions. (to be filled)
type Template struct{}

// Eval computes the template's value.
func (t *Template) Eval(env *Env) (any, error) { return nil, nil }
