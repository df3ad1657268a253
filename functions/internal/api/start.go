package api

import (
	"context"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/internal/core/blob"
	"sluice/internal/core/sheet"
	"sluice/internal/edge"
	"sluice/internal/start"
)

// keyHeader is where a client names its request, so that repeating it is harmless.
const keyHeader = "idempotency-key"

// maxKey bounds an idempotency key, in bytes.
const maxKey = 255

// startRun answers POST /runs: 202 for a run that is on its way, however often it is asked for.
func (h *Handler) startRun(ctx context.Context, r *request) (reply, error) {
	var req start.Request
	if err := edge.Decode(r.body, &req); err != nil {
		return reply{}, err
	}
	key := r.header[keyHeader]
	switch {
	case len(key) > maxKey:
		return reply{}, &edge.BadRequest{Message: "the Idempotency-Key is too long; 255 characters are possible"}
	case key != "" && req.Run != "":
		return reply{}, &edge.BadRequest{Message: "give either `run` or an Idempotency-Key: both name the run"}
	case key != "":
		req.Run = start.KeyID(key)
	}
	rec, err := h.Starter.Start(ctx, req)
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusAccepted, struct {
		Run    string       `json:"run"`
		Status sheet.Status `json:"status"`
	}{rec.ID, rec.Status}}, nil
}

// uploadFor is how long an upload may begin after it was asked for.
const uploadFor = time.Hour

// Upload is the answer of POST /uploads: where to put the file, and the key that starts a run with it.
type Upload struct {
	Key       string            `json:"key"`
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt time.Time         `json:"expiresAt"`
}

// upload answers POST /uploads. The name tells the format by its extension, and is kept for messages.
func (h *Handler) upload(ctx context.Context, r *request) (reply, error) {
	var req struct {
		Name string `json:"name"`
		Size int64  `json:"size"` // bytes; 0: not told
	}
	if len(r.body) > 0 {
		if err := edge.Decode(r.body, &req); err != nil {
			return reply{}, err
		}
	}
	if req.Name == "" {
		req.Name = "input"
	}
	key := start.Uploads + strings.ToLower(ulid.Make().String()) + "/" + req.Name
	switch {
	case path.Base(req.Name) != req.Name || blob.CheckName(key) != nil:
		return reply{}, &edge.BadRequest{Message: "`name` must be a file name of letters, digits, `.`, `-` and `_`"}
	case req.Size < 0:
		return reply{}, &edge.BadRequest{Message: "`size` must be the file's size in bytes"}
	}
	expires := time.Now().Add(uploadFor).UTC().Truncate(time.Second)
	signed, err := h.Presigner.PresignPut(ctx, key, req.Size, uploadFor)
	if err != nil {
		return reply{}, err
	}
	out := Upload{Key: key, Method: signed.Method, URL: signed.URL, Headers: map[string]string{}, ExpiresAt: expires}
	for name := range signed.Header {
		out.Headers[name] = signed.Header.Get(name)
	}
	return reply{http.StatusCreated, out}, nil
}
