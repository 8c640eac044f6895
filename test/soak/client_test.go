package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// errLost ends a writer's turn, because no whole answer came and the call may or may
// not have been carried out.
var errLost = errors.New("no whole answer came")

const callTimeout = time.Minute

// answer is one that came whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// gateway holds the address of the current process under test.
type gateway struct {
	url  string
	http *http.Client
}

// newGateway returns clients for an address, which all processes of a run have in turn.
func newGateway(address string) *gateway {
	return &gateway{url: "http://" + address, http: newHTTP(nil)}
}

// newHTTP makes a client that follows nothing. A body that ends too early is an
// error of its reader.
func newHTTP(jar http.CookieJar) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Jar: jar, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// call sends a request; its error is errLost or the caller's mistake.
func call(c *http.Client, r *http.Request) (answer, error) {
	res, err := c.Do(r)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errLost, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errLost, err)
	}
	return answer{res.StatusCode, res.Header, body}, nil
}

// get asks for a path with a bearer token, if there is one.
func (g *gateway) get(ctx context.Context, path, bearer string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	if err != nil {
		return answer{}, err
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	return call(g.http, r)
}

// postJSON sends a model request under an id of its client's choice.
func (g *gateway) postJSON(ctx context.Context, path, key, id string, body []byte) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", id)
	return call(g.http, r)
}

// administer calls the API of administration.
func (g *gateway) administer(ctx context.Context, method, path, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, g.url+"/admin/v1"+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	r.Header.Set("Content-Type", "application/json")
	return call(g.http, r)
}

// postForm sends a form with a client's cookies.
func (g *gateway) postForm(ctx context.Context, c *http.Client, path string, form url.Values) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return call(c, r)
}

// String returns the status and the beginning of the body, for a line of the report.
func (a *answer) String() string { return fmt.Sprintf("%d %.300s", a.status, a.body) }
