// Package wire puts the adapters together that functions share. It owns no behaviour.
package wire

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/oklog/ulid/v2"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
	"sluice/internal/dynamo"
	"sluice/internal/edge"
	"sluice/internal/objects"
)

// Function is what every function begins with.
type Function struct {
	edge.Config
	Log   *slog.Logger
	Store *store.Store
	Blobs *objects.Bucket
	Usage func() table.Usage
	Owner string // names this process, and no other ever
}

// Begin reads the configuration, and opens the store. A function that cannot begin says why and ends: the platform
// reports that, and tries again with the next invocation.
func Begin(name string, need ...string) *Function {
	limitMemory(lambdacontext.MemoryLimitInMB)
	f, err := begin(name, os.Getenv, need...)
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	return f
}

// limitMemory has the collector work harder before the function's memory is full: the platform kills what goes beyond. A
// tenth is left for what the collector does not see.
func limitMemory(megabytes int) {
	if megabytes > 0 {
		debug.SetMemoryLimit(int64(megabytes) << 20 / 10 * 9)
	}
}

func begin(name string, getenv func(string) string, need ...string) (*Function, error) {
	cfg, err := edge.Read(getenv, append([]string{edge.Table, edge.Bucket}, need...)...)
	if err != nil {
		return nil, err
	}
	meter := table.Meter(dynamo.New(dynamodb.NewFromConfig(cfg.AWS), cfg.Table))
	bucket := objects.NewBucket(s3.NewFromConfig(cfg.AWS, func(o *s3.Options) { o.UsePathStyle = cfg.PathStyle }), cfg.Bucket, "")
	return &Function{
		Config: cfg, Log: edge.NewLogger(os.Stdout, cfg.LogLevel, name), Blobs: bucket, Usage: meter.Usage,
		Store: &store.Store{Table: meter, Blobs: bucket, Meter: meter}, Owner: strings.ToLower(ulid.Make().String()),
	}, nil
}
