package resolver

import (
	"encoding/json"
	"fmt"

	"sluice/internal/core/value"
)

// Into turns a value that an operation has returned into a type of the author's, by its JSON.
func Into(v, out any) error {
	raw, err := value.Encode(v)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return fmt.Errorf("a value does not fit %T: %w", out, err)
	}
	return nil
}
