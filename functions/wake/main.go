// Command wake is the Lambda function for events: requests for runs, and the reaper's schedule.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"sluice/functions/internal/bus"
	"sluice/functions/internal/ending"
	"sluice/functions/internal/machine"
	"sluice/functions/internal/runmap"
	"sluice/functions/internal/steer"
	"sluice/functions/internal/wake"
	"sluice/functions/internal/wire"
	"sluice/internal/answers"
	"sluice/internal/edge"
	"sluice/internal/start"
	"sluice/resolvers"
)

func main() {
	f := wire.Begin("wake", edge.RunMachine, edge.Bus)
	executions := machine.StepFunctions{Client: sfn.NewFromConfig(f.AWS), Machine: f.RunMachine}
	announcer := bus.EventBridge{Client: eventbridge.NewFromConfig(f.AWS), Bus: f.Bus}
	end := &ending.Ending{Store: f.Store, Announcer: announcer}
	h := &wake.Handler{
		Starter: &start.Starter{Store: f.Store, Executions: executions, Accept: start.ForCloud(f.AllowPublic), Resolvers: resolvers.All()},
		Desk:    &answers.Desk{Store: f.Store, Bell: machine.Bell{Store: f.Store, Client: executions.Client}},
		Reaper: &wake.Reaper{Store: f.Store, Executions: executions, Ending: end,
			Steer: &steer.Steer{Store: f.Store, Executions: executions, Ending: end, Settings: runmap.Settings()}},
		Log: f.Log,
	}
	lambda.Start(h.Handle)
}
