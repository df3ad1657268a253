package providersim

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// asked is a request as the answers see it.
type asked struct {
	provider string
	method   string
	path     string            // below the provider's prefix
	query    map[string]string // first values
	body     map[string]any
}

// read takes a request apart. Its identity is what it asks: method, path, query and body, without the credential.
func read(provider string, r *http.Request) (asked, string, error) {
	a := asked{provider: provider, method: r.Method, path: strings.TrimPrefix(r.URL.Path, "/"+provider), query: map[string]string{}}
	for name, values := range r.URL.Query() {
		if name != keyParameter {
			a.query[name] = values[0]
		}
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &a.body)
	}
	return a, identity(a), err
}

func identity(a asked) string {
	id := a.method + " /" + a.provider + a.path
	if len(a.query) > 0 {
		q := url.Values{}
		for k, v := range a.query {
			q.Set(k, v)
		}
		id += "?" + q.Encode()
	}
	if a.body != nil {
		b, _ := json.Marshal(a.body) // decoded from JSON a moment ago; keys come out sorted
		id += " " + string(b)
	}
	return id
}

const keyParameter = "api_key"

// credential finds the credential wherever clients put it.
func credential(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return token
	}
	return cmp.Or(r.Header.Get("X-Api-Key"), r.URL.Query().Get(keyParameter))
}

func write(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// writeHalf promises a whole answer and sends half of it; net/http then closes the connection.
func writeHalf(w http.ResponseWriter, status int, body any) {
	b, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b[:len(b)/2])
}
