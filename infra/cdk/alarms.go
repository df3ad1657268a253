package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

// alarm is one thing that an operator wants to be told. docs/operations.md says for each what it means and what to do.
type alarm struct {
	name    string
	says    string
	metric  awscloudwatch.Metric
	over    float64 // alarms when the metric is above this
	periods int     // for this many periods of five minutes, one after another
	silence bool    // the other way round: alarms when the metric is not above
}

func (s *stack) newAlarms() {
	list := append(s.runAlarms(), s.eventAlarms()...)
	list = append(list, s.functionAlarms()...)
	for _, a := range list {
		s.newAlarm(a)
	}
}

func (s *stack) runAlarms() []alarm {
	m, table := s.machines, s.data.table
	return []alarm{
		{name: "RunFailed", says: "A run has failed; its record says why.", metric: m.run.MetricFailed(sum()), periods: 1},
		{name: "RunTimedOut", says: "A run's execution reached the limit of a year; the reaper starts it again.", metric: m.run.MetricTimedOut(sum()), periods: 1},
		{name: "MachinesThrottled", says: "Step Functions slows the shards down.", metric: m.shard.MetricThrottled(sum()), over: 100, periods: 3},
		{name: "TableWritesThrottled", says: "DynamoDB refuses writes.", metric: table.Metric(jsii.String("WriteThrottleEvents"), sum()), over: 50, periods: 3},
		{name: "TableReadsThrottled", says: "DynamoDB refuses reads.", metric: table.Metric(jsii.String("ReadThrottleEvents"), sum()), over: 50, periods: 3},
		{name: "ApiFaults", says: "The API answers with faults of its own (5xx).", metric: s.api.rest.MetricServerError(sum()), over: 4, periods: 1},
	}
}

func (s *stack) eventAlarms() []alarm {
	dead, wake := s.events.dead, s.functions.wake
	return []alarm{
		{name: "DeadLetters", says: "An event could not be handled: a run that was asked for may not have started.", metric: dead.MetricApproximateNumberOfMessagesVisible(highest()), periods: 1},
		{name: "DeadLettersAge", says: "A dead letter has waited for a week; it is lost after two.", metric: dead.MetricApproximateAgeOfOldestMessage(highest()), over: 7 * 24 * 3600, periods: 1},
		{name: "WakeAge", says: "Events wait for wake for more than five minutes.", metric: wake.Metric(jsii.String("AsyncEventAge"), highest()), over: 5 * 60 * 1000, periods: 1},
		{name: "ReaperSilent", says: "The reaper has not run for a quarter of an hour.", metric: wake.MetricInvocations(sum()), periods: 3, silence: true},
	}
}

func (s *stack) functionAlarms() []alarm {
	var list []alarm
	for _, f := range s.named() {
		list = append(list,
			alarm{name: f.name + "Errors", says: "The function " + f.name + " fails again and again.", metric: f.fn.MetricErrors(sum()), over: 4, periods: 1},
			alarm{name: f.name + "Throttled", says: "There is no room to run the function " + f.name + ".", metric: f.fn.MetricThrottles(sum()), periods: 3},
		)
	}
	// A slice ends by itself some seconds before the function's time is over.
	return append(list, alarm{
		name: "RunmapNearTimeout", says: "Slices of runmap end late: one that is cut off repeats work.",
		metric: s.functions.runmap.MetricDuration(highest()), over: (runmapMinutes*60 - 2) * 1000, periods: 1,
	})
}

type named struct {
	name string
	fn   awslambda.Function
}

func (s *stack) named() []named {
	f := s.functions
	return []named{{"Runmap", f.runmap}, {"Toolexec", f.toolexec}, {"Wake", f.wake}, {"Api", f.api}}
}

func (s *stack) newAlarm(a alarm) {
	props := &awscloudwatch.AlarmProps{
		AlarmDescription:   &a.says,
		Metric:             a.metric,
		Threshold:          &a.over,
		EvaluationPeriods:  jsii.Number(a.periods),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	}
	if a.silence {
		props.ComparisonOperator = awscloudwatch.ComparisonOperator_LESS_THAN_OR_EQUAL_TO_THRESHOLD
		props.TreatMissingData = awscloudwatch.TreatMissingData_BREACHING
	}
	made := awscloudwatch.NewAlarm(s.scope, jsii.String(a.name+"Alarm"), props)
	if s.settings.AlarmTopic != "" {
		topic := awssns.Topic_FromTopicArn(s.scope, jsii.String(a.name+"Topic"), &s.settings.AlarmTopic)
		made.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
		made.AddOkAction(awscloudwatchactions.NewSnsAction(topic))
	}
}

func sum() *awscloudwatch.MetricOptions     { return over5("Sum") }
func highest() *awscloudwatch.MetricOptions { return over5("Maximum") }

func over5(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: &statistic, Period: awscdk.Duration_Minutes(jsii.Number(5))}
}
