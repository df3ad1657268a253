package resolver_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/core/resolver"
	"sluice/internal/core/resolver/resolvertest"
)

// echo is a tool that gives back its input.
func echo(with map[string]any) (any, error) { return with, nil }

func world() resolvertest.World {
	return resolvertest.World{Tools: map[string]resolvertest.Tool{
		"a.get": echo, "a.post": echo,
		"a.none": func(map[string]any) (any, error) { return nil, nil },
		"a.bad": func(map[string]any) (any, error) {
			return nil, &resolver.Error{Code: "HTTP_422", Message: "no"}
		},
	}}
}

// heldOnce answers the first call of each input with a hold.
func heldOnce(wait time.Duration) resolvertest.Tool {
	seen := map[string]bool{}
	var lock = make(chan struct{}, 1)
	return func(with map[string]any) (any, error) {
		lock <- struct{}{}
		defer func() { <-lock }()
		if key := fmt.Sprint(with); !seen[key] {
			seen[key] = true
			return nil, resolvertest.Hold(wait)
		}
		return with, nil
	}
}

// many does everything there is.
func many(c resolver.Cell, with map[string]any) (any, error) {
	first, err := c.Call("a.get", map[string]any{"x": with["x"]})
	if err != nil {
		return nil, err
	}
	n, err := c.Step("count", func() (any, error) {
		inner, err := c.Call("a.get", map[string]any{"inner": 1})
		if err != nil {
			return nil, err
		}
		if err := c.Sleep(time.Minute); err != nil {
			return nil, err
		}
		return len(inner.(map[string]any)), nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.Sleep(2 * time.Hour); err != nil {
		return nil, err
	}
	ok, err := c.Event(resolver.Event{Key: "k", Notify: &resolver.Notify{Tool: "a.post", With: func(a resolver.Asked) map[string]any {
		return map[string]any{"key": a.Key, "until": a.Expires.Format(time.RFC3339)}
	}}})
	if err != nil {
		return nil, err
	}
	parts := make([]any, 3)
	var branches []func(resolver.Cell) error
	for i := range parts {
		branches = append(branches, func(c resolver.Cell) error {
			if err := c.Sleep(time.Duration(i) * time.Minute); err != nil {
				return err
			}
			v, err := c.Call("a.get", map[string]any{"part": i})
			parts[i] = v
			return err
		})
	}
	if err := c.Parallel(branches...); err != nil {
		return nil, err
	}
	last, err := c.Call("a.get", map[string]any{"last": ok})
	return map[string]any{"first": first, "n": n, "parts": parts, "last": last}, err
}

func TestResolverDoesEverythingAndIsReplayedEverywhere(t *testing.T) {
	w := world()
	w.Answers = map[string]resolvertest.Answer{"k": {Value: "yes", After: time.Hour}}
	got := resolvertest.Everywhere(t, w, many, map[string]any{"x": "r0"})
	want := map[string]any{
		"first": map[string]any{"x": "r0"}, "n": int64(1), "last": map[string]any{"last": "yes"},
		"parts": []any{map[string]any{"part": int64(0)}, map[string]any{"part": int64(1)}, map[string]any{"part": int64(2)}},
	}
	if diff := cmp.Diff(want, got.Value); diff != "" || got.Err != nil {
		t.Error(diff, got.Err)
	}
	if wait := time.Minute + 2*time.Hour + time.Hour + 2*time.Minute; got.Took != wait {
		t.Errorf("it took %v, want %v", got.Took, wait)
	}
	if got.Calls[2] != `a.post {"key":"k","until":"2026-01-08T02:01:00Z"}` || len(got.Calls) != 7 {
		t.Errorf("calls %q", got.Calls)
	}
}

// A resolver that catches a hold and returns something else is still held, and what it does after that is not done (R3).
func TestR3HoldIsSticky(t *testing.T) {
	for name, swallow := range map[string]func(c resolver.Cell, err error) (any, error){
		"a value":       func(resolver.Cell, error) (any, error) { return "fallback", nil },
		"another error": func(resolver.Cell, error) (any, error) { return nil, errors.New("something else") },
		"a panic":       func(resolver.Cell, error) (any, error) { panic("oh") },
		"another call": func(c resolver.Cell, err error) (any, error) {
			v, again := c.Call("a.post", map[string]any{"after": "hold"})
			if !errors.Is(again, err) || v != nil {
				t.Errorf("the call after the hold: %v, %v", v, again)
			}
			return "fallback", nil
		},
		"everything else": func(c resolver.Cell, err error) (any, error) {
			_, e1 := c.Step("s", func() (any, error) { t.Error("the body ran"); return nil, nil })
			_, e2 := c.Event(resolver.Event{Key: "k"})
			e3 := c.Parallel(func(resolver.Cell) error { t.Error("the branch ran"); return nil })
			if e4 := c.Sleep(0); !errors.Is(e1, err) || !errors.Is(e2, err) || !errors.Is(e3, err) || !errors.Is(e4, err) {
				t.Errorf("%v %v %v", e1, e2, e3)
			}
			return "fallback", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			w.Tools["a.get"] = heldOnce(time.Hour)
			got := resolvertest.Run(t, w, func(c resolver.Cell, _ map[string]any) (any, error) {
				v, err := c.Call("a.get", map[string]any{"x": 1})
				if err != nil {
					if !resolver.Waits(err) {
						t.Error(err)
					}
					return swallow(c, err)
				}
				return v, nil
			}, nil)
			if diff := cmp.Diff(map[string]any{"x": int64(1)}, got.Value); diff != "" || got.Err != nil || got.Took != time.Hour || len(got.Calls) != 1 {
				t.Errorf("%+v %s", got, diff)
			}
		})
	}
}

// Within a Parallel and within a Step a hold is as sticky; siblings go on meanwhile.
func TestR3HoldInBranchesAndSteps(t *testing.T) {
	w := world()
	w.Tools["a.held"] = heldOnce(time.Hour)
	var free atomic.Int32
	got := resolvertest.Everywhere(t, w, func(c resolver.Cell, _ map[string]any) (any, error) {
		var held any
		_ = c.Parallel(func(c resolver.Cell) error {
			held, _ = c.Step("swallows", func() (any, error) {
				v, err := c.Call("a.held", nil)
				if err != nil {
					return "swallowed", nil
				}
				return v, nil
			})
			return nil
		}, func(c resolver.Cell) error {
			_, err := c.Call("a.get", map[string]any{"free": free.Add(1) > 0})
			return err
		})
		v, err := c.Call("a.get", map[string]any{"after": held})
		return v, err
	}, nil)
	if diff := cmp.Diff(map[string]any{"after": map[string]any{}}, got.Value); diff != "" || got.Err != nil {
		t.Errorf("%+v %s", got, diff)
	}
}

// What was recorded in one order is done in another: told, and never mixed up.
func TestR12AChangedOrderIsFound(t *testing.T) {
	call := func(c resolver.Cell, tool, x string) error {
		_, err := c.Call(tool, map[string]any{"x": x})
		return err
	}
	for name, second := range map[string]func(c resolver.Cell) error{
		"another tool":    func(c resolver.Cell) error { return errors.Join(call(c, "a.post", "1"), call(c, "a.get", "2")) },
		"another input":   func(c resolver.Cell) error { return call(c, "a.get", "other") },
		"other operation": func(c resolver.Cell) error { return c.Sleep(time.Hour) },
		"a step":          func(c resolver.Cell) error { _, err := c.Step("s", func() (any, error) { return 1, nil }); return err },
		"an event":        func(c resolver.Cell) error { _, err := c.Event(resolver.Event{Key: "k"}); return err },
		"less":            func(c resolver.Cell) error { return call(c, "a.get", "1") },
		"nothing":         func(resolver.Cell) error { return nil },
		"in a branch": func(c resolver.Cell) error {
			return c.Parallel(func(c resolver.Cell) error { return call(c, "a.get", "1") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			run := 0
			got := resolvertest.Run(t, w, func(c resolver.Cell, _ map[string]any) (any, error) {
				if run++; run > 1 {
					_ = second(c) // swallowing it does not help
					return "done", nil
				}
				if err := call(c, "a.get", "1"); err != nil {
					return nil, err
				}
				if err := call(c, "a.get", "2"); err != nil {
					return nil, err
				}
				return nil, c.Sleep(time.Hour)
			}, nil)
			var e *resolver.Error
			if !errors.As(got.Err, &e) || e.Code != resolver.CodeOrder {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A recorded step does not run its body, and takes the positions that its body used, Parallels included.
func TestR12ARecordedStepKeepsThePositionsOfItsBody(t *testing.T) {
	w := world()
	bodies := 0
	got := resolvertest.Everywhere(t, w, func(c resolver.Cell, _ map[string]any) (any, error) {
		n, err := c.Step("body", func() (any, error) {
			for i := range 3 {
				if _, err := c.Call("a.get", map[string]any{"i": i}); err != nil {
					return nil, err
				}
			}
			err := c.Parallel(func(c resolver.Cell) error {
				_, err := c.Call("a.get", map[string]any{"branch": 1})
				return err
			}, func(c resolver.Cell) error {
				_, err := c.Step("deep", func() (any, error) { return c.Call("a.get", map[string]any{"branch": 2}) })
				return err
			})
			bodies++
			return bodies, err
		})
		if err != nil {
			return nil, err
		}
		if err := c.Sleep(time.Hour); err != nil {
			return nil, err
		}
		_, err = c.Call("a.get", map[string]any{"after": true})
		return n != nil, err
	}, nil)
	if got.Value != true || got.Err != nil || len(got.Calls) != 6 {
		t.Errorf("%+v", got)
	}
}

// Parallel siblings never take each other's position, whoever is faster.
func TestR12SiblingsKeepTheirPositions(t *testing.T) {
	w := world()
	w.Tools["a.held"] = heldOnce(time.Hour)
	run := 0
	got := resolvertest.Run(t, w, func(c resolver.Cell, _ map[string]any) (any, error) {
		run++
		out := make([]any, 20)
		var branches []func(resolver.Cell) error
		for i := range out {
			branches = append(branches, func(c resolver.Cell) error {
				time.Sleep(time.Duration((i*7+run*3)%5) * time.Millisecond) // another order in each run
				v, err := c.Call("a.held", map[string]any{"i": i})
				if err != nil {
					return err
				}
				w, err := c.Call("a.get", map[string]any{"again": v})
				out[i] = w
				return err
			})
		}
		return out, c.Parallel(branches...)
	}, nil)
	for i, v := range got.Value.([]any) {
		if diff := cmp.Diff(map[string]any{"again": map[string]any{"i": int64(i)}}, v); diff != "" {
			t.Errorf("branch %d: %s", i, diff)
		}
	}
	if len(got.Calls) != 40 || got.Runs != 2 {
		t.Errorf("%d calls in %d runs", len(got.Calls), got.Runs)
	}
}

func TestFailuresOfResolvers(t *testing.T) {
	deep := func(c resolver.Cell) error {
		return c.Parallel(func(c resolver.Cell) error {
			return c.Parallel(func(c resolver.Cell) error { return c.Parallel(func(resolver.Cell) error { return nil }) })
		})
	}
	for name, tc := range map[string]struct {
		f    resolver.Func
		code string
		says string
	}{
		"an error": {func(resolver.Cell, map[string]any) (any, error) { return nil, errors.New("no luck") }, "RESOLVER", "no luck"},
		"a panic":  {func(resolver.Cell, map[string]any) (any, error) { panic("oh") }, "PANIC", "oh"},
		"a nil map": {func(c resolver.Cell, _ map[string]any) (any, error) {
			m := map[string]map[string]int{}
			m["a"]["x"] = 1
			return m, nil
		}, "PANIC", "nil map"},
		"a panic in a branch": {func(c resolver.Cell, _ map[string]any) (any, error) {
			_ = c.Parallel(func(resolver.Cell) error { panic("oh") }, func(c resolver.Cell) error { _, err := c.Call("a.get", nil); return err })
			return "swallowed", nil
		}, "PANIC", "oh"},
		"an error with a code": {func(resolver.Cell, map[string]any) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", &resolver.Error{Code: "TOO_POOR", Message: "no money"})
		}, "TOO_POOR", "no money"},
		"a call that fails":        {func(c resolver.Cell, _ map[string]any) (any, error) { return c.Call("a.bad", nil) }, "HTTP_422", "no"},
		"a tool that is not there": {func(c resolver.Cell, _ map[string]any) (any, error) { return c.Call("a.nope", nil) }, "UNKNOWN_TOOL", "a.nope"},
		"a step's error": {func(c resolver.Cell, _ map[string]any) (any, error) {
			return c.Step("s", func() (any, error) { return nil, errors.New("body") })
		}, "STEP", "body"},
		"a result without JSON": {func(resolver.Cell, map[string]any) (any, error) { return make(chan int), nil }, "RESOLVER", "no JSON form"},
		"a step's result without JSON": {func(c resolver.Cell, _ map[string]any) (any, error) {
			return c.Step("s", func() (any, error) { return func() {}, nil })
		}, "STEP", ""},
		"an input without JSON": {func(c resolver.Cell, _ map[string]any) (any, error) {
			return c.Call("a.get", map[string]any{"x": make(chan int)})
		}, "BAD_INPUT", ""},
		"nobody answers": {func(c resolver.Cell, _ map[string]any) (any, error) { return c.Event(resolver.Event{Key: "k"}) }, "EVENT_EXPIRED", "k"},
		"a key that is none": {func(c resolver.Cell, _ map[string]any) (any, error) {
			return c.Event(resolver.Event{Key: strings.Repeat("k", 501)})
		}, "BAD_INPUT", "501"},
		"a notification that fails": {func(c resolver.Cell, _ map[string]any) (any, error) {
			return c.Event(resolver.Event{Key: "k", Notify: &resolver.Notify{Tool: "a.bad", With: func(resolver.Asked) map[string]any { return nil }}})
		}, "HTTP_422", "no"},
		"too deep":            {func(c resolver.Cell, _ map[string]any) (any, error) { return nil, deep(c) }, "TOO_MANY_STEPS", "1023"},
		"too deep, swallowed": {func(c resolver.Cell, _ map[string]any) (any, error) { _ = deep(c); return 1, nil }, "TOO_MANY_STEPS", "1023"},
		"too many branches": {func(c resolver.Cell, _ map[string]any) (any, error) {
			return nil, c.Parallel(make([]func(resolver.Cell) error, 1024)...)
		}, "TOO_MANY_STEPS", "1023"},
		"too many operations": {func(c resolver.Cell, _ map[string]any) (any, error) {
			for range 5000 {
				if err := c.Sleep(0); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}, "TOO_MANY_STEPS", "4095"},
	} {
		t.Run(name, func(t *testing.T) {
			got := resolvertest.Run(t, world(), tc.f, nil)
			var e *resolver.Error
			if !errors.As(got.Err, &e) || e.Code != tc.code || !strings.Contains(e.Message, tc.says) {
				t.Errorf("%v, want %s: %s", got.Err, tc.code, tc.says)
			}
		})
	}
}

// A failure is recorded: run again, the resolver meets the same one, and may go on from it.
func TestFailuresAreRecorded(t *testing.T) {
	got := resolvertest.Everywhere(t, world(), func(c resolver.Cell, _ map[string]any) (any, error) {
		var codes []any
		for _, err := range []error{
			func() error { _, err := c.Call("a.bad", nil); return err }(),
			func() error {
				_, err := c.Step("s", func() (any, error) { return nil, errors.New("body") })
				return err
			}(),
			func() error { _, err := c.Event(resolver.Event{Key: "k", Expires: time.Minute}); return err }(),
		} {
			var e *resolver.Error
			if !errors.As(err, &e) {
				return nil, err
			}
			codes = append(codes, e.Code)
		}
		v, err := c.Call("a.none", nil)
		return append(codes, v), err
	}, nil)
	if diff := cmp.Diff([]any{"HTTP_422", "STEP", "EVENT_EXPIRED", nil}, got.Value); diff != "" || got.Took != time.Minute {
		t.Error(diff, got)
	}
}

// An operator's answer may come long after the time; without one the row waits for good, which a test would not outlive.
func TestOpenEvents(t *testing.T) {
	w := world()
	w.Answers = map[string]resolvertest.Answer{"k": {Value: 1, After: 100 * time.Hour}}
	ask := func(open bool) resolver.Func {
		return func(c resolver.Cell, _ map[string]any) (any, error) {
			return c.Event(resolver.Event{Key: "k", Expires: time.Hour, Open: open})
		}
	}
	if got := resolvertest.Run(t, w, ask(true), nil); got.Value != int64(1) || got.Took != 100*time.Hour {
		t.Errorf("%+v", got)
	}
	if got := resolvertest.Run(t, w, ask(false), nil); got.Err == nil || got.Took != time.Hour {
		t.Errorf("%+v", got)
	}
}

func TestInto(t *testing.T) {
	var out struct {
		Name string
		Tags []string
	}
	if err := resolver.Into(map[string]any{"name": "Acme", "tags": []any{"a"}}, &out); err != nil || out.Name != "Acme" || !slices.Equal(out.Tags, []string{"a"}) {
		t.Errorf("%+v, %v", out, err)
	}
	if err := resolver.Into("x", &out); err == nil {
		t.Error("text is no struct")
	}
}
