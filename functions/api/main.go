// Command api is the Lambda function behind API Gateway.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"sluice/functions/internal/api"
	"sluice/functions/internal/machine"
	"sluice/functions/internal/wire"
	"sluice/internal/edge"
	"sluice/internal/start"
)

func main() {
	f := wire.Begin("api", edge.RunMachine)
	executions := machine.StepFunctions{Client: sfn.NewFromConfig(f.AWS), Machine: f.RunMachine}
	h := &api.Handler{
		Store:     f.Store,
		Starter:   &start.Starter{Store: f.Store, Executions: executions, Accept: start.ForCloud},
		Presigner: f.Blobs,
		Log:       f.Log,
	}
	lambda.Start(h.Handle)
}
