package runmap

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxReason bounds what a record keeps of a cause, in bytes.
const maxReason = 2000

// nested bounds how deep causes are unpacked: an execution in an execution in an execution.
const nested = 5

// reason says in one line why a run failed. A function's failure reaches the machine as a report in JSON, and a nested
// execution's as its description, which holds the former as text.
func reason(name, cause string) string {
	text := unpack(cause, nested)
	switch {
	case text == "" && name == "":
		text = "the execution failed and gave no reason"
	case text == "":
		text = name
	case name != "" && name != "RunFailed" && name != "States.TaskFailed":
		text = name + ": " + text
	}
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "..."
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "?")
	}
	return text
}

func unpack(cause string, depth int) string {
	var report struct {
		ErrorMessage *string `json:"errorMessage"`
		Cause        *string `json:"Cause"`
	}
	if depth == 0 || json.Unmarshal([]byte(cause), &report) != nil {
		return cause
	}
	switch {
	case report.ErrorMessage != nil:
		return *report.ErrorMessage
	case report.Cause != nil:
		return unpack(*report.Cause, depth-1)
	}
	return cause
}
