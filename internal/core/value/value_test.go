package value_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/value"
)

func TestEncodeIsCanonical(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{nil, `null`}, {true, `true`}, {int64(-7), `-7`}, {int64(math.MaxInt64), `9223372036854775807`},
		{1.0, `1.0`}, {0.1, `0.1`}, {1e21, `1e+21`}, {1e-7, `1e-07`}, {math.Copysign(0, -1), `-0.0`},
		{"a\"b\\c\n\t\x01é🎉", `"a\"b\\c\n\t\u0001é🎉"`}, {"</script>", `"</script>"`},
		{[]any{int64(1), "x", nil}, `[1,"x",null]`},
		{map[string]any{"b": int64(2), "a": map[string]any{}}, `{"a":{},"b":2}`},
	} {
		got, err := value.Encode(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("%#v: got %s, %v, want %s", c.in, got, err, c.want)
		}
	}
}

func TestM2WhatJSONCannotCarryIsRefused(t *testing.T) {
	for _, v := range []any{math.NaN(), math.Inf(1), "\xff", []any{math.NaN()}, map[string]any{"\xff": true}, struct{}{}} {
		if got, err := value.Encode(v); !errors.Is(err, value.ErrLossy) {
			t.Errorf("%#v: got %s, %v, want ErrLossy", v, got, err)
		}
	}
	for _, text := range []string{`9007199254740993`, `-9007199254740993`, `9223372036854775808`, `1e400`, `123456789012345678901234567890`} {
		if v, err := value.DecodeExact([]byte(text)); !errors.Is(err, value.ErrLossy) {
			t.Errorf("%s: got %v, %v, want ErrLossy", text, v, err)
		}
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]any{
		`"plain"`: "plain", `"\u00e9\n\ud83c\udf89"`: "é\n🎉", `9007199254740992`: int64(1 << 53), `-0`: math.Copysign(0, -1),
		`9007199254740993`: int64(9007199254740993), `1.50`: 1.5, `2e3`: 2000.0, ` [1, {"a" : null}] `: []any{int64(1), map[string]any{"a": nil}},
		`{"a":1,"a":2}`: map[string]any{"a": int64(2)}, `"\ud800"`: "\uFFFD",
	} {
		got, err := value.Decode([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{``, `01`, `1.`, `[1,]`, `{"a"}`, `"a`, `nul`, `1 2`, `'a'`, "\"\x01\"", "\"\xff\"", `+1`, `.5`} {
		if v, err := value.Decode([]byte(text)); err == nil {
			t.Errorf("%q was taken as %v", text, v)
		}
	}
}

// What is decoded and encoded again is the same value, and encoding/json reads what is encoded.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,"x",null,true]}`, `"\ud83c\udf89"`, `-0`, `1e5`, `[[[]]]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := value.Decode([]byte(text))
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is not JSON and was taken as %v", text, v)
		}
		b, err := value.Encode(v)
		if err != nil {
			t.Fatalf("%q: %v cannot be encoded: %v", text, v, err)
		}
		again, err := value.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
