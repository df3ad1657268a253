package resolver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"sluice/internal/core/value"
)

// cell is a Cell: a sequence of operations.
type cell struct {
	x     *execution
	in    sequence
	next  int
	stuck error // what stopped the sequence: every later operation returns it
}

func (c *cell) Context() context.Context { return c.x.host.Context() }
func (c *cell) Row() map[string]any      { return c.x.host.Row() }
func (c *cell) Cells() map[string]any    { return c.x.host.Cells() }
func (c *cell) Index() int64             { return c.x.host.Index() }

// take gives the next operation its position, and returns what is recorded there.
func (c *cell) take(op string, positions int) (int, Record, error) {
	if c.stuck != nil {
		return 0, Record{}, c.stuck
	}
	if c.next+positions > MaxOperations {
		return 0, Record{}, c.stop(c.x.fail(CodeLimit, "more than %d operations in one sequence", MaxOperations))
	}
	at := c.in.at(c.next)
	c.x.mu.Lock()
	for i := range positions {
		c.x.seen[c.in.at(c.next+i)] = true
	}
	c.x.mu.Unlock()
	c.next += positions
	// An operation of two positions is known by either.
	for i := range positions {
		rec, known, err := c.x.host.Known(c.in.at(c.next - positions + i))
		if err != nil {
			return 0, Record{}, c.stop(c.x.stopped(err))
		}
		if known && rec.Op != op {
			return 0, Record{}, c.stop(c.x.fail(CodeOrder, "run again, the resolver does %s where it did %s before: "+
				"the order and the inputs of its operations must not depend on anything that a step does not record", op, rec.Op))
		}
		if known && i == positions-1 {
			return at, rec, nil
		}
	}
	return at, Record{}, nil
}

func (c *cell) stop(err error) error {
	c.stuck = err
	return err
}

// ended is what an operation that has ended returns to the author.
func ended(rec Record) (any, error) {
	if rec.Error != nil {
		return nil, rec.Error
	}
	if rec.Value == nil {
		return nil, nil
	}
	v, err := value.Decode(rec.Value)
	if err != nil {
		return nil, &Error{Code: CodeResolver, Message: "a recorded value cannot be read: " + err.Error()}
	}
	return v, nil
}

// Call implements Cell.
func (c *cell) Call(tool string, with map[string]any) (any, error) {
	if with == nil {
		with = map[string]any{}
	}
	input, err := value.Encode(with)
	if err != nil {
		input = json.RawMessage(err.Error()) // the call fails with it
	}
	sum := sha256.Sum256(input)
	op := "call " + tool + " " + hex.EncodeToString(sum[:6])
	at, rec, err := c.take(op, 1)
	switch {
	case err != nil:
		return nil, err
	case rec.Done:
		return ended(rec)
	}
	if rec, err = c.x.host.Call(at, op, tool, with); err != nil {
		return nil, c.stop(c.x.stopped(err))
	}
	return ended(rec)
}

// Step implements Cell.
func (c *cell) Step(name string, body func() (any, error)) (any, error) {
	at, rec, err := c.take("step "+name, 1)
	if err != nil {
		return nil, err
	}
	first := c.next
	if rec.Done {
		c.x.mu.Lock()
		c.x.skipped = append(c.x.skipped, skip{c.in, first, first + rec.Used})
		c.x.mu.Unlock()
		c.next += rec.Used
		return ended(rec)
	}
	v, err := body()
	if c.stuck != nil { // the body waits, whatever it returns
		return nil, c.stuck
	}
	rec = Record{Op: "step " + name, Done: true, Used: c.next - first}
	if err == nil {
		rec.Value, err = value.Encode(v)
	}
	if err != nil {
		rec.Value, rec.Error = nil, asError(CodeStep, err)
	}
	if err := c.x.host.Save(at, rec); err != nil {
		return nil, c.stop(c.x.stopped(err))
	}
	return ended(rec)
}

// Sleep implements Cell.
func (c *cell) Sleep(d time.Duration) error {
	at, _, err := c.take(OpSleep, 1)
	if err != nil {
		return err
	}
	if err := c.x.host.Sleep(at, OpSleep, max(d, 0)); err != nil {
		return c.stop(c.x.stopped(err))
	}
	return nil
}

// Event implements Cell.
func (c *cell) Event(e Event) (any, error) {
	op := OpEvent(e.Key)
	at, rec, err := c.take(op, 2)
	switch {
	case err != nil:
		return nil, err
	case rec.Done:
		return ended(rec)
	}
	if rec, err = c.x.host.Event(at, op, e); err != nil {
		return nil, c.stop(c.x.stopped(err))
	}
	return ended(rec)
}

// Parallel implements Cell.
func (c *cell) Parallel(branches ...func(Cell) error) error {
	if c.stuck != nil {
		return c.stuck
	}
	if len(branches) > MaxBranches || c.in.depth == MaxDepth || c.next == MaxOperations {
		return c.stop(c.x.fail(CodeLimit, "a Parallel may have %d branches, and stand in one other at most", MaxBranches))
	}
	operation := c.next
	c.next++
	cells, errs := make([]*cell, len(branches)), make([]error, len(branches))
	for i := range branches {
		cells[i] = &cell{x: c.x, in: c.in.branch(operation, i)}
	}
	c.x.host.Fork(len(branches), func(i int) {
		_, errs[i] = c.x.guard(func() (any, error) { return nil, branches[i](cells[i]) })
	})
	var first error
	for i := range branches {
		if err := cells[i].stuck; err != nil && c.stuck == nil {
			c.stuck = err // the row waits, whatever the branch has returned
		}
		if first == nil {
			first = errs[i]
		}
	}
	if c.stuck != nil {
		return c.stuck
	}
	return first
}
