package dynamo_test

import (
	"encoding/json"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"sluice/internal/core/table"
	"sluice/internal/dynamo"
)

// server is a script that keeps one item as DynamoDB does, as far as conditional puts go, and loses answers.
type server struct {
	script
	stored map[string]any
	// lose, by the number of the put: what the client gets in place of the answer. before: the put is not carried out.
	lose   map[int]reply
	before bool
	then   map[string]any // what somebody else writes behind the first put
}

func (s *server) table() *dynamo.Table {
	puts := 0
	s.answer = func(_ int, r request) reply {
		if r.op == "GetItem" {
			body, _ := json.Marshal(map[string]any{"Item": s.stored})
			return reply{body: string(body)}
		}
		puts++
		lost, isLost := s.lose[puts]
		answer := ok
		switch {
		case isLost && s.before:
		case s.stored != nil: // both conditions that the tests use
			answer = condition
		case r.op == "PutItem":
			s.stored = r.body["Item"].(map[string]any)
		}
		if s.then != nil && puts == 1 {
			s.stored = s.then
		}
		if isLost {
			return lost
		}
		return answer
	}
	return s.script.table()
}

var losses = map[string]reply{
	"no answer":        silence,
	"connection reset": {err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}},
	"server error":     fault,
	"gateway error":    {status: 503, body: "<html>"},
}

func TestPutWhoseAnswerWasLostIsASuccess(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := &server{lose: map[int]reply{1: loss, 2: loss}}
				if err := s.table().Put(t.Context(), item("mine"), table.Absent()); err != nil {
					t.Errorf("got %v: the put has met its own item", err)
				}
				if got := s.ops(); got != "PutItem PutItem PutItem GetItem" {
					t.Errorf("requests: %s", got)
				}
			})
		})
	}
}

func TestPutThatWasLostBeforeItHappenedIsWrittenOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		start := time.Now()
		s := &server{lose: map[int]reply{1: silence}, before: true}
		if err := s.table().Put(t.Context(), item("mine"), table.Absent()); err != nil || s.stored == nil {
			t.Errorf("got %v, stored %v", err, s.stored)
		}
		if took := time.Since(start); took < 15*time.Second || took > 16*time.Second {
			t.Errorf("an attempt without an answer took %s, want 15s", took)
		}
	})
}

// Somebody else's item with the same version and data is no proof that the put was carried out, and since it may have been,
// and replaced, it is no conflict either.
func TestPutWhoseAnswerWasLostAndThatMeetsAnotherItemIsUncertain(t *testing.T) {
	for name, mark := range map[string]any{"no mark": nil, "another mark": map[string]any{"B": "QUJD"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				other := map[string]any{"p": map[string]any{"S": "p"}, "s": map[string]any{"S": "s"}, "v": map[string]any{"N": "2"}, "d": map[string]any{"B": "bWluZQ=="}}
				if mark != nil {
					other["w"] = mark
				}
				s := &server{lose: map[int]reply{1: silence}, then: other}
				err := s.table().Put(t.Context(), item("mine"), table.Absent())
				if err == nil || errors.Is(err, table.ErrConflict) {
					t.Errorf("got %v, want an error that leaves it open", err)
				}
			})
		})
	}
}

func TestConflictWithoutALossIsAConflictAtOnce(t *testing.T) {
	s := &server{stored: map[string]any{"w": map[string]any{"B": "QUJD"}}}
	if err := s.table().Put(t.Context(), item("mine"), table.Absent()); !errors.Is(err, table.ErrConflict) || s.ops() != "PutItem" {
		t.Errorf("got %v behind %s", err, s.ops())
	}
}

func TestEveryConditionalPutHasAMarkOfItsOwn(t *testing.T) {
	tab, s := scripted(t, ok, ok, ok)
	for _, cond := range []table.If{table.Absent(), table.VersionIs(1), table.Always()} {
		if err := tab.Put(t.Context(), item("x"), cond); err != nil {
			t.Fatal(err)
		}
	}
	var marks []string
	for _, r := range s.requests {
		mark, _ := r.body["Item"].(map[string]any)["w"].(map[string]any)
		text, _ := mark["B"].(string)
		marks = append(marks, text)
	}
	if marks[0] == "" || marks[1] == "" || marks[0] == marks[1] || marks[2] != "" {
		t.Errorf("marks %q", marks)
	}
}

func TestDeleteWhoseAnswerWasLost(t *testing.T) {
	for name, tt := range map[string]struct {
		cond     table.If
		second   reply
		conflict bool // or else an error that leaves it open; nil if the second attempt succeeded
	}{
		"always":                     {table.Always(), ok, false},
		"absent, but something is":   {table.Absent(), condition, true},
		"by version, which is gone":  {table.VersionIs(2), condition, false},
		"by version, not done first": {table.VersionIs(2), ok, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				tab, _ := scripted(t, fault, tt.second)
				err := tab.Delete(t.Context(), key, tt.cond)
				if wantErr := tt.second.body != ok.body; (err != nil) != wantErr || errors.Is(err, table.ErrConflict) != tt.conflict {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
