package mapspec

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"sluice/internal/core/value"
)

// Request is what a call sends, complete but for the credential and the fence.
type Request struct {
	Method string
	URL    string // its scheme and host are always the provider's
	Header http.Header
	Body   []byte // nil: none
}

// Request builds the request of a call from its checked input. Values are escaped into the place where they stand:
// whatever a row holds, it cannot change the host, the number of path segments, or add a parameter or a header.
func (t *Tool) Request(input map[string]any) (*Request, error) {
	if t.Batch != nil {
		return t.RequestOf([]map[string]any{input})
	}
	return t.compose(&Env{Input: t.complete(input)}, t.Body)
}

// RequestOf builds the one request of many calls, of a tool with a batch.
func (t *Tool) RequestOf(inputs []map[string]any) (*Request, error) {
	return t.compose(&Env{Inputs: t.inputs(inputs)}, t.Batch.Body)
}

func (t *Tool) compose(env *Env, content *Template) (*Request, error) {
	address, err := t.address(env)
	if err != nil {
		return nil, fmt.Errorf("tool %s: path: %w", t.Name, err)
	}
	query, err := t.query(env)
	if err != nil {
		return nil, fmt.Errorf("tool %s: query: %w", t.Name, err)
	}
	if query != "" {
		address += "?" + query
	}
	header, err := t.header(env)
	if err != nil {
		return nil, fmt.Errorf("tool %s: headers: %w", t.Name, err)
	}
	out := &Request{Method: t.Method, URL: address, Header: header}
	if content == nil {
		return out, nil
	}
	body, err := content.Eval(env)
	if err != nil {
		return nil, fmt.Errorf("tool %s: body: %w", t.Name, err)
	}
	if out.Body, err = value.Encode(body); err != nil {
		return nil, fmt.Errorf("tool %s: body: %w", t.Name, err)
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return out, nil
}

// address is the URL without its query.
func (t *Tool) address(env *Env) (string, error) {
	path, err := t.path.eval(env)
	if err != nil {
		return "", err
	}
	base := t.Provider.URL
	address := base.Scheme + "://" + base.Host + base.EscapedPath() + path.(string)
	// The path was escaped piece by piece; this is the last lock before a request goes out with a credential.
	u, err := url.Parse(address)
	if err != nil || u.Host != base.Host || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the address would not be one of %s", base.Host)
	}
	return address, nil
}

func (t *Tool) query(env *Env) (string, error) {
	values := make(url.Values, len(t.Query))
	for _, name := range sortedKeys(t.Query) {
		v, err := t.Query[name].Eval(env)
		if err != nil {
			return "", err
		}
		list, many := v.([]any)
		if !many {
			list = []any{v}
		}
		for _, v := range list {
			if v == nil {
				continue
			}
			text, err := simpleText(v)
			if err != nil {
				return "", fmt.Errorf("`%s`: %w", name, err)
			}
			values.Add(name, text)
		}
	}
	return values.Encode(), nil
}

func (t *Tool) header(env *Env) (http.Header, error) {
	header := make(http.Header, len(t.Headers)+1)
	for _, name := range sortedKeys(t.Headers) {
		v, err := t.Headers[name].Eval(env)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		text, err := simpleText(v)
		if err != nil {
			return nil, fmt.Errorf("`%s`: %w", name, err)
		}
		if !validHeaderValue(text) {
			return nil, fmt.Errorf("`%s`: a line break or control character cannot be sent in a header", name)
		}
		header.Set(name, strings.Trim(text, " \t"))
	}
	return header, nil
}

func simpleText(v any) (string, error) {
	switch v.(type) {
	case []any, map[string]any:
		return "", fmt.Errorf("%s cannot be sent here; make it text first", typeName(v))
	}
	return Text(v)
}
