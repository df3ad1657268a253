// Command api is the Lambda function behind API Gateway.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	behind "sluice/functions/internal/api"
	"sluice/functions/internal/bus"
	"sluice/functions/internal/ending"
	"sluice/functions/internal/machine"
	"sluice/functions/internal/runmap"
	"sluice/functions/internal/steer"
	"sluice/functions/internal/wire"
	"sluice/internal/answers"
	"sluice/internal/api"
	"sluice/internal/edge"
	"sluice/internal/invoke/awslambda"
	"sluice/internal/page"
	"sluice/internal/start"
	"sluice/resolvers"
)

func main() {
	f := wire.Begin("api", edge.RunMachine, edge.Toolexec, edge.Bus)
	executions := machine.StepFunctions{Client: sfn.NewFromConfig(f.AWS), Machine: f.RunMachine}
	desk := &answers.Desk{Store: f.Store, Bell: machine.Bell{Store: f.Store, Client: executions.Client}}
	h := api.New(api.Ports{
		Store:   f.Store,
		Starter: &start.Starter{Store: f.Store, Executions: executions, Accept: start.ForCloud(f.AllowPublic), Resolvers: resolvers.All()},
		Kicker: &steer.Steer{Store: f.Store, Executions: executions, Settings: runmap.Settings(),
			Ending: &ending.Ending{Store: f.Store, Announcer: bus.EventBridge{Client: eventbridge.NewFromConfig(f.AWS), Bus: f.Bus}}},
		Links:       behind.Links{Presigner: f.Blobs, Store: f.Store},
		Tools:       behind.Tools{Invoker: awslambda.New(f.AWS, f.Toolexec), Store: f.Store, Blobs: f.Store.Blobs},
		Desk:        desk,
		AnswerPage:  answers.NewPage(desk, f.Log),
		Log:         f.Log,
		Page:        page.Handler(),
		AllowPublic: f.AllowPublic,
		RequestID:   edge.RequestID,
	})
	lambda.Start(behind.Function{HTTP: h}.Handle)
}
