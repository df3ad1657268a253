package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"sluice/internal/awstest"
)

// root is the repository, seen from this package.
const root = "../.."

// stack is the deployment under test.
type stack struct {
	endpoint    string // of AWS
	url, key    string // of the API
	runs        string // ARN of the run's state machine
	shards      string // and of the shard's
	runmap      string // name of the function
	toolexec    string
	bus         string
	table       string
	sfn         *sfn.Client
	lambda      *lambda.Client
	eventbridge *eventbridge.Client
	ssm         *ssm.Client
	aws         awstest.AWS
}

// unique sets what this process starts apart from what others left in a deployment that lives longer.
var unique = strconv.FormatInt(time.Now().Unix(), 36)

var shared struct {
	once  sync.Once
	stack *stack
	err   error
}

// deployed returns the deployment that all tests share, and makes it when the first one asks.
func deployed(t *testing.T) *stack {
	t.Helper()
	a := awstest.AWS{URL: os.Getenv("AWS_ENDPOINT_URL")}
	if a.URL == "" {
		a = awstest.Ministack(t)
	}
	api := os.Getenv("SLUICE_API_URL")
	if _, err := exec.LookPath("npm"); err != nil && api == "" {
		const missing = "npm is not installed (Node 20 or newer: https://nodejs.org), so the CDK command cannot deploy"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing + "; where CI=true no test may be left out")
		}
		t.Skip("skipped: " + missing + ", and nothing was tested in the cloud")
	}
	shared.once.Do(func() {
		if shared.stack, shared.err = find(t, a, api); shared.err != nil && a.Log != "" {
			shared.err = fmt.Errorf("%w\nthe emulator's log ends:\n%s", shared.err, tail(a.Log))
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.stack
}

func find(t *testing.T, a awstest.AWS, api string) (*stack, error) {
	t.Helper()
	cfg := a.Config()
	s := &stack{endpoint: a.URL, url: api, key: os.Getenv("SLUICE_API_KEY"), aws: a, sfn: sfn.NewFromConfig(cfg),
		lambda: lambda.NewFromConfig(cfg), eventbridge: eventbridge.NewFromConfig(cfg), ssm: ssm.NewFromConfig(cfg)}
	if api == "" {
		began := time.Now()
		if err := s.deploy(t); err != nil {
			return nil, err
		}
		t.Logf("built and deployed in %v", time.Since(began).Round(time.Second))
	}
	s.url = strings.TrimSuffix(s.url, "/")
	return s, s.discover(t)
}

// deploy builds the functions for this machine's architecture and runs the CDK command, as docs/deploy.md says.
func (s *stack) deploy(t *testing.T) error {
	t.Helper()
	if err := s.script(nil, "functions/build.sh", runtime.GOARCH); err != nil {
		return err
	}
	var outputs map[string]string
	if err := s.script(&outputs, "e2e/deploy.sh", "-c", "sluice:architecture="+runtime.GOARCH, "-c", "sluice:keepData=false", "-c", "sluice:allowPrivate=true",
		"-c", "sluice:apiRate=500", "-c", "sluice:apiBurst=500"); err != nil {
		return err
	}
	var err error
	if s.url, err = s.within(outputs["ApiUrl"]); err != nil {
		return fmt.Errorf("the deployment's ApiUrl: %w", err)
	}
	var key struct {
		Value string `json:"value"`
	}
	if err := s.signed(t, "apigateway", "GET", "/apikeys/"+outputs["ApiKeyId"]+"?includeValue=true", "", nil, &key); err != nil {
		return err
	}
	s.key = key.Value
	return nil
}

// within is where an address of an API leads: names of API hosts lead nowhere on an emulator, and this is where REST APIs
// are on all of them. The address is of AWS's form: the API in the host's name, then the stage, then what is asked for.
func (s *stack) within(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is no address", address)
	}
	id, _, _ := strings.Cut(u.Hostname(), ".")
	stage, path, _ := strings.Cut(strings.TrimPrefix(u.RequestURI(), "/"), "/")
	return s.endpoint + "/restapis/" + id + "/" + stage + "/_user_request_/" + path, nil
}

// script runs a script of the repository. What it prints is in the error, and on standard output is JSON for out.
func (s *stack) script(out any, name string, args ...string) error {
	cmd := exec.Command("sh", append([]string{filepath.Join(root, name)}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+s.endpoint, "AWS_ENDPOINT_URL_S3="+s.endpoint, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=", "AWS_PROFILE=", "AWS_REGION="+awstest.Region, "AWS_DEFAULT_REGION="+awstest.Region)
	printed, err := cmd.Output()
	if err == nil && out != nil {
		err = json.Unmarshal(printed, out)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s%s", name, err, said.String(), printed)
	}
	return nil
}

// discover finds the parts of the stack by the names that CloudFormation gives them: the stack's name comes first.
func (s *stack) discover(t *testing.T) error {
	t.Helper()
	machines, err := s.sfn.ListStateMachines(t.Context(), &sfn.ListStateMachinesInput{})
	if err != nil {
		return err
	}
	for _, m := range machines.StateMachines {
		take(&s.runs, aws.ToString(m.StateMachineArn), aws.ToString(m.Name), "Sluice-RunMachine")
		take(&s.shards, aws.ToString(m.StateMachineArn), aws.ToString(m.Name), "Sluice-ShardMachine")
	}
	functions, err := s.lambda.ListFunctions(t.Context(), &lambda.ListFunctionsInput{})
	if err != nil {
		return err
	}
	for _, f := range functions.Functions {
		take(&s.runmap, aws.ToString(f.FunctionName), aws.ToString(f.FunctionName), "Sluice-Runmap")
		take(&s.toolexec, aws.ToString(f.FunctionName), aws.ToString(f.FunctionName), "Sluice-Toolexec")
		if strings.HasPrefix(aws.ToString(f.FunctionName), "Sluice-Runmap") && f.Environment != nil {
			s.table = f.Environment.Variables["SLUICE_TABLE"]
		}
	}
	buses, err := s.eventbridge.ListEventBuses(t.Context(), &eventbridge.ListEventBusesInput{})
	if err != nil {
		return err
	}
	for _, b := range buses.EventBuses {
		take(&s.bus, aws.ToString(b.Name), aws.ToString(b.Name), "Sluice")
	}
	if s.runs == "" || s.shards == "" || s.runmap == "" || s.toolexec == "" || s.bus == "" || s.table == "" {
		return errors.New("the stack Sluice is not there, or not whole")
	}
	return nil
}

// take keeps value if name starts with one of the prefixes.
func take(to *string, value, name string, prefixes ...string) {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			*to = value
		}
	}
}

func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}
