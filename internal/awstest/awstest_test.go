package awstest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func TestMain(m *testing.M) { Main(m) }

func TestEmulatorsAnswerAndAreShared(t *testing.T) {
	for name, get := range map[string]func(testing.TB) AWS{"ministack": Ministack, "dynalite": Dynalite} {
		t.Run(name, func(t *testing.T) {
			a := get(t)
			if _, err := a.DynamoDB().ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
				t.Errorf("list tables: %v", err)
			}
			if b := get(t); a != b {
				t.Errorf("asked twice: got %v and %v", a, b)
			}
		})
	}
}

func TestEmulatorEndsWithItsLeash(t *testing.T) {
	Ministack(t) // it is installed
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	p, err := startMinistack(root)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.leash.Close() // which is what a dying test binary does
	<-p.ended
	if resp, err := http.Get(p.aws.URL); err == nil {
		resp.Body.Close()
		t.Error("the emulator still answers")
	}
	p.stop()
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
}

func TestEmulatorThatFailsShowsItsLog(t *testing.T) {
	if firstMissing([]string{"sh"}) != "" {
		t.Skip("no sh")
	}
	p, err := start("", nil, "sh", "-c", "echo out of order; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	err = p.await(func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("got %v", err)
	}
}

func TestClientsHaveNothingOfTheCaller(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "of-the-caller")
	t.Setenv("AWS_ENDPOINT_URL", "http://elsewhere")
	config := AWS{URL: "http://127.0.0.1:1"}.Config()
	credentials, err := config.Credentials.Retrieve(context.Background())
	if err != nil || credentials.AccessKeyID != "test" || *config.BaseEndpoint != "http://127.0.0.1:1" {
		t.Errorf("got %s at %s, %v", credentials.AccessKeyID, *config.BaseEndpoint, err)
	}
}

func TestAnotherEndpointIsUsedAsItIs(t *testing.T) {
	t.Setenv(EndpointVariable, "http://127.0.0.1:4566")
	if a := Ministack(t); a.URL != "http://127.0.0.1:4566" || a.Log != "" {
		t.Errorf("got %+v", a)
	}
}
