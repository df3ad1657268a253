package call

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"sluice/internal/core/mapspec"
)

// Digest identifies what a call asks: the same digest means that the same answer serves. It covers the meaning of
// the tool, the account it is asked for, and the input.
type Digest [16]byte

// String is the digest in 22 characters that are safe in keys and file names.
func (d Digest) String() string { return base64.RawURLEncoding.EncodeToString(d[:]) }

// IsZero reports whether there is no digest: the call is not shared with others.
func (d Digest) IsZero() bool { return d == Digest{} }

// DigestOf is the digest of a call of tool with this input (canonical JSON).
func DigestOf(tool *mapspec.Tool, input json.RawMessage) Digest {
	auth := &tool.Provider.Auth
	h := sha256.New()
	for _, part := range []string{tool.Digest, auth.Secret, auth.User, auth.ClientID} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	h.Write(input)
	return Digest(h.Sum(nil)[:16])
}

// Kept is the identity of what a column keeps of a call: the digest, where the column's own expressions are part
// of the answer's meaning. It is what the sheet stores, so that a resumed run can share results too.
func (d Digest) Kept(column, step int) string {
	h := sha256.New()
	h.Write(d[:])
	h.Write(strconv.AppendInt(nil, int64(column), 10))
	h.Write([]byte{'/'})
	h.Write(strconv.AppendInt(nil, int64(step), 10))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// ID names a logical call for good: run, row, column, step. Request ids, fences and jitter are derived from it.
type ID string

// NewID derives the id of a call.
func NewID(run string, row int64, column, step int) ID {
	return ID(run + "/" + strconv.FormatInt(row, 10) + "/" + strconv.Itoa(column) + "/" + strconv.Itoa(step))
}

// SharedID names the call that identical calls of a run are together: whichever row makes it, it is the same call to
// the provider.
func SharedID(run string, d Digest) ID { return ID(run + "/=" + d.String()) }

// Cursor is where a call stands among its attempts. It outlives parks and crashes (R6, R8).
type Cursor struct {
	Next    int    // number of the next attempt, from 0; it counts against the tool's `retry.attempts` (R7)
	Refused int    // definite refusals so far, each of which moves the call to a new request id
	Batch   *Batch // with whom it must be sent again, if at all; nil: by itself, or with anybody
}

// Request is the id of the call's physical request: it stays the same over ambiguous failures and moves on only
// with a definite refusal (R8).
func (id ID) Request(refusals int) string {
	sum := sha256.Sum256([]byte("request/" + string(id) + "#" + strconv.Itoa(refusals)))
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// Fence is the call's stable key for providers that take one.
func (id ID) Fence() string {
	sum := sha256.Sum256([]byte("fence/" + string(id)))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}
