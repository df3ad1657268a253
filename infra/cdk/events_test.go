package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRequestedRunsAndTheClockReachWake(t *testing.T) {
	requested := template.one(t, "Events::Rule", "RunRequested")
	if asJSON(requested.at("EventPattern")) != `{"detail-type":["sluice.run.requested"]}` || !strings.Contains(asJSON(requested.at("EventBusName")), `"Bus`) {
		t.Errorf("requested: %s", asJSON(requested.Properties))
	}
	answered := template.one(t, "Events::Rule", "EventAnswered")
	if asJSON(answered.at("EventPattern")) != `{"detail-type":["sluice.event.answered"]}` || !strings.Contains(asJSON(answered.at("EventBusName")), `"Bus`) {
		t.Errorf("answered: %s", asJSON(answered.Properties))
	}
	reaper := template.one(t, "Events::Rule", "Reaper")
	if reaper.at("ScheduleExpression") != "rate(5 minutes)" {
		t.Errorf("reaper: %s", asJSON(reaper.Properties))
	}
	for id, rule := range template.ofType("Events::Rule") {
		target := rule.at("Targets", 0)
		if !strings.Contains(asJSON(at(target, "Arn")), `"Wake`) || !strings.Contains(asJSON(at(target, "DeadLetterConfig")), `"DeadLetters`) {
			t.Errorf("%s: an event that cannot be delivered is lost: %s", id, asJSON(target))
		}
		if at(target, "Input") != nil || at(target, "InputTransformer") != nil {
			t.Errorf("%s: the event does not pass whole", id)
		}
	}
	if !strings.Contains(asJSON(function(t, template, "Wake").at("DeadLetterConfig")), `"DeadLetters`) {
		t.Error("an event that wake cannot handle is lost")
	}
}

func TestEveryAlarmIsExplained(t *testing.T) {
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	alarms := template.ofType("CloudWatch::Alarm")
	explained := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^### `([A-Za-z]+)`").FindAllStringSubmatch(string(guide), -1) {
		explained[match[1]] = true
	}
	suffix := regexp.MustCompile(`Alarm[0-9A-F]{8}$`)
	for id := range alarms {
		name := suffix.ReplaceAllString(id, "")
		if !explained[name] {
			t.Errorf("docs/operations.md does not say what %s means", name)
		}
		delete(explained, name)
	}
	for name := range explained {
		t.Errorf("docs/operations.md explains %s, which is no alarm", name)
	}
}

func TestAlarmsGoWhereTheSettingSays(t *testing.T) {
	for id, a := range template.ofType("CloudWatch::Alarm") {
		if a.at("AlarmActions") != nil {
			t.Errorf("%s goes somewhere by default", id)
		}
	}
	for id, a := range small.ofType("CloudWatch::Alarm") {
		if a.at("AlarmActions", 0) != "arn:aws:sns:us-east-1:123456789012:alarms" {
			t.Errorf("%s goes to %v", id, a.at("AlarmActions"))
		}
	}
}

func TestSilenceOfTheReaperAlarmsAlsoWithoutData(t *testing.T) {
	a := template.one(t, "CloudWatch::Alarm", "ReaperSilent")
	if a.at("TreatMissingData") != "breaching" || a.at("ComparisonOperator") != "LessThanOrEqualToThreshold" || a.at("Threshold") != 0.0 {
		t.Errorf("%s", asJSON(a.Properties))
	}
}

// What the API has is what its documentation tells of, and the page.
func TestEveryMethodAsksForTheKeyAndIsThrottled(t *testing.T) {
	routes, err := routesOf(defaults())
	if err != nil || len(routes) < 10 || !slices.Contains(routes, route{method: "POST", path: "/runs", body: true}) ||
		!slices.Contains(routes, route{method: "GET", path: "/runs/{id}/rows"}) {
		t.Fatalf("%+v, %v", routes, err)
	}
	methods, open := template.ofType("ApiGateway::Method"), 0
	for _, m := range methods {
		if m.at("ApiKeyRequired") == false {
			open++
		}
	}
	for _, r := range routes {
		if r.open {
			open--
		}
	}
	if len(methods) != len(routes) || open != 0 {
		t.Errorf("%d methods, %d routes; %d more than are meant ask for no key", len(methods), len(routes), open)
	}
	for id, m := range methods {
		if m.at("RequestValidatorId") == nil || m.at("Integration", "Type") != "AWS_PROXY" {
			t.Errorf("%s: %s", id, asJSON(m.Properties))
		}
	}
	plan := template.one(t, "ApiGateway::UsagePlan", "Rest")
	if plan.at("Throttle", "RateLimit") != 20.0 || plan.at("Throttle", "BurstLimit") != 40.0 {
		t.Errorf("throttle %s", asJSON(plan.at("Throttle")))
	}
	if stage := template.one(t, "ApiGateway::Stage", "Rest"); asJSON(stage.at("AccessLogSetting")) == "null" {
		t.Error("requests are not logged")
	}
	if stage := small.one(t, "ApiGateway::Stage", "Rest"); asJSON(stage.at("AccessLogSetting")) != "null" {
		t.Error("requests are logged against the setting")
	}
}
