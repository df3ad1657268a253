package awstest

import (
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Region is where the emulators pretend to be.
const Region = "us-east-1"

// EndpointVariable is the environment variable that has tests talk to another emulator of everything, one that is running
// already, such as LocalStack.
const EndpointVariable = "SLUICE_TEST_ENDPOINT"

// AWS is a running emulator.
type AWS struct {
	URL string // of its one endpoint, for AWS_ENDPOINT_URL
	Log string // the file that has what it printed; "" for one that was not started here
}

// Ministack returns the emulator of everything that Sluice uses, or the one that EndpointVariable names.
func Ministack(t testing.TB) AWS {
	t.Helper()
	if url := os.Getenv(EndpointVariable); url != "" {
		return AWS{URL: url}
	}
	return shared(t, &ministack)
}

// Dynalite returns the strict emulator of DynamoDB alone.
func Dynalite(t testing.TB) AWS {
	t.Helper()
	return shared(t, &dynalite)
}

// Config is what clients of the emulator are made from.
func (a AWS) Config() aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(a.URL),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   client,
	}
}

// client opens a connection for every request: now and then an emulator closes one that it keeps alive while it answers.
var client = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.DisableKeepAlives = true })

// DynamoDB returns a client.
func (a AWS) DynamoDB() *dynamodb.Client { return dynamodb.NewFromConfig(a.Config()) }

// S3 returns a client. Buckets are in the path, since their host names lead nowhere.
func (a AWS) S3() *s3.Client {
	return s3.NewFromConfig(a.Config(), func(o *s3.Options) { o.UsePathStyle = true })
}

// Main runs the tests of a package and ends the emulators that they started.
func Main(m *testing.M) {
	code := m.Run()
	for _, e := range []*emulator{&ministack, &dynalite} {
		e.stop()
	}
	os.Exit(code)
}

// emulator is one that has been started at most once.
type emulator struct {
	part  string // what setup.sh installs
	tools []string
	start func(root string) (*process, error)

	once    sync.Once
	process *process
	missing string
	err     error
}

var (
	ministack = emulator{part: "python", tools: []string{"python3"}, start: startMinistack}
	dynalite  = emulator{part: "node", tools: []string{"node", "npm"}, start: startDynalite}
)

func shared(t testing.TB, e *emulator) AWS {
	t.Helper()
	e.once.Do(e.launch)
	switch {
	case e.missing != "" && os.Getenv("CI") != "true":
		t.Skipf("skipped: %s is not installed, so nothing was tested over the wire", e.missing)
	case e.missing != "":
		t.Fatalf("%s is not installed; where CI=true no test may be left out", e.missing)
	case e.err != nil:
		t.Fatal(e.err)
	}
	return e.process.aws
}

func (e *emulator) launch() {
	if e.missing = firstMissing(e.tools); e.missing != "" {
		return
	}
	var root string
	if root, e.err = install(e.part); e.err == nil {
		e.process, e.err = e.start(root)
	}
}

func (e *emulator) stop() {
	if e.process != nil {
		e.process.stop()
	}
}
