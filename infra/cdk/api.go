package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"
)

// api is the way in for people and programs outside: REST API v1, which every emulator has.
type api struct {
	rest awsapigateway.RestApi
	key  awsapigateway.IApiKey
}

func (s *stack) newAPI(routes []route) {
	rest := awsapigateway.NewRestApi(s.scope, jsii.String("Rest"), &awsapigateway.RestApiProps{
		Description:    jsii.String("Sluice: start runs, see how they stand, fetch their results"),
		EndpointTypes:  &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		CloudWatchRole: &s.settings.APILogs,
		DeployOptions:  s.stageOptions(),
	})
	rest.Node().TryRemoveChild(jsii.String("Endpoint")) // an output of CDK's own; ours is ApiUrl
	s.api.rest = rest
	s.addRoutes(routes)
	s.addRefusals()

	s.api.key = rest.AddApiKey(jsii.String("Key"), nil)
	plan := rest.AddUsagePlan(jsii.String("Plan"), &awsapigateway.UsagePlanProps{
		Throttle: &awsapigateway.ThrottleSettings{
			RateLimit: jsii.Number(s.settings.APIRate), BurstLimit: jsii.Number(s.settings.APIBurst),
		},
	})
	plan.AddApiStage(&awsapigateway.UsagePlanPerApiStage{Stage: rest.DeploymentStage()})
	plan.AddApiKey(s.api.key, nil)

	s.functions.runmap.AddEnvironment(jsii.String("SLUICE_PUBLIC_URL"), s.publicURL(), nil)

	accept(rest, "AwsSolutions-COG4", "Programs call this API with a key; there are no users to sign in.")
	accept(rest, "AwsSolutions-APIG4", "Every method of the API asks for its key; the page holds nothing that is anybody's, and what is published for everybody is there by two consents.")
	accept(rest.DeploymentStage(), "AwsSolutions-APIG3", "A firewall is the account's choice and is billed; the usage plan limits the rate of requests.")
	if s.settings.APILogs {
		accept(rest, "AwsSolutions-IAM4", "API Gateway writes logs with this policy of AWS, once for the account.")
	} else {
		accept(rest, "AwsSolutions-APIG1", "Switched off by the setting apiLogs; the function logs each request.")
		accept(rest, "AwsSolutions-APIG6", "Switched off by the setting apiLogs; the function logs each request.")
	}
}

// publicURL is where people reach the API, for the links by which they answer events. It is put together from the name of the
// API alone: the URL of its stage depends on the methods, these on the functions, and these would depend on the URL.
func (s *stack) publicURL() *string {
	if s.settings.PublicURL != "" {
		return &s.settings.PublicURL
	}
	return awscdk.Fn_Join(jsii.String(""), &[]*string{
		jsii.String("https://"), s.api.rest.RestApiId(), jsii.String(".execute-api."), s.scope.Region(), jsii.String("."), s.scope.UrlSuffix(), jsii.String("/" + stageName),
	})
}

const stageName = "v1"

func (s *stack) stageOptions() *awsapigateway.StageOptions {
	options := &awsapigateway.StageOptions{
		StageName:            jsii.String(stageName),
		MetricsEnabled:       jsii.Bool(true),
		DataTraceEnabled:     jsii.Bool(false), // never bodies
		ThrottlingRateLimit:  jsii.Number(s.settings.APIRate),
		ThrottlingBurstLimit: jsii.Number(s.settings.APIBurst),
	}
	if s.settings.APILogs {
		options.LoggingLevel = awsapigateway.MethodLoggingLevel_ERROR
		options.AccessLogDestination = awsapigateway.NewLogGroupLogDestination(s.newLogs("RestLogs"))
		options.AccessLogFormat = awsapigateway.AccessLogFormat_JsonWithStandardFields(nil)
	}
	return options
}

func (s *stack) addRoutes(routes []route) {
	rest := s.api.rest
	integration := awsapigateway.NewLambdaIntegration(s.functions.api, &awsapigateway.LambdaIntegrationOptions{
		Proxy: jsii.Bool(true), AllowTestInvoke: jsii.Bool(false),
	})
	validator := rest.AddRequestValidator(jsii.String("Validator"), &awsapigateway.RequestValidatorOptions{
		ValidateRequestBody: jsii.Bool(true), ValidateRequestParameters: jsii.Bool(true),
	})
	// The function checks what is in the object, and says what is wrong with it; here, what is none is refused.
	object := rest.AddModel(jsii.String("Object"), &awsapigateway.ModelOptions{
		ContentType: jsii.String("application/json"),
		Schema:      &awsapigateway.JsonSchema{Schema: awsapigateway.JsonSchemaVersion_DRAFT4, Type: awsapigateway.JsonSchemaType_OBJECT},
	})
	for _, r := range routes {
		options := &awsapigateway.MethodOptions{ApiKeyRequired: jsii.Bool(!r.open), RequestValidator: validator}
		if r.body {
			options.RequestModels = &map[string]awsapigateway.IModel{"application/json": object}
		}
		rest.Root().ResourceForPath(&r.path).AddMethod(&r.method, integration, options)
	}
}

// addRefusals gives what API Gateway itself refuses the form of the function's own errors.
func (s *stack) addRefusals() {
	const form = `{"error":{"code":"$context.error.responseType","message":%s}}`
	for _, refusal := range []struct {
		id, message string
		kind        awsapigateway.ResponseType
	}{
		{"Refused", "$context.error.messageString", awsapigateway.ResponseType_DEFAULT_4XX()},
		{"Faulty", "$context.error.messageString", awsapigateway.ResponseType_DEFAULT_5XX()},
		{"BadBody", `"$context.error.validationErrorString"`, awsapigateway.ResponseType_BAD_REQUEST_BODY()},
	} {
		s.api.rest.AddGatewayResponse(&refusal.id, &awsapigateway.GatewayResponseOptions{
			Type:      refusal.kind,
			Templates: &map[string]*string{"application/json": jsii.String(fmt.Sprintf(form, refusal.message))},
		})
	}
}
