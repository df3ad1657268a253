package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"sluice/internal/answers"
	"sluice/internal/core/run"
	"sluice/internal/strict"
)

// Answered is what an answer has come to.
type Answered struct {
	Key     string          `json:"key"`
	Taken   int             `json:"taken"`   // rows that go on with it
	Already int             `json:"already"` // rows that had an answer, which stands
	At      time.Time       `json:"at"`      // of the first answer
	Value   json.RawMessage `json:"value"`   // the first answer
	Runs    []string        `json:"runs"`    // whose rows they are
}

// answerEvent answers POST /answers. The first answer counts; another one is acknowledged, and changes nothing (E2).
func (h *Handler) answerEvent(r *http.Request) (answer, error) {
	var req answers.Request
	if err := decode(r, &req); err != nil {
		return answer{}, err
	}
	switch {
	case req.Key == "":
		return answer{}, strict.Errorf("`key` is missing: it is the event's")
	case len(req.Value) == 0:
		return answer{}, strict.Errorf("`value` is missing: it is the answer, any JSON")
	}
	got, err := h.Desk.Answer(r.Context(), req.Key, req.Value, run.Whose{Run: req.Run})
	switch {
	case errors.Is(err, run.ErrBadAnswer):
		return answer{}, strict.Wrap(err)
	case errors.Is(err, run.ErrNobodyWaits):
		return answer{}, problem(http.StatusNotFound, NobodyWaits, "%s", err)
	case errors.Is(err, run.ErrTooLate):
		return answer{}, problem(http.StatusGone, TooLate, "%s", err)
	case err != nil:
		return answer{}, err
	}
	out := Answered{Key: got.Key, Taken: got.Taken, Already: got.Already, At: got.At, Value: got.Value, Runs: []string{}}
	seen := map[string]bool{}
	for _, shard := range got.Wake {
		if !seen[shard.Run] {
			seen[shard.Run] = true
			out.Runs = append(out.Runs, shard.Run)
		}
	}
	return ok(out)
}

// answerPage is the page of a link, on which a person answers; package answers has it.
func (h *Handler) answerPage(w http.ResponseWriter, r *http.Request) { h.AnswerPage.ServeHTTP(w, r) }
