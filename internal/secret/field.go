package secret

import (
	"encoding/json"
	"errors"
	"fmt"
)

// pick takes a field of a secret that is a JSON object. Its errors must not repeat what the secret is.
func pick(value, field string) (string, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(value), &fields) != nil {
		return "", errors.New("it is not a JSON object, so it has no fields; leave the #field out")
	}
	raw, ok := fields[field]
	if !ok {
		return "", fmt.Errorf("it has no field %q", field)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String(), nil
	}
	return "", fmt.Errorf("its field %q is neither text nor a number", field)
}
