// Command runmap is the Lambda function that the state machines invoke: plan, slice, finish, fail.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"sluice/functions/internal/bus"
	"sluice/functions/internal/ending"
	"sluice/functions/internal/machine"
	"sluice/functions/internal/runmap"
	"sluice/functions/internal/wire"
	"sluice/internal/answers"
	"sluice/internal/core/call"
	"sluice/internal/core/run"
	"sluice/internal/edge"
	"sluice/internal/invoke"
	"sluice/internal/invoke/awslambda"
	"sluice/resolvers"
)

func main() {
	f := wire.Begin("runmap", edge.Toolexec, edge.Bus)
	announcer := bus.EventBridge{Client: eventbridge.NewFromConfig(f.AWS), Bus: f.Bus}
	toolexec := awslambda.New(f.AWS, f.Toolexec)
	h := &runmap.Handler{
		Store:     f.Store,
		Ending:    &ending.Ending{Store: f.Store, Announcer: announcer},
		Bell:      machine.Bell{Store: f.Store, Client: sfn.NewFromConfig(f.AWS)},
		Gateway:   func(j *run.Job) call.Gateway { return invoke.New(toolexec, j.Run.ID, j.Tools, f.Store.Blobs) },
		Resolvers: resolvers.All(),
		Log:       f.Log,
		Settings:  runmap.Settings(),
		Usage:     f.Usage,
	}
	if f.PublicURL != "" {
		secret := answers.Kept(f.Store)
		h.Links = func(ctx context.Context) (run.Linker, error) {
			kept, err := secret(ctx)
			return answers.Links(kept, f.PublicURL), err
		}
	}
	lambda.Start(h.Handle)
}
