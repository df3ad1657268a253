package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/internal/answers"
	"sluice/internal/client"
	"sluice/internal/core/run"
	"sluice/internal/local"
)

type answerCmd struct {
	Key   string `arg:"" help:"The event's key."`
	Value string `arg:"" help:"The answer: JSON, or, if it is not JSON, text."`
	ID    string `name:"run" placeholder:"RUN" help:"Only rows of this run; default: all that wait for the key."`
	JSON  bool   `name:"json" help:"Print JSON."`
	placeFlags
}

// Help implements kong.HelpProvider.
func (*answerCmd) Help() string {
	return `Examples:
  sluice rows monday --status waiting                    what is waited for
  sluice answer approve-ann@acme.example true
  sluice answer approve-ann@acme.example '{"ok": true, "by": "Eve"}' --run monday

The first answer counts; another one changes nothing. The process that works on the run takes it within a second; if
none does, "sluice resume" goes on with it.`
}

// Run implements the command.
func (c *answerCmd) Run(a *app) error {
	ctx, cancel := a.context()
	defer cancel()
	v, isText, err := answers.Parse(c.Value)
	if err != nil {
		return usage(err)
	}
	kind := "JSON"
	if isText {
		kind = "text"
	}
	return c.work(ctx, a,
		func(d deployment) error { return c.answerAt(ctx, a, d, v, kind) },
		func(st *local.State) error { return c.answerHere(ctx, a, st, v, kind) })
}

func (c *answerCmd) answerHere(ctx context.Context, a *app, st *local.State, v json.RawMessage, kind string) error {
	got, err := run.Answer(ctx, st.Store, c.Key, v, run.Whose{Run: c.ID})
	switch {
	case errors.Is(err, run.ErrBadAnswer), errors.Is(err, run.ErrNobodyWaits), errors.Is(err, run.ErrTooLate):
		return usage(err)
	case err != nil:
		return fmt.Errorf("%w; it is not known whether the answer was taken: answer again", err)
	case c.JSON:
		return a.printJSON(got)
	}
	_, err = fmt.Fprintln(a.stdout, clean(answeredText(got, kind, time.Now())))
	if err == nil {
		err = c.tellIdle(a, st, got)
	}
	return err
}

// answerAt answers rows of a deployment.
func (c *answerCmd) answerAt(ctx context.Context, a *app, d deployment, v json.RawMessage, kind string) error {
	told, err := d.Answer(ctx, answers.Request{Key: c.Key, Value: v, Run: c.ID})
	got := &run.Answered{Key: told.Key, Taken: told.Taken, Already: told.Already, At: told.At, Value: told.Value}
	switch {
	case err != nil && client.Passing(err):
		return fmt.Errorf("%w; it is not known whether the answer was taken: answer again", err)
	case err != nil:
		return remoteUsage(err)
	case c.JSON:
		return a.printJSON(got)
	}
	_, err = fmt.Fprintln(a.stdout, clean(answeredText(got, kind, time.Now())))
	return err
}

func answeredText(got *run.Answered, kind string, now time.Time) string {
	switch {
	case got.Taken == 0:
		return fmt.Sprintf("%s was answered before, at %s, with %s; that stands", got.Key, clock(got.At, now), shorten(string(got.Value), detailWidth))
	case got.Already > 0:
		return fmt.Sprintf("%s: %s with this answer (%s); %s had one, which stands", got.Key, plural(int64(got.Taken), "row goes on", "rows go on"), kind,
			plural(int64(got.Already), "row", "rows"))
	}
	return fmt.Sprintf("%s: %s with this answer (%s)", got.Key, plural(int64(got.Taken), "row goes on", "rows go on"), kind)
}

// tellIdle names the runs that nobody works on.
func (c *answerCmd) tellIdle(a *app, st *local.State, got *run.Answered) error {
	told := map[string]bool{}
	for _, shard := range got.Wake {
		if told[shard.Run] || st.AtWork(shard.Run) {
			continue
		}
		told[shard.Run] = true
		if _, err := fmt.Fprintf(a.stdout, "nobody works on run %s now; to go on: %s\n", clean(shard.Run), work{stateDir: c.dir()}.resumeOf(shard.Run)); err != nil {
			return err
		}
	}
	return nil
}
