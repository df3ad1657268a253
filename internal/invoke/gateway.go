package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/core/blob"
	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/table"
)

// MaxBatch bounds the attempts of one invocation: their answers come back together, so a slow one delays the others.
const MaxBatch = 64

// How long a call waits before it is sent again where the function was not started for want of capacity, or failed
// before it had sent anything. Nothing is charged for that (T4).
const (
	throttledWait = time.Second
	passingWait   = 2 * time.Second
)

// Gateway is a call.Gateway over invocations of toolexec, for one run, or for tools of no run.
type Gateway struct {
	Invoker   Invoker
	Run       string
	Tools     *Tools             // in the place of those of a run
	Catalogue *mapspec.Catalogue // says what may be repeated
	Blobs     blob.Store
	Batch     int // 0: MaxBatch

	mu     sync.Mutex
	used   table.Usage
	bodies call.BodyUse
	billed call.Billed
	plain  atomic.Bool // the function is an older one, which cannot validate permits
}

var (
	_ call.BilledGateway = (*Gateway)(nil)
	_ call.BodyMeter     = (*Gateway)(nil)
)

// New returns the gateway of a run; tools may be nil where it has none.
func New(invoker Invoker, run string, tools *mapspec.Catalogue, blobs blob.Store) *Gateway {
	if tools == nil {
		tools = &mapspec.Catalogue{}
	}
	return &Gateway{Invoker: invoker, Run: run, Catalogue: tools, Blobs: blobs}
}

// Used is what the invocations that have answered asked of the store.
func (g *Gateway) Used() table.Usage {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

// BodyUse implements call.BodyMeter: of all functions that have answered.
func (g *Gateway) BodyUse() call.BodyUse {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bodies
}

// Billed implements call.BilledGateway: the time that functions tell of, and of one that failed, how long it was waited for.
func (g *Gateway) Billed() call.Billed {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.billed
}

func (g *Gateway) bill(b call.Billed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.billed = g.billed.Plus(b)
}

// Execute implements call.Gateway. Batches are executed side by side.
func (g *Gateway) Execute(ctx context.Context, batch []call.Attempt, deliver func(i int, a call.Answer)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	parts, err := g.split(batch, deliver)
	if err != nil {
		return err
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for n, p := range parts {
		wg.Go(func() { errs[n] = g.execute(ctx, p, deliver) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// part is the attempts of one invocation, with their places in the batch.
type part struct {
	attempts []call.Attempt
	index    []int
	payload  []byte // the request, but for its end
}

// envelope bounds what a request has besides its attempts.
const envelope = 1024

// split divides a batch into parts that fit the payload, retries first: they have been waiting longer (Q6).
func (g *Gateway) split(batch []call.Attempt, deliver func(int, call.Answer)) ([]*part, error) {
	most := g.Batch
	if most <= 0 {
		most = MaxBatch
	}
	head, err := g.head()
	if err != nil {
		return nil, err
	}
	var parts []*part
	for _, retries := range []bool{true, false} {
		for i, a := range batch {
			if a.Retry != retries {
				continue
			}
			b, err := json.Marshal(a)
			if err != nil {
				return nil, fmt.Errorf("attempt of %s: %w", a.Tool, err)
			}
			if len(b) > MaxPayload-envelope {
				deliver(i, tooLarge(a, len(b)))
				continue
			}
			n := len(parts)
			if n == 0 || len(parts[n-1].index) == most || len(parts[n-1].payload)+len(b) > MaxPayload-envelope {
				parts, n = append(parts, &part{payload: bytes.Clone(head)}), n+1
			}
			p := parts[n-1]
			if len(p.index) > 0 {
				p.payload = append(p.payload, ',')
			}
			p.attempts, p.index, p.payload = append(p.attempts, a), append(p.index, i), append(p.payload, b...)
		}
	}
	return parts, nil
}

// head is a Request up to its attempts.
func (g *Gateway) head() ([]byte, error) {
	head, err := json.Marshal(Request{Run: g.Run, Tools: g.Tools, Attempts: []call.Attempt{}})
	return bytes.TrimSuffix(head, []byte("]}")), err
}

func tooLarge(a call.Attempt, size int) call.Answer {
	return call.Answer{Outcome: call.Failed, Split: len(a.Inputs) > 1, Error: &call.Error{Code: "BAD_INPUT",
		Message: fmt.Sprintf("the call's input has %d bytes; in the cloud at most %d can be sent: make `with` smaller", size, MaxPayload-envelope)}}
}

func (g *Gateway) execute(ctx context.Context, p *part, deliver func(int, call.Answer)) error {
	began := time.Now()
	result, err := g.invoke(ctx, p)
	if err != nil {
		return g.failed(p, err, deliver)
	}
	if result.Failed {
		g.bill(call.Billed{Millis: time.Since(began).Milliseconds()})
		return g.functionFailed(p, result.Payload, deliver)
	}
	answers, err := g.answers(ctx, result.Payload)
	if err == nil && len(answers) != len(p.index) {
		err = fmt.Errorf("%d answers for %d attempts", len(answers), len(p.index))
	}
	if err != nil { // the calls were made, and what came of them is lost
		g.lost(p, "the answer of toolexec cannot be read: "+err.Error(), deliver)
		return nil
	}
	for n, i := range p.index {
		deliver(i, answers[n])
	}
	return nil
}

// invoke asks for permits that are validated. An older function refuses that before it dispatches anything; the same
// attempts are then sent once more by the plain path, which is remembered (Q8).
func (g *Gateway) invoke(ctx context.Context, p *part) (Result, error) {
	body := p.payload[:len(p.payload):len(p.payload)]
	plainly := func() (Result, error) { return g.Invoker.Invoke(ctx, append(body, "]}"...)) }
	if g.plain.Load() {
		return plainly()
	}
	result, err := g.Invoker.Invoke(ctx, fmt.Appendf(body, `],"permits":%d}`, PermitsChecked))
	if err != nil || !result.Failed || reported(result.Payload).ErrorType != badRequest {
		return result, err
	}
	result, err = plainly()
	if err == nil && !(result.Failed && reported(result.Payload).ErrorType == badRequest) { // it was the permits
		g.plain.Store(true)
	}
	return result, err
}

// answers reads a response, from the blob store if it was too large for the payload.
func (g *Gateway) answers(ctx context.Context, payload []byte) ([]call.Answer, error) {
	var r Response
	if err := json.Unmarshal(payload, &r); err != nil {
		return nil, err
	}
	call.Bodies(ctx).Add(r.Bodies)
	g.mu.Lock()
	g.used, g.bodies, g.billed = g.used.Add(r.Usage), g.bodies.Plus(r.Bodies), g.billed.Plus(r.Billed)
	g.mu.Unlock()
	if r.Object == "" {
		return r.Answers, nil
	}
	// What was paid for is fetched even if the caller has been cancelled meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
	defer cancel()
	object, err := g.Blobs.Get(ctx, r.Object)
	if err != nil {
		return nil, err
	}
	err = json.NewDecoder(object).Decode(&r.Answers)
	if err = errors.Join(err, object.Close()); err != nil {
		return nil, err
	}
	_ = g.Blobs.Delete(ctx, r.Object) // what stays behind is found by the bucket's lifecycle rule
	return r.Answers, nil
}

const fetchTime = 30 * time.Second
