package api

import (
	"errors"
	"net/http"

	"sluice/internal/api"
	"sluice/internal/core/sheet"
	"sluice/internal/core/table"
	"sluice/internal/edge"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// notReady: the run has no table yet, or never will have one.
type notReady struct{ message string }

func (e *notReady) Error() string { return e.message }

// failure says what an error means to the caller. What went wrong inside is logged, and not told.
func failure(err error, request string) reply {
	var bad *edge.BadRequest
	var invalid *strict.Error
	var conflict *start.ConflictError
	var early *notReady
	status, code, message := http.StatusInternalServerError, "INTERNAL", "something went wrong; trying again is harmless"
	switch {
	case errors.As(err, &bad):
		status, code, message = http.StatusBadRequest, "BAD_REQUEST", bad.Message
	case errors.As(err, &invalid):
		status, code, message = http.StatusBadRequest, "BAD_REQUEST", invalid.Message
	case errors.As(err, &conflict):
		status, code, message = http.StatusConflict, "CONFLICT", conflict.Error()
	case errors.As(err, &early):
		status, code, message = http.StatusConflict, "NOT_COMPLETED", early.message
	case errors.Is(err, sheet.ErrNoRun), errors.Is(err, table.ErrInvalid): // no id of a run is an invalid key
		status, code, message = http.StatusNotFound, "NOT_FOUND", "there is no such run"
	case errors.Is(err, errRoute):
		status, code, message = http.StatusNotFound, "NOT_FOUND", err.Error()
	case errors.Is(err, errMethod):
		status, code, message = http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", err.Error()
	case request != "":
		message += "; the log has more under request " + request
	}
	return reply{status, api.ErrorBody{Error: api.ErrorDetail{Code: code, Message: message}}}
}
