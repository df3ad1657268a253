package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"github.com/cschleiden/go-workflows/backend"
	"github.com/cschleiden/go-workflows/backend/history"
	"github.com/cschleiden/go-workflows/backend/monoprocess"
	"github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/registry"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
)

// goWorkflows runs a row as a workflow and a call as an activity, on the backend wrapper that its own benchmark uses for
// SQLite: it wakes the pollers of the same process instead of leaving them to their interval.
func goWorkflows() Contender {
	return Contender{
		Name:    "go-workflows",
		Version: moduleVersion("github.com/cschleiden/go-workflows"),
		Note:    "row = workflow, call = activity; sqlite backend in its monoprocess wrapper",
		Run:     runGoWorkflows,
	}
}

func runGoWorkflows(ctx context.Context, dir string, load Load) (took time.Duration, err error) {
	// The backend adds its own WAL and busy timeout; FULL is said here so as not to rest on the driver's default.
	inner := sqlite.NewSqliteBackend(filepath.Join(dir, "bench.db")+"?_pragma=synchronous(FULL)",
		sqlite.WithBackendOptions(backend.WithLogger(slog.New(slog.DiscardHandler))))
	defer func() { err = errors.Join(err, inner.Close()) }()
	back := monoprocess.NewMonoprocessBackend(inner)

	workCtx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, load.Rows)
	w, err := startGoWorkflows(workCtx, back, load, ended)
	if err != nil {
		return 0, err
	}
	took, err = driveGoWorkflows(ctx, back, load, ended)
	stop()
	if err := errors.Join(err, w.WaitForCompletion()); err != nil {
		return 0, err
	}
	return took, checkGoWorkflows(ctx, poolOf(inner), load)
}

func startGoWorkflows(ctx context.Context, back backend.Backend, load Load, ended chan<- error) (*worker.Worker, error) {
	options := worker.DefaultOptions
	options.WorkflowPollers, options.ActivityPollers = goWorkflowsPollers, goWorkflowsPollers
	options.WorkflowPollingInterval, options.ActivityPollingInterval = time.Millisecond, time.Millisecond
	options.WorkflowExecutorCacheSize = 4 * load.Parallel
	w := worker.New(back, &options)
	call := func(_ context.Context, row, call int) (string, error) { return callProvider(load, row, call), nil }
	calls := func(ctx workflow.Context, row int) error {
		for n := range load.Calls {
			if _, err := workflow.ExecuteActivity[string](ctx, workflow.DefaultActivityOptions, call, row, n).Get(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	perRow := func(ctx workflow.Context, row int) error {
		err := calls(ctx, row)
		if !workflow.Replaying(ctx) {
			ended <- err // one more row may start
		}
		return err
	}
	if err := errors.Join(w.RegisterActivity(call), w.RegisterWorkflow(perRow, registry.WithName("row"))); err != nil {
		return nil, err
	}
	return w, w.Start(ctx)
}

// goWorkflowsPollers is go-workflows' own default; 1, 4 and 16 did no better here: its backend has one connection.
const goWorkflowsPollers = 2

// driveGoWorkflows keeps Parallel rows going. It learns of a row's end from the workflow itself, because the client's wait
// polls the database per row, up to a second apart, which would be charged to the engine.
func driveGoWorkflows(ctx context.Context, back backend.Backend, load Load, ended <-chan error) (time.Duration, error) {
	c := client.New(back)
	start := time.Now()
	running := 0
	for row := range load.Rows {
		if running == load.Parallel {
			if err := oneEnd(ctx, ended); err != nil {
				return 0, err
			}
			running--
		}
		_, err := c.CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: "row-" + strconv.Itoa(row)}, "row", row)
		if err != nil {
			return 0, err
		}
		running++
	}
	for ; running > 0; running-- {
		if err := oneEnd(ctx, ended); err != nil {
			return 0, err
		}
	}
	for { // the last rows' ends are being committed
		stats, err := back.GetStats(ctx)
		if err != nil {
			return 0, err
		}
		if stats.ActiveWorkflowInstances == 0 {
			return time.Since(start), nil
		}
		time.Sleep(time.Millisecond)
	}
}

func oneEnd(ctx context.Context, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poolOf reads the backend's pool, which is not exported, so that its one connection can be asked for its pragmas.
func poolOf(inner any) *sql.DB {
	field := reflect.ValueOf(inner).Elem().FieldByName("db")
	return *(**sql.DB)(unsafe.Pointer(field.UnsafeAddr()))
}

func checkGoWorkflows(ctx context.Context, db *sql.DB, load Load) error {
	if err := mustSyncFully(ctx, db); err != nil {
		return err
	}
	query := fmt.Sprintf("SELECT a.data FROM history h JOIN attributes a ON a.id = h.id AND a.instance_id = h.instance_id "+
		"AND a.execution_id = h.execution_id WHERE h.event_type = %d", history.EventType_ActivityCompleted)
	return checkStored(ctx, db, load, query, func(stored string) (string, error) {
		var completed history.ActivityCompletedAttributes
		if err := json.Unmarshal([]byte(stored), &completed); err != nil {
			return "", err
		}
		var value string
		err := json.Unmarshal(completed.Result, &value)
		return value, err
	})
}
