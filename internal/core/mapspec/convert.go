package mapspec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

var errTooLarge = fmt.Errorf("its value is larger than %d MB", MaxValueBytes>>20)

// convert turns CEL's value into one of the model. Bytes become base64 text, times and durations CEL's text form;
// what has no exact form is an error.
func convert(v ref.Val, budget *int, depth int) (any, error) {
	if *budget -= 16; *budget < 0 || depth > 2*maxDepth {
		return nil, errTooLarge
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d does not fit 64 bits with a sign", v)
		}
		return int64(v), nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("its value is %v, which is not a number that can be kept", float64(v))
		}
		return float64(v), nil
	case types.String:
		return convertText(string(v), budget)
	case types.Bytes:
		return convertText(base64.StdEncoding.EncodeToString(v), budget)
	case types.Timestamp, types.Duration:
		text := v.ConvertToType(types.StringType)
		if s, ok := text.(types.String); ok {
			return string(s), nil
		}
	case *types.Err:
		return nil, errors.New(v.String())
	case traits.Mapper:
		return convertMap(v, budget, depth)
	case traits.Lister:
		return convertList(v, budget, depth)
	}
	return nil, fmt.Errorf("a value of type %s cannot be kept", v.Type().TypeName())
}

func convertText(s string, budget *int) (any, error) {
	if *budget -= len(s); *budget < 0 {
		return nil, errTooLarge
	}
	if !utf8.ValidString(s) {
		return nil, errors.New("its text is not valid UTF-8")
	}
	return s, nil
}

func convertList(list traits.Lister, budget *int, depth int) (any, error) {
	out := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		v, err := convert(it.Next(), budget, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func convertMap(m traits.Mapper, budget *int, depth int) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map key is of type %s; it must be text", key.Type().TypeName())
		}
		if _, err := convertText(string(name), budget); err != nil {
			return nil, err
		}
		v, err := convert(m.Get(key), budget, depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = v
	}
	return out, nil
}

// typeName names a value's type as the language does.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("%T", v)
}
