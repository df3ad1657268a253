package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/internal/core/value"
)

func withExcerpt(message string, res *Response, j *job) string {
	if text := excerpt(res.Body, j.cred); text != "" {
		return message + ": " + text
	}
	return message
}

// decodeBody returns the body as expressions see it: null if empty, decoded if it is JSON, text otherwise. What is
// declared as JSON must be JSON; what is declared as something else may be, because many servers get it wrong.
func decodeBody(res *Response) (any, error) {
	body := bytes.TrimSpace(res.Body)
	if len(body) == 0 {
		return nil, nil
	}
	declared := declaresJSON(res.Header.Get("Content-Type"))
	if declared || body[0] == '{' || body[0] == '[' {
		v, err := value.Decode(body)
		if err == nil || declared {
			return v, err
		}
	}
	return string(res.Body), nil
}

func declaresJSON(contentType string) bool {
	if contentType == "application/json" { // the common case, without the parser
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"))
}

func decodeInput(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	v, err := value.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the call's input is not JSON: %w", err)
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	}
	return nil, errors.New("the call's input is not a map")
}

// headers is what expressions see: lower-case names, first values.
func headers(h http.Header) map[string]any {
	m := make(map[string]any, len(h))
	for name, values := range h {
		if len(values) > 0 && utf8.ValidString(values[0]) {
			m[strings.ToLower(name)] = values[0]
		}
	}
	return m
}

// maxExcerpt is how many bytes of a provider's own words an error message may quote.
const maxExcerpt = 200

// excerpt is the beginning of a body, fit for a terminal: printable, on one line, without the credential if the
// provider echoes it.
func excerpt(body []byte, cred *credential) string {
	const scan = 4 << 10
	text := string(body[:min(len(body), scan)])
	if cred != nil {
		text = cred.redact(text)
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxExcerpt {
		return text
	}
	cut := maxExcerpt - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
