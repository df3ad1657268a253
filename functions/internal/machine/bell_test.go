package machine

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/memory"
)

// Every token of the shard is given back; those that nobody waits for any more are forgotten, and none of another shard is
// touched. What went wrong otherwise is told, and the token kept.
func TestBell(t *testing.T) {
	var given []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ TaskToken, Output string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".SendTaskSuccess") || in.Output != "{}" {
			t.Error(err, r.Header.Get("X-Amz-Target"), in)
		}
		given = append(given, in.TaskToken)
		if kind, bad := map[string]string{"gone": "TaskDoesNotExist", "late": "TaskTimedOut", "odd": "InvalidToken", "denied": "AccessDeniedException"}[in.TaskToken]; bad {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"` + kind + `"}`))
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	st := &store.Store{Table: memory.New()}
	b := Bell{Store: st, Client: sfn.NewFromConfig(aws.Config{Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		})})}
	keep := func(shard int, tokens ...string) {
		for _, token := range tokens {
			if err := sheet.SaveToken(t.Context(), st, "r", shard, token, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func(shard int) (list []string) {
		for token, err := range sheet.Tokens(t.Context(), st, "r", shard) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, token.Text)
		}
		return list
	}
	at := run.ShardOf{Run: "r", Shard: 1}
	if err := b.Ring(t.Context(), at); err != nil || len(given) != 0 {
		t.Errorf("without a token: %v, %v", err, given)
	}
	keep(1, "good", "gone", "late", "odd")
	keep(2, "other")
	if err := b.Ring(t.Context(), at); err != nil {
		t.Error(err)
	}
	slices.Sort(given)
	if !slices.Equal(given, []string{"gone", "good", "late", "odd"}) || len(left(1)) != 0 || len(left(2)) != 1 {
		t.Errorf("given back %v, left %v and %v", given, left(1), left(2))
	}
	keep(1, "denied")
	if err := b.Ring(t.Context(), at); err == nil || len(left(1)) != 1 {
		t.Errorf("denied: %v, left %v", err, left(1))
	}
}
