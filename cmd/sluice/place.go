package main

import (
	"cmp"
	"context"
	"errors"

	"sluice/internal/api"
	"sluice/internal/client"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
)

// The environment's names for a deployment.
const (
	apiURL = "SLUICE_API_URL"
	apiKey = "SLUICE_API_KEY"
)

// placeFlags say where runs are: in a state folder here, or in a deployment.
type placeFlags struct {
	State string `placeholder:"DIR" help:"Folder that keeps runs and results; default ${state}."`
	API   string `name:"api" placeholder:"URL" help:"Work on the deployment at this URL instead; its key is taken from SLUICE_API_KEY. Default: SLUICE_API_URL, unless --state is given."`
}

func (p *placeFlags) dir() string { return cmp.Or(p.State, local.DefaultDir) }

// remote is the deployment that the command is for; nil: it is for a state folder.
func (p *placeFlags) remote(a *app) (*client.Client, error) {
	url := p.API
	switch {
	case url != "" && p.State != "":
		return nil, usagef("--state is a folder on this machine, --api is a deployment; give one of them")
	case url == "" && p.State == "":
		url = a.getenv(apiURL)
	}
	if url == "" {
		return nil, nil
	}
	c, err := client.New(url, a.getenv(apiKey), userAgent())
	return c, usage(err)
}

// work does what the command is for where it is to be done: at a deployment, or in the folder that keeps runs.
func (p *placeFlags) work(ctx context.Context, a *app, there func(deployment) error, here func(*local.State) error) (err error) {
	remote, err := p.remote(a)
	if err != nil {
		return err
	}
	if remote != nil {
		return there(deployment{remote})
	}
	st, err := a.open(ctx, p.dir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return here(st)
}

// placeArg is what names the deployment on a command line; nothing, if the environment does.
func (p *placeFlags) placeArg() string {
	if p.API == "" {
		return ""
	}
	return " --api " + quoteArg(p.API)
}

// folder is the place of a state folder.
type folder struct{ *local.State }

func (f folder) entries(ctx context.Context) ([]entry, error) {
	var entries []entry
	for r, err := range sheet.List(ctx, f.Store) {
		if err != nil {
			return nil, err
		}
		e, err := f.look(ctx, r)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (f folder) entry(ctx context.Context, id string) (entry, error) {
	r, err := sheet.Load(ctx, f.Store, id)
	if errors.Is(err, sheet.ErrNoRun) {
		return entry{}, usagef("there is no run %q in %s; `sluice runs` lists them", id, f.Dir)
	}
	if err != nil {
		return entry{}, err
	}
	e, err := f.look(ctx, r)
	if err != nil {
		return entry{}, err
	}
	e.Bill = billOf(r)
	if !r.Status.Ended() {
		var left run.Backlog
		left, err = run.BacklogOf(ctx, f.Store, r)
		e.Holds, e.Waits, e.Working, e.Interrupted = left.Holds, left.Waiting, left.Working, left.Interrupted
	}
	return e, err
}

// look is how a run stands, with what has been asked of it and is not done yet.
func (f folder) look(ctx context.Context, r *sheet.Run) (entry, error) {
	e := newEntry(f.State, r)
	asked, err := sheet.LoadControl(ctx, f.Store, r.ID)
	if err == nil {
		e.asked = haltingWord(asked.Wanted(r))
	}
	return e, err
}

// deployment is the place behind an API.
type deployment struct{ *client.Client }

func (d deployment) entries(ctx context.Context) ([]entry, error) {
	var entries []entry
	for v, err := range d.Runs(ctx) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, d.entryOf(v))
	}
	return entries, nil
}

func (d deployment) entry(ctx context.Context, id string) (entry, error) {
	v, err := d.Run(ctx, id)
	return d.entryOf(v), d.named(err, id)
}

// named says of a run that is not there which one it is, and where.
func (d deployment) named(err error, id string) error {
	if client.Code(err) == "NOT_FOUND" {
		return usagef("there is no run %q at %s; `sluice runs` lists them", id, d.URL())
	}
	return err
}

// entryOf is a deployment's run in the terms of a listing. Somebody is at work there until a run has ended.
func (d deployment) entryOf(v api.View) entry {
	r := recordOf(v)
	e := entry{report: newReport(r, "", d.finished(v.Finish)), Name: v.Name, AtWork: !v.Status.Ended(), CreatedAt: instant(v.CreatedAt), WakeAt: instant(v.WakeAt),
		Error: v.Error, Pause: v.Pause, Holds: v.Holds, Bill: v.Bill, created: v.CreatedAt, mapFile: v.MapName, input: v.Input, asked: haltingWord(v.Asked)}
	e.Working, e.Interrupted = v.Working, v.Interrupted
	if v.Waits != nil {
		e.Waits = sheet.Waiting{Answers: v.Waits.Answers, Asleep: v.Waits.Asleep}
	}
	e.Warnings = v.Warnings
	return e
}

// recordOf is what a deployment tells of a run, as a record.
func recordOf(v api.View) *sheet.Run {
	r := &sheet.Run{ID: v.Run, Name: v.Name, Status: v.Status, Counts: sheet.Counts{Completed: v.Completed, Failed: v.Failed}, Stats: v.Stats, Error: v.Error,
		Pause: v.Pause, StartedAt: v.StartedAt, FinishedAt: v.FinishedAt, WakeAt: v.WakeAt, WholeAt: v.WholeAt}
	r.Sealed.Rows, r.Sealed.Duplicates, r.Sealed.Total = v.Rows, v.Duplicates, v.Rows+v.Duplicates
	return r
}

// haltingWord says for people what was asked of a run and is not done yet.
func haltingWord(asked string) string {
	return map[string]string{"cancel": "cancelling", "pause": "pausing", "extend": "extending"}[asked]
}
