package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// events are how others ask for runs and learn of their ends.
type events struct {
	bus  awsevents.EventBus
	dead awssqs.Queue // events that could not be handled
}

// reaperMinutes is how often runs whose execution died are looked for: a dead run is known as such after this long at most.
const reaperMinutes = 5

func (s *stack) newEvents() {
	s.events.bus = awsevents.NewEventBus(s.scope, jsii.String("Bus"), &awsevents.EventBusProps{
		Description: jsii.String("Asks Sluice for runs, and tells of their ends"),
	})
	s.events.dead = awssqs.NewQueue(s.scope, jsii.String("DeadLetters"), &awssqs.QueueProps{
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)), // as long as SQS keeps anything
	})
	accept(s.events.dead, "AwsSolutions-SQS3", "This is the dead-letter queue.")
}

// newRules sends requested runs, answers, and the reaper's clock, to wake. Events pass whole: wake tells them apart.
func (s *stack) newRules() {
	wake := func() *[]awsevents.IRuleTarget {
		return &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(s.functions.wake, &awseventstargets.LambdaFunctionProps{
			DeadLetterQueue: s.events.dead,
			RetryAttempts:   jsii.Number(20),
			MaxEventAge:     awscdk.Duration_Hours(jsii.Number(24)),
		})}
	}
	awsevents.NewRule(s.scope, jsii.String("RunRequested"), &awsevents.RuleProps{
		Description:  jsii.String("Starts the run that an event asks for"),
		EventBus:     s.events.bus,
		EventPattern: &awsevents.EventPattern{DetailType: jsii.Strings("sluice.run.requested")},
		Targets:      wake(),
	})
	awsevents.NewRule(s.scope, jsii.String("EventAnswered"), &awsevents.RuleProps{
		Description:  jsii.String("Answers what rows wait for"),
		EventBus:     s.events.bus,
		EventPattern: &awsevents.EventPattern{DetailType: jsii.Strings("sluice.event.answered")},
		Targets:      wake(),
	})
	awsevents.NewRule(s.scope, jsii.String("Reaper"), &awsevents.RuleProps{
		Description: jsii.String("Looks for runs whose execution died"),
		Schedule:    awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(reaperMinutes))),
		Targets:     wake(),
	})
}
