// Command cdk describes Sluice's cloud deployment: one stack with its table, bucket, functions, state machines, API,
// events, alarms and dashboard. It owns names, sizes and permissions; it refuses to restate what lies elsewhere: the
// state machines come from statemachine/, the functions from the build folder.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	settings, err := settingsFrom(app)
	if err == nil {
		_, err = newStack(app, settings)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		os.Exit(1)
	}
	app.Synth(nil)
}
