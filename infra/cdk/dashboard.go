package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// newDashboard shows on one page whether runs go well, what they cost, and what holds them up.
func (s *stack) newDashboard() {
	m, table := s.machines, s.data.table
	board := awscloudwatch.NewDashboard(s.scope, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DefaultInterval: awscdk.Duration_Hours(jsii.Number(12)),
	})
	board.AddWidgets(
		graph("Runs", m.run.MetricStarted(sum()), m.run.MetricSucceeded(sum()), m.run.MetricFailed(sum())),
		graph("Shards", m.shard.MetricStarted(sum()), m.shard.MetricSucceeded(sum()), m.shard.MetricFailed(sum()), m.shard.MetricThrottled(sum())),
		graph("API", s.api.rest.MetricCount(sum()), s.api.rest.MetricClientError(sum()), s.api.rest.MetricServerError(sum())),
	)
	var invocations, busy, errors, throttles []awscloudwatch.IMetric
	for _, f := range s.named() {
		label := func(o *awscloudwatch.MetricOptions) *awscloudwatch.MetricOptions {
			o.Label = jsii.String(f.name)
			return o
		}
		invocations = append(invocations, f.fn.MetricInvocations(label(sum())))
		busy = append(busy, f.fn.MetricDuration(label(sum())))
		errors = append(errors, f.fn.MetricErrors(label(sum())))
		throttles = append(throttles, f.fn.MetricThrottles(label(sum())))
	}
	board.AddWidgets(
		graph("Invocations", invocations...), graph("Milliseconds billed", busy...),
		graph("Errors", errors...), graph("Throttles", throttles...),
	)
	board.AddWidgets(
		graph("Table: units", table.MetricConsumedWriteCapacityUnits(sum()), table.MetricConsumedReadCapacityUnits(sum())),
		graph("Table: refused", table.Metric(jsii.String("WriteThrottleEvents"), sum()), table.Metric(jsii.String("ReadThrottleEvents"), sum())),
		graph("Dead letters", s.events.dead.MetricApproximateNumberOfMessagesVisible(highest())),
	)
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: &title, Left: &metrics, Width: jsii.Number(6), Height: jsii.Number(6),
	})
}
