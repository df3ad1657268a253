package api

import (
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/internal/core/blob"
	"sluice/internal/start"
	"sluice/internal/strict"
)

// uploadFor is how long an upload may begin after it was asked for.
const uploadFor = time.Hour

// UploadRequest asks where to put a file.
type UploadRequest struct {
	Name string `json:"name,omitempty"` // tells the format by its extension, and is kept for messages
	Size int64  `json:"size,omitempty"` // bytes; 0: not told
	// SHA256 is the digest of the file, in hex. The same file has the same key then, so that a start that is repeated with it
	// gives the same run. No other file is taken there, and a run whose file has become another one is refused.
	SHA256 string `json:"sha256,omitempty"`
}

// sha256Hex is how many digits a digest has.
const sha256Hex = 64

// Upload is where to put a file, and the key that starts a run with it.
type Upload struct {
	Key       string            `json:"key"`
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt time.Time         `json:"expiresAt"`
}

// upload answers POST /uploads.
func (h *Handler) upload(r *http.Request) (answer, error) {
	var req UploadRequest
	if err := decodeIfAny(r, &req); err != nil {
		return answer{}, err
	}
	if req.Name == "" {
		req.Name = "input"
	}
	key := start.UploadKey(req.SHA256, strings.ToLower(ulid.Make().String()), req.Name)
	switch {
	case req.SHA256 != "" && (len(req.SHA256) != sha256Hex || strings.Trim(req.SHA256, "0123456789abcdef") != ""):
		return answer{}, strict.Errorf("`sha256` must be the file's digest: 64 hexadecimal digits in lower case")
	case path.Base(req.Name) != req.Name || blob.CheckName(key) != nil:
		return answer{}, strict.Errorf("`name` must be a file name of letters, digits, `.`, `-` and `_`")
	case req.Size < 0:
		return answer{}, strict.Errorf("`size` must be the file's size in bytes")
	}
	expires := time.Now().Add(uploadFor).UTC().Truncate(time.Second)
	link, err := h.Links.Upload(r.Context(), key, blob.Expected{Size: req.Size, SHA256: req.SHA256}, uploadFor)
	if err != nil {
		return answer{}, err
	}
	out := Upload{Key: key, Method: link.Method, URL: link.URL, Headers: link.Header, ExpiresAt: expires}
	if out.Headers == nil {
		out.Headers = map[string]string{}
	}
	return answer{status: http.StatusCreated, body: out}, nil
}
