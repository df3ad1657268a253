package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sluice/internal/core/call"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
)

// Config is what an Executor works with.
type Config struct {
	Catalogue *mapspec.Catalogue
	Pacer     *pacer.Pacer
	Sender    Sender
	Secrets   Secrets
	Bodies    *Bodies     // of this process; nil: the Executor has some of its own
	Trace     func(Trace) // is told of each retry that was dispatched (R14), from any goroutine; nil: nobody is
}

// Executor executes attempts in this process. It is the call.Gateway of a laptop, and the inside of the toolexec
// function. It never waits longer than the pacer's horizon for a permit: what cannot be dispatched by then is
// refused, with the time to ask again.
type Executor struct {
	Config
	credentials *credentials
	flying      flying
}

var (
	_ call.Gateway   = (*Executor)(nil)
	_ call.BodyMeter = (*Executor)(nil)
)

// New returns an Executor.
func New(c Config) *Executor {
	if c.Bodies == nil {
		c.Bodies = NewBodies(0)
	}
	return &Executor{Config: c, credentials: &credentials{sender: c.Sender, secrets: c.Secrets, bodies: c.Bodies}}
}

// BodyUse implements call.BodyMeter.
func (e *Executor) BodyUse() call.BodyUse { return e.Bodies.Use() }

// Close gives back what the Executor holds of scopes' concurrency. A function that is about to be frozen calls it
// too; the Executor stays usable.
func (e *Executor) Close(ctx context.Context) error { return e.Pacer.Release(ctx) }

// job is one attempt under way.
type job struct {
	index int
	call.Attempt
	tool   *mapspec.Tool
	inputs []map[string]any // of a batch, in order; otherwise one
	req    *Request
	cred   *credential
	trace  *tracing
}

// repeatable reports whether the call may be sent again after it may have arrived. A fence protects only if the
// attempt carries it.
func (j *job) repeatable() bool {
	return j.tool != nil && (j.tool.Idempotent || j.tool.Fence != "" && j.Fence != "")
}

// group is the jobs of one rate scope: retries first, otherwise in order.
type group struct {
	scope   string
	want    pacer.Want
	retries []*job
	firsts  []*job
}

// Execute implements call.Gateway.
func (e *Executor) Execute(ctx context.Context, batch []call.Attempt, deliver func(i int, a call.Answer)) error {
	groups, err := e.prepare(ctx, batch, deliver)
	if err != nil {
		return err
	}
	if len(groups) == 1 {
		return e.run(ctx, groups[0], deliver)
	}
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { errs[i] = e.run(ctx, g, deliver) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// prepare builds all requests with their credentials, so that nothing is left to do between permit and dispatch.
// What can be answered without a dispatch is answered.
func (e *Executor) prepare(ctx context.Context, batch []call.Attempt, deliver func(int, call.Answer)) ([]*group, error) {
	var groups []*group
	for i, a := range batch {
		j := &job{index: i, Attempt: a}
		if answer := e.build(ctx, j); answer != nil {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			deliver(i, *answer)
			continue
		}
		e.follow(j)
		groups = add(groups, j)
	}
	return groups, nil
}

func add(groups []*group, j *job) []*group {
	var g *group
	for _, have := range groups {
		if have.scope == j.cred.scope {
			g = have
			break
		}
	}
	if g == nil {
		g = &group{scope: j.cred.scope, want: want(j.tool.Provider)}
		groups = append(groups, g)
	}
	g.want.Longest = max(g.want.Longest, j.tool.Timeout)
	if j.Retry {
		g.retries = append(g.retries, j)
	} else {
		g.firsts = append(g.firsts, j)
	}
	return groups
}

func want(p *mapspec.Provider) pacer.Want {
	w := pacer.Want{Concurrency: p.Concurrency, Adaptive: p.Adaptive, Rules: make([]pacer.Rule, len(p.Limits))}
	for i, l := range p.Limits {
		w.Rules[i] = pacer.Rule{Rate: l.Rate, Per: l.Per, Burst: l.Burst}
	}
	return w
}

// build completes j, or says why it cannot be dispatched.
func (e *Executor) build(ctx context.Context, j *job) *call.Answer {
	tool, ok := e.Catalogue.Tools[j.Tool]
	if !ok {
		return noTool.conclude(j, fmt.Sprintf("there is no tool %q in the catalogue", j.Tool))
	}
	j.tool = tool
	var err error
	if j.inputs, err = decodeInputs(tool, j.Attempt); err != nil {
		return j.apart(badInput.conclude(j, err.Error()))
	}
	req, err := j.request()
	if err != nil {
		return j.apart(badInput.conclude(j, err.Error()))
	}
	j.req = &Request{
		Method: req.Method, URL: req.URL, Header: req.Header, Body: req.Body,
		Timeout: tool.Timeout, MaxBody: tool.MaxBody,
		Egress: Egress{Host: tool.Provider.URL.Host, AllowPrivate: tool.Provider.AllowPrivate},
	}
	if tool.Fence != "" && j.Fence != "" {
		setHeader(j.req, tool.Fence, j.Fence)
	}
	cred, fault := e.credentials.get(ctx, tool.Provider)
	if fault != nil {
		return fault.situation.conclude(j, fault.message)
	}
	j.cred = cred
	cred.apply(j.req, tool.Provider.Auth)
	return nil
}
