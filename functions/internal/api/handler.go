// Package api is the HTTP side of the stack, behind API Gateway: it starts runs and shows them. It owns routes, bodies
// and statuses; it never does a run's work, and never hands out anything that is not the caller's to have: rows travel
// by signed URLs of the bucket.
package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
	"sluice/internal/edge"
	"sluice/internal/objects"
	"sluice/internal/start"
)

// Starter begins runs.
type Starter interface {
	Start(ctx context.Context, req start.Request) (*sheet.Run, error)
}

// Presigner signs requests to the bucket; objects.Bucket is one.
type Presigner interface {
	PresignPut(ctx context.Context, name string, size int64, expires time.Duration) (objects.Signed, error)
	PresignGet(ctx context.Context, name, filename string, expires time.Duration) (string, error)
}

// Handler answers requests. Its fields are set once.
type Handler struct {
	Store     *store.Store
	Starter   Starter
	Presigner Presigner
	Log       *slog.Logger
}

// reply is a status and what is written as JSON.
type reply struct {
	status int
	body   any
}

// route is one row of the table of routes: segments of the path, `*` for an id.
type route struct {
	method, path string
	do           func(h *Handler, ctx context.Context, r *request) (reply, error)
}

var routes = []route{
	{http.MethodPost, "runs", (*Handler).startRun},
	{http.MethodGet, "runs", (*Handler).listRuns},
	{http.MethodGet, "runs/*", (*Handler).showRun},
	{http.MethodGet, "runs/*/export", (*Handler).exportRun},
	{http.MethodPost, "uploads", (*Handler).upload},
}

// request is what a route sees.
type request struct {
	id     string // the path's `*`
	body   []byte
	query  map[string]string
	header map[string]string // names in lower case
}

// Handle answers one request. It returns no error: every failure is an answer.
func (h *Handler) Handle(ctx context.Context, in events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	began := time.Now()
	rep, path, err := h.route(ctx, in)
	log := edge.With(ctx, h.Log)
	line := []any{slog.String(edge.KeyMethod, in.HTTPMethod), slog.String(edge.KeyRoute, path)}
	if err != nil {
		var id string
		if lc, ok := lambdacontext.FromContext(ctx); ok {
			id = lc.AwsRequestID
		}
		if rep = failure(err, id); rep.status >= http.StatusInternalServerError {
			line = append(line, slog.Any(edge.KeyError, err))
		}
	}
	log.Info("request", append(line, slog.Int(edge.KeyStatus, rep.status), slog.Int64(edge.KeyMillis, time.Since(began).Milliseconds()))...)
	return respond(rep), nil
}

func (h *Handler) route(ctx context.Context, in events.APIGatewayProxyRequest) (reply, string, error) {
	path := strings.Trim(in.Path, "/")
	known := false
	for _, r := range routes {
		id, ok := match(r.path, path)
		if !ok {
			continue
		}
		known = true
		if r.method != in.HTTPMethod {
			continue
		}
		req := &request{id: id, body: []byte(in.Body), query: in.QueryStringParameters, header: map[string]string{}}
		for name, value := range in.Headers {
			req.header[strings.ToLower(name)] = value
		}
		if in.IsBase64Encoded {
			var err error
			if req.body, err = base64.StdEncoding.DecodeString(in.Body); err != nil {
				return reply{}, r.path, &edge.BadRequest{Message: "the body is not valid base64"}
			}
		}
		rep, err := r.do(h, ctx, req)
		return rep, r.path, err
	}
	if known {
		return reply{}, "", errMethod
	}
	return reply{}, "", errRoute
}

// match holds a path against a pattern.
func match(pattern, path string) (id string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return "", false
	}
	for i, segment := range want {
		switch {
		case segment == "*" && have[i] != "":
			id = have[i]
		case segment != have[i]:
			return "", false
		}
	}
	return id, true
}

var (
	errRoute  = errors.New("there is nothing here; known are POST and GET /runs, GET /runs/{id}, GET /runs/{id}/export, POST /uploads")
	errMethod = errors.New("this method is not possible here")
)

func respond(r reply) events.APIGatewayProxyResponse {
	b, err := json.Marshal(r.body)
	if err != nil {
		r.status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"INTERNAL","message":"the answer cannot be written"}}`)
	}
	return events.APIGatewayProxyResponse{StatusCode: r.status, Body: string(b),
		Headers: map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}}
}
