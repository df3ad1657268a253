package gateway

import (
	"context"
	"time"

	"sluice/internal/core/call"
	"sluice/internal/core/pacer"
)

// maxVoid is how often in a row a whole block of permits may go void before the rest of a batch is refused.
const maxVoid = 3

// run takes permits for the group in blocks and dispatches its jobs. It returns after the last answer. What has to
// wait for a window or a hold is refused at once. What has to wait for one of this process's own calls to end is kept
// for a moment: a freed slot is used again sooner than a round trip to the runner takes.
func (e *Executor) run(ctx context.Context, g *group, deliver func(int, call.Answer)) error {
	workers := newWorkers()
	defer e.watchForStalls()()
	defer workers.wait()
	todo := append(g.retries, g.firsts...)
	retries := len(g.retries)
	for void := 0; len(todo) > 0; {
		w := g.want
		w.N, w.Retries = len(todo), max(min(retries, len(todo)), 0)
		for _, j := range todo {
			j.trace.ask()
		}
		grant, err := e.Pacer.Acquire(ctx, g.scope, w)
		if err != nil {
			return err
		}
		n := len(grant.Permits)
		if grant.Reason != pacer.Concurrency {
			refuse(g.scope, todo[n:], grant, deliver)
			todo = todo[:n]
		}
		b := &block{Executor: e, scope: g.scope, todo: todo, permits: grant.Permits, workers: workers, deliver: deliver}
		if err := b.spend(ctx); err != nil {
			return err
		}
		used := len(todo) - len(b.todo)
		retries, todo = retries-used, b.todo
		if used > 0 {
			void = 0
		} else if n > 0 {
			void++
		}
		waits := grant.Reason == pacer.Concurrency && used == n
		if waits && !e.Pacer.AwaitSlot(ctx, g.scope) || void == maxVoid {
			refuse(g.scope, todo, grant, deliver)
			return ctx.Err()
		}
	}
	return nil
}

// refuse answers jobs that get no permit soon. Nothing was dispatched and no attempt is charged (T4). Where permits
// went void, the moments of the grant have passed, and asking again makes sense at once.
func refuse(scope string, jobs []*job, g pacer.Grant, deliver func(int, call.Answer)) {
	a := call.Answer{Outcome: call.Refused, Scope: scope, Until: g.Next, NextFree: g.AskAt, Why: Why(g.Reason, g.HeldBy)}
	if g.Reason == pacer.Held {
		a.HoldUntil = g.Hold
	}
	for _, j := range jobs {
		deliver(j.index, a)
	}
}

// Why is what holds a scope up, in the words of its calls.
func Why(reason pacer.Reason, by pacer.Cause) (why call.Why) {
	switch reason {
	case pacer.Window:
		why.Reason = call.RateLimit
	case pacer.Concurrency:
		why.Reason = call.Concurrency
	case pacer.Held:
		if why.Reason = call.Cooldown; by.Asked {
			why.Reason = call.RetryAfter
		}
		if by.Status != 0 {
			why.Code = codeOf(by.Status)
		}
	}
	return why
}

// block is the jobs for one block of permits.
type block struct {
	*Executor
	scope   string
	todo    []*job
	permits []pacer.Permit
	workers *workers
	deliver func(int, call.Answer)
}

// spend dispatches a job at the moment of each permit. Permits that are void by then are skipped, and the jobs move
// up, so that a pause of the process costs permits and not places in the queue. What is left in todo has none.
func (b *block) spend(ctx context.Context) error {
	for _, j := range b.todo[:min(len(b.permits), len(b.todo))] {
		j.trace.note(granted)
	}
	for i, p := range b.permits {
		if err := sleepUntil(ctx, p.At); err != nil {
			b.Pacer.Done(b.scope, len(b.permits)-i)
			return err
		}
		b.todo[0].trace.note(slept)
		if !b.Pacer.Check(ctx, p) {
			b.todo[0].trace.void()
			b.Pacer.Done(b.scope, 1)
			continue
		}
		j := b.todo[0]
		j.req.Leaves = func() { b.Pacer.Late(p, time.Since(p.At)) }
		j.trace.note(checked)
		b.todo = b.todo[1:]
		if len(b.todo) == 0 {
			b.Pacer.Done(b.scope, len(b.permits)-i-1)
			b.dispatch(ctx, j)
			return nil
		}
		b.workers.do(func() { b.dispatch(ctx, j) })
	}
	return nil
}

// dispatch sends one request, tells the pacer what the answer says about the scope, and delivers.
func (e *Executor) dispatch(ctx context.Context, scope string, j *job) call.Answer {
	j.req.Turn = e.Bodies.turn(ctx)
	defer j.req.Turn.End() // when the body has been made use of
	j.trace.note(dispatched)
	inFlight, landed := e.flying.depart(scope)
	sent := time.Now()
	res, err := e.Sender.Send(ctx, j.req)
	now := time.Now()
	landed()
	j.trace.note(answeredIn)
	j.cred.scrub(res)
	answer, seen := e.reconsider(ctx, j, look(now, j, res, err), sent).settle(j)
	answer.Scope = scope
	if seen != nil {
		p := j.tool.Provider
		seen.Dispatched, seen.Latency = sent, now.Sub(sent)
		seen.Adaptive, seen.InFlight, seen.Start = p.Adaptive, inFlight, p.Concurrency
		// If the refusal cannot be shared, this owner keeps to it all the same and shares it with its next write.
		until, _ := e.Pacer.Report(ctx, scope, *seen)
		if seen.Limited {
			answer.Until = until
		}
	}
	return answer
}

// reconsider looks at the secret again where the provider did not take it: it may have been rotated, and then the call
// is made again with the new one (T6).
func (e *Executor) reconsider(ctx context.Context, j *job, seen sighting, sent time.Time) sighting {
	if seen.situation != unauthorized && seen.situation != forbidden {
		if seen.status != 0 {
			j.cred.accepted.Store(true)
		}
		return seen
	}
	again, changed := e.credentials.rejected(ctx, j.tool.Provider, j.cred, seen.status, sent)
	if !changed {
		return seen
	}
	seen.situation, seen.until = again, time.Now()
	seen.message = j.tool.Provider.Name + " did not take the credential, which has changed since"
	if again == unread {
		seen.until = seen.until.Add(unreadWait)
		seen.message = j.tool.Provider.Name + " did not take the credential, and it cannot be read again now"
	}
	return seen
}

func (b *block) dispatch(ctx context.Context, j *job) {
	if b.credentials.stale(j.tool.Provider, j.cred) { // another call was faster to learn that
		b.Pacer.Done(b.scope, 1)
		b.deliver(j.index, call.Answer{Outcome: call.Refused, Scope: b.scope, Until: time.Now(), Why: call.Why{Reason: call.Credential}})
		return
	}
	answer := b.Executor.dispatch(ctx, b.scope, j)
	b.Pacer.Done(b.scope, 1)
	b.conclude(j.trace, answer)
	free, reason, by := b.Pacer.NextFree(b.scope)
	if answer.NextFree = free; answer.Why == (call.Why{}) {
		answer.Why = Why(reason, by)
	}
	b.deliver(j.index, answer)
}

// sleepUntil waits for a moment, which is never further away than the pacer's horizon.
func sleepUntil(ctx context.Context, at time.Time) error {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
