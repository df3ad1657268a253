package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// River's unit is the job. Both mappings use one transaction per call and nothing else, which is its advice for results
// that must not be lost; the default completer reports a job as done before that is on disk.

// riverChain makes each call a job. One transaction stores the result, completes the job and inserts the row's next job.
func riverChain() Contender {
	return Contender{
		Name:    "River, a job per call",
		Version: moduleVersion("github.com/riverqueue/river"),
		Note:    "call = job; one transaction completes it with its output and inserts the row's next job",
		Run: func(ctx context.Context, dir string, load Load) (time.Duration, error) {
			ends := make(chan error, load.Rows)
			workers := river.NewWorkers()
			return runRiver(ctx, dir, load, ends, workers, func(db *sql.DB) ([]river.InsertManyParams, string) {
				river.AddWorker(workers, &chainWorker{db: db, load: load, ends: ends})
				return firstJobs(load, func(row int) river.JobArgs { return chainArgs{Row: row} }),
					`SELECT json_extract(metadata, '$.output') FROM river_job WHERE state = 'completed'`
			})
		},
	}
}

type chainArgs struct {
	Row  int `json:"row"`
	Call int `json:"call"`
}

func (chainArgs) Kind() string { return "call" }

type chainWorker struct {
	river.WorkerDefaults[chainArgs]
	db   *sql.DB
	load Load
	ends chan<- error
}

func (w *chainWorker) Work(ctx context.Context, job *river.Job[chainArgs]) error {
	if err := river.RecordOutput(ctx, callProvider(w.load, job.Args.Row, job.Args.Call)); err != nil {
		return err
	}
	last := job.Args.Call == w.load.Calls-1
	err := inTx(ctx, w.db, func(tx *sql.Tx) error {
		if _, err := river.JobCompleteTx[*riversqlite.Driver](ctx, tx, job); err != nil || last {
			return err
		}
		next := chainArgs{Row: job.Args.Row, Call: job.Args.Call + 1}
		_, err := river.ClientFromContext[*sql.Tx](ctx).InsertTx(ctx, tx, next, nil)
		return err
	})
	if err != nil || last {
		report(w.ends, err)
	}
	return err
}

// riverSteps makes each row a job and each call one of its resumable steps. One transaction stores the result in a table
// of the application, which is where River leaves results of steps, and marks the step as done.
func riverSteps() Contender {
	return Contender{
		Name:    "River, a step per call",
		Version: moduleVersion("github.com/riverqueue/river"),
		Note:    "row = job, call = resumable step; one transaction inserts the result in a table and marks the step done",
		Run: func(ctx context.Context, dir string, load Load) (time.Duration, error) {
			ends := make(chan error, load.Rows)
			workers := river.NewWorkers()
			return runRiver(ctx, dir, load, ends, workers, func(db *sql.DB) ([]river.InsertManyParams, string) {
				river.AddWorker(workers, &stepsWorker{db: db, load: load, ends: ends})
				return firstJobs(load, func(row int) river.JobArgs { return stepsArgs{Row: row} }), selectResults
			})
		},
	}
}

type stepsArgs struct {
	Row int `json:"row"`
}

func (stepsArgs) Kind() string { return "row" }

type stepsWorker struct {
	river.WorkerDefaults[stepsArgs]
	db   *sql.DB
	load Load
	ends chan<- error
}

func (w *stepsWorker) Work(ctx context.Context, job *river.Job[stepsArgs]) error {
	var failed error
	for call := range w.load.Calls {
		river.ResumableStep(ctx, strconv.Itoa(call), nil, func(ctx context.Context) error {
			failed = w.step(ctx, job, call)
			return failed
		})
		if failed != nil {
			break
		}
	}
	report(w.ends, failed)
	return failed
}

// report tells of a row's end. River would retry a failed job, but a failure spoils the figures: the first ends the run,
// and what comes after it has no reader.
func report(ends chan<- error, err error) {
	select {
	case ends <- err:
	default:
	}
}

func (w *stepsWorker) step(ctx context.Context, job *river.Job[stepsArgs], call int) error {
	result := callProvider(w.load, job.Args.Row, call)
	return inTx(ctx, w.db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, insertResult, job.Args.Row*w.load.Calls+call, result); err != nil {
			return err
		}
		if call == w.load.Calls-1 { // the job's end takes the place of its last step's mark
			_, err := river.JobCompleteTx[*riversqlite.Driver](ctx, tx, job)
			return err
		}
		_, err := river.ResumableSetStepTx[*riversqlite.Driver](ctx, tx, job)
		return err
	})
}

func firstJobs(load Load, args func(row int) river.JobArgs) []river.InsertManyParams {
	jobs := make([]river.InsertManyParams, load.Rows)
	for row := range jobs {
		jobs[row].Args = args(row)
	}
	return jobs
}

func inTx(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// runRiver inserts all first jobs at once, River's advice for many, and lets Parallel workers take them.
func runRiver(ctx context.Context, dir string, load Load, ends <-chan error, workers *river.Workers,
	prepare func(*sql.DB) (jobs []river.InsertManyParams, stored string),
) (took time.Duration, err error) {
	db, err := openSQLite(dir, 1) // its documentation: one connection, because SQLite has one writer
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	jobs, stored := prepare(db)
	driver := riversqlite.New(db)
	quiet := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return 0, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, err
	}
	if _, err := db.ExecContext(ctx, createResults); err != nil {
		return 0, err
	}
	engine, err := river.NewClient(driver, &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: load.Parallel}},
		Workers: workers, Logger: quiet,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin, PollOnly: riverPollOnly,
	})
	if err != nil {
		return 0, err
	}
	if err := engine.Start(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	_, err = engine.InsertMany(ctx, jobs)
	for n := 0; n < load.Rows && err == nil; n++ {
		err = oneEnd(ctx, ends)
	}
	took = time.Since(start)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := errors.Join(err, engine.Stop(stopCtx)); err != nil {
		return 0, err
	}
	if err := mustSyncFully(ctx, db); err != nil {
		return 0, err
	}
	return took, checkStored(ctx, db, load, stored, unquote)
}

// riverPollOnly: polling each millisecond finds a chained job sooner than the SQLite listener, which polls each 50 ms.
const riverPollOnly = true

// unquote takes a value as SQLite's JSON functions give it: a bare string.
func unquote(stored string) (string, error) {
	if len(stored) == 0 || stored[0] != '"' {
		return stored, nil
	}
	var value string
	err := json.Unmarshal([]byte(stored), &value)
	return value, err
}
