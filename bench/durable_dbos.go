package main

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"
)

// dbosTransact runs a row as a workflow and a call as a step, started directly: queues would add work.
//
// DBOS opens its own SQLite pool with synchronous=NORMAL, which does not sync at a commit; it takes a pool from outside,
// so it gets one that does.
func dbosTransact() Contender {
	return Contender{
		Name:    "DBOS",
		Version: moduleVersion("github.com/dbos-inc/dbos-transact-golang"),
		Note:    "row = workflow, call = step; its SQLite system database on a pool with synchronous=FULL",
		Run:     runDBOS,
	}
}

// dbosConnections is the number that did best: with one, writers queue in Go; with eight, the number of the pool that DBOS
// opens, they sleep on SQLite's lock and a third of the speed is gone.
const dbosConnections = 1

func runDBOS(ctx context.Context, dir string, load Load) (took time.Duration, err error) {
	db, err := openSQLite(dir, dbosConnections)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	engine, err := dbos.NewContext(ctx, dbos.Config{
		AppName: "sluice-bench", SQLiteSystemDB: db, Logger: slog.New(slog.DiscardHandler),
		ApplicationVersion: "1", ExecutorID: "bench",
	})
	if err != nil {
		return 0, err
	}
	workflow := dbosWorkflow(load)
	dbos.RegisterWorkflow(engine, workflow, dbos.WithWorkflowName("row"))
	if err := dbos.Launch(engine); err != nil {
		return 0, err
	}

	start := time.Now()
	err = eachRow(ctx, load, func(_ context.Context, row int) error {
		handle, err := dbos.RunWorkflow(engine, workflow, row, dbos.WithWorkflowID("row-"+strconv.Itoa(row)))
		if err != nil {
			return err
		}
		_, err = handle.GetResult()
		return err
	})
	took = time.Since(start)

	if err == nil {
		err = checkDBOS(ctx, db, load)
	}
	if stopErr := dbos.Shutdown(engine, 10*time.Second); err == nil && stopErr != nil {
		err = fmt.Errorf("shutting down: %w", stopErr)
	}
	return took, err
}

func dbosWorkflow(load Load) func(dbos.Context, int) (int, error) {
	return func(ctx dbos.Context, row int) (int, error) {
		for call := range load.Calls {
			_, err := dbos.RunAsStep(ctx, func(context.Context) (string, error) {
				return callProvider(load, row, call), nil
			}, dbos.WithStepName("call"))
			if err != nil {
				return 0, err
			}
		}
		return row, nil
	}
}

func checkDBOS(ctx context.Context, db *sql.DB, load Load) error {
	if err := mustSyncFully(ctx, db); err != nil {
		return err
	}
	var done int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM workflow_status WHERE status = 'SUCCESS'`).Scan(&done); err != nil {
		return err
	}
	if done != load.Rows {
		return fmt.Errorf("%d of %d workflows are recorded as done", done, load.Rows)
	}
	return checkStored(ctx, db, load, `SELECT output FROM operation_outputs`, decodeDBOS)
}

// decodeDBOS undoes the default serializer: JSON in base64.
func decodeDBOS(stored string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		return "", err
	}
	var value string
	err = json.Unmarshal(raw, &value)
	return value, err
}
