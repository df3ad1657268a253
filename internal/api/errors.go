package api

import (
	"errors"
	"fmt"
	"net/http"

	"sluice/internal/core/mapspec"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// The codes of errors, which programs can rely on; docs/errors.md explains them.
const (
	BadRequest       = "BAD_REQUEST"            // 400
	Unauthorized     = "UNAUTHORIZED"           // 401
	Forbidden        = "FORBIDDEN"              // 403
	NotFound         = "NOT_FOUND"              // 404
	MethodNotAllowed = "METHOD_NOT_ALLOWED"     // 405
	Conflict         = "CONFLICT"               // 409: the id is another run's, or the key another extension's
	NotCompleted     = "NOT_COMPLETED"          // 409: there is no finished table
	Ended            = "ENDED"                  // 409: the run is over
	AtWork           = "AT_WORK"                // 409: the run must have ended, or be paused
	NobodyWaits      = "NOBODY_WAITS"           // 404: for an answer of this key
	TooLate          = "TOO_LATE"               // 410: rows did wait for this answer
	TooLarge         = "TOO_LARGE"              // 413
	UnsupportedMedia = "UNSUPPORTED_MEDIA_TYPE" // 415
	Internal         = "INTERNAL"               // 500
	NoAnswer         = "NO_ANSWER"              // 504: a call that was made, and whose outcome is not known
)

// ErrorBody is the one form of errors.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail is a code for programs and a message for people.
type ErrorDetail struct {
	Code     string            `json:"code"`
	Message  string            `json:"message"`
	Problems []mapspec.Problem `json:"problems,omitempty"` // mistakes in a map or tool file, each with its place
}

// problemError is an error that is told as it is.
type problemError struct {
	status int
	detail ErrorDetail
}

func (e *problemError) Error() string { return e.detail.Code + ": " + e.detail.Message }

func problem(status int, code, format string, args ...any) error {
	return &problemError{status, ErrorDetail{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// TableTooLarge is the error of a table that cannot be written while somebody waits for it.
func TableTooLarge(format string) error {
	return problem(http.StatusRequestEntityTooLarge, TooLarge, "the table is too large to be written as %s while you wait; a completed run has it as csv, and `sluice rows` shows any", format)
}

// failure says what an error means to the caller. What went wrong inside is logged, and not told.
func (h *Handler) failure(r *http.Request, err error) answer {
	status, detail := h.meaning(r, err)
	return answer{status: status, body: ErrorBody{Error: detail}}
}

func (h *Handler) meaning(r *http.Request, err error) (int, ErrorDetail) {
	var told *problemError
	var bad *strict.Error
	var conflict *start.ConflictError
	switch {
	case errors.As(err, &told):
		return told.status, told.detail
	case errors.As(err, &bad):
		detail := ErrorDetail{Code: BadRequest, Message: bad.Message}
		var problems mapspec.Problems
		if errors.As(err, &problems) {
			detail.Problems = problems
		}
		return http.StatusBadRequest, detail
	case errors.As(err, &conflict):
		return http.StatusConflict, ErrorDetail{Code: Conflict, Message: conflict.Error()}
	case errors.Is(err, run.ErrEnded):
		return http.StatusConflict, ErrorDetail{Code: Ended, Message: err.Error()}
	case errors.Is(err, run.ErrOtherRun), errors.Is(err, run.ErrOtherSource):
		return http.StatusConflict, ErrorDetail{Code: Conflict, Message: err.Error()}
	case errors.Is(err, run.ErrAtWork), errors.Is(err, run.ErrNoInput):
		return http.StatusConflict, ErrorDetail{Code: AtWork, Message: err.Error()}
	case errors.Is(err, sheet.ErrNoRun), errors.Is(err, table.ErrInvalid): // no id of a run is an invalid key
		return http.StatusNotFound, ErrorDetail{Code: NotFound, Message: "there is no such run"}
	}
	message := "something went wrong; trying again is harmless"
	if h.RequestID != nil {
		if id := h.RequestID(r.Context()); id != "" {
			message += "; the log has more under request " + id
		}
	}
	return http.StatusInternalServerError, ErrorDetail{Code: Internal, Message: message}
}
