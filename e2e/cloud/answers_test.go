package cloud

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"sluice/internal/providersim"
)

// answered is what POST /answers says.
type answered struct {
	Taken, Already int
	Value          any
}

// answer answers by the API, and tells the status.
func (s *stack) answer(t *testing.T, key string, value any) (got answered, status int) {
	t.Helper()
	status, said := s.call(t, http.MethodPost, "/answers", nil, map[string]any{"key": key, "value": value}, &got)
	if status != http.StatusOK && status != http.StatusNotFound {
		t.Fatalf("answer to %s: status %d: %s", key, status, said)
	}
	return got, status
}

// answerByBus puts one answer on the bus, as often as is said, at once.
func (s *stack) answerByBus(t *testing.T, key string, value any, times int) {
	t.Helper()
	detail, _ := json.Marshal(map[string]any{"key": key, "value": value})
	out, err := s.eventbridge.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: slices.Repeat([]types.PutEventsRequestEntry{{
		EventBusName: &s.bus, Source: aws.String("crm"), DetailType: aws.String("sluice.event.answered"), Detail: aws.String(string(detail)),
	}}, times)})
	if err != nil || out.FailedEntryCount != 0 {
		t.Fatalf("%v, %+v", err, out)
	}
}

// An answer is delivered twice by the bus, and others come after it by the bus and by the API. The first one counts, who comes
// later is told what it was, and the row's next call is made once.
func TestE2TheFirstAnswerCounts(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run, chat, verifier := named("twice"), named("twicechat"), named("twiceverify")
	p := simulate(t, providersim.Provider{Name: chat, Kind: "chat"}, providersim.Provider{Name: verifier, Kind: "verify"})
	rows := people("twice", 2)
	a, b := rows[0]["email"].(string), rows[1]["email"].(string)
	s.start(t, p.consenting(run, chat, verifier, rows))
	s.in(t, run, "AwaitHour")

	s.answerByBus(t, question(run, a), true, 2)
	eventually(t, soon, "the first row has ended", func() bool { return s.view(t, run).Completed == 1 })
	s.answerByBus(t, question(run, a), "another", 1)
	for range 2 {
		if got, _ := s.answer(t, question(run, a), false); got.Taken != 0 || got.Already != 1 || got.Value != true {
			t.Errorf("a later answer is told %+v", got)
		}
	}
	if got, _ := s.answer(t, question(run, b), true); got.Taken != 1 || got.Already != 0 {
		t.Errorf("the other row's answer is told %+v", got)
	}
	s.ended(t, run, "completed", soon)
	if got := p.times(verifier); len(got) != 2 || got[verifies(verifier, a)] != 1 || got[verifies(verifier, b)] != 1 {
		t.Errorf("calls: %v; want one for each row", got)
	}
	want := fmt.Sprintf("email,consent,ok\n%s,true,%s\n%s,true,%s\n", a, p.ask(verifier, a), b, p.ask(verifier, b))
	if got := s.export(t, run); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Who is asked answers before having been asked to the end: the message is still under way, and the row has not come to its
// wait. The answer is kept, and the run ends without waiting.
func TestE3AnswerWhileTheQuestionIsSent(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run, chat, verifier := named("early"), named("earlychat"), named("earlyverify")
	p := simulate(t, providersim.Provider{Name: chat, Kind: "chat"}, providersim.Provider{Name: verifier, Kind: "verify"})
	rows := people("early", 3)
	type message struct {
		text string
		read chan struct{}
	}
	asked := make(chan message)
	p.onArrival(func(r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/"+chat+"/") {
			return
		}
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		m := message{string(text), make(chan struct{})}
		asked <- m
		<-m.read
	})
	s.start(t, p.consenting(run, chat, verifier, rows))
	for range rows {
		m := <-asked
		i := slices.IndexFunc(rows, func(row map[string]any) bool { return strings.Contains(m.text, row["email"].(string)+"?") })
		if got, _ := s.answer(t, question(run, rows[i]["email"].(string)), true); got.Taken != 1 {
			t.Errorf("an answer to %s is told %+v", m.text, got)
		}
		close(m.read)
	}
	s.ended(t, run, "completed", soon) // they wait for three hours
	if states := entered(s.history(t, s.shardExecutions(t, run)[0])); states["AwaitHour"] != 0 || states["Slice"] != 1 {
		t.Errorf("the shard's way: %v", states)
	}
	p.onArrival(nil)
	p.allSaidYes(s.export(t, run), chat, verifier, rows)
}

// Answers come one after the other, a little later each time, so that they meet the shard at work, on its way to its wait, in it
// and on its way out of it. Each is taken, and the run ends without waiting.
func TestE3AnswersWhileTheShardParks(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run, chat, verifier := named("volley"), named("volleychat"), named("volleyverify")
	p := simulate(t, providersim.Provider{Name: chat, Kind: "chat"}, providersim.Provider{Name: verifier, Kind: "verify"})
	rows := people("volley", 24)
	s.start(t, p.consenting(run, chat, verifier, rows))
	for i, row := range rows {
		time.Sleep(time.Duration(i) * 50 * time.Millisecond)
		eventually(t, soon, "an answer is taken", func() bool {
			got, status := s.answer(t, question(run, row["email"].(string)), true)
			return status == http.StatusOK && got.Taken == 1 // before the question is there, nobody waits for it
		})
	}
	s.ended(t, run, "completed", soon)
	if states := entered(s.history(t, s.shardExecutions(t, run)[0])); states["AwaitHour"] == 0 {
		t.Errorf("the shard never waited: %v", states)
	} else {
		t.Logf("the shard's way: %v", states)
	}
	p.allSaidYes(s.export(t, run), chat, verifier, rows)
}

// allSaidYes checks the table of a run of which all rows were answered with true: each was asked once, and verified once.
func (p *providers) allSaidYes(table, chat, verifier string, rows []map[string]any) {
	p.t.Helper()
	sent, verified := p.times(chat), p.times(verifier)
	if len(sent) != len(rows) || p.report(chat).Received != len(rows) {
		p.t.Errorf("%d messages were sent, of them %d different; want one for each of %d rows", p.report(chat).Received, len(sent), len(rows))
	}
	want := "email,consent,ok\n"
	for _, row := range rows {
		email := row["email"].(string)
		if n := verified[verifies(verifier, email)]; n != 1 {
			p.t.Errorf("%s was verified %d times", email, n)
		}
		want += email + ",true," + p.ask(verifier, email) + "\n"
	}
	if table != want {
		p.t.Errorf("the table differs from the expected one, first at %s", difference(table, want))
	}
}
