package bus

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"sluice/internal/core/sheet"
)

// The bus answers 200 also for an event that it does not take.
func TestAnEventThatTheBusRefusedIsAnError(t *testing.T) {
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Entries []struct{ EventBusName, Source, DetailType, Detail string }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Entries) != 1 {
			t.Fatalf("%+v, %v", in, err)
		}
		e := in.Entries[0]
		if e.EventBusName != "bus" || e.Source != "sluice" || e.DetailType != "sluice.run.failed" ||
			e.Detail != `{"run":"r","name":"m","status":"failed","rows":3,"completed":1,"failed":1,"error":"no"}` {
			t.Errorf("%+v", e)
		}
		if refuse {
			_, _ = w.Write([]byte(`{"FailedEntryCount":1,"Entries":[{"ErrorCode":"InternalFailure"}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}`))
	}))
	defer server.Close()
	b := EventBridge{Bus: "bus", Client: eventbridge.NewFromConfig(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})})}
	rec := &sheet.Run{ID: "r", Name: "m", Status: sheet.Failed, Error: "no", Counts: sheet.Counts{Completed: 1, Failed: 1}}
	rec.Sealed.Rows = 3
	if err := b.Announce(t.Context(), Of(rec)); err != nil {
		t.Error(err)
	}
	refuse = true
	if err := b.Announce(t.Context(), Of(rec)); err == nil || !strings.Contains(err.Error(), "InternalFailure") {
		t.Errorf("%v", err)
	}
}
