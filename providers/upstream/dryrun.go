package upstream

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
)

// Sent is a call as a provider would receive it.
type Sent struct {
	Method string
	// Path is below the provider's base address, and Query is without "?".
	Path, Query string
	// Header has no keys, and none of the values that the configuration gives to headers.
	Header http.Header
	Body   []byte
	// Times counts how often this call would be made. It is at least 1.
	Times int
}

// DryRun takes the place of a provider's network and keeps what would have been sent. Its Client runs the same code as
// any other, up to the transport, but knows neither the address nor a key of the provider. It is safe for concurrent
// use.
type DryRun struct {
	// Answer, if set, answers a call that has been kept. Otherwise every call fails.
	Answer func(Sent) (*http.Response, error)

	mu     sync.Mutex
	memory memory.Claim // of the bodies
	calls  []Sent
	full   error // why a call was not kept
}

// errNotSent fails every call of a dry run.
var errNotSent = errors.New("dry run: the call is not sent")

// Bound counts the bodies that the dry run keeps for an owner. It is called before the first call.
func (d *DryRun) Bound(pool memory.Pool, owner string) { d.memory = memory.NewClaim(pool, owner) }

// End returns the memory of the bodies, which must not be used afterwards.
func (d *DryRun) End() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.memory.End()
}

// Client returns a client that keeps the calls that like would send. like is nil for a provider without an address.
func (d *DryRun) Client(like *Client) *Client {
	c := &Client{base: &url.URL{Scheme: "http", Host: "provider.invalid"}, timeouts: Timeouts{}.withDefaults(),
		transport: d, keys: NewKeys(nil)}
	if like == nil {
		return c
	}
	if len(like.keys.All()) > 0 {
		c.keys = NewKeys([]string{redacted})
	}
	c.headers = make(map[string]string, len(like.headers))
	for name := range like.headers {
		c.headers[name] = redacted
	}
	return c
}

// RoundTrip implements http.RoundTripper.
func (d *DryRun) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	s, err := d.keep(r)
	d.mu.Unlock()
	if err == nil && d.Answer != nil {
		return d.Answer(s)
	}
	return nil, errNotSent
}

// keep keeps a request. d.mu must be held.
func (d *DryRun) keep(r *http.Request) (Sent, error) {
	body, err := d.read(r)
	if err != nil {
		d.full = err
		return Sent{}, err
	}
	s := Sent{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header.Clone(), Body: body,
		Times: 1}
	for name, values := range s.Header {
		if len(values) == 0 {
			delete(s.Header, name)
		}
	}
	for i := range d.calls {
		if k := &d.calls[i]; k.Path == s.Path && k.Query == s.Query && bytes.Equal(k.Body, s.Body) {
			k.Times++
			return s, nil
		}
	}
	d.calls = append(d.calls, s)
	return s, nil
}

// read returns the body of a request. d.mu must be held.
func (d *DryRun) read(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	if n := max(r.ContentLength, 0); n > 0 {
		const copies = 3 // the body, the reply with it, and what growing leaves behind
		if err := d.memory.Grow(copies * n); err != nil {
			return nil, dialogue.NoMemory(err)
		}
	}
	return io.ReadAll(io.LimitReader(r.Body, maxBody))
}

// Calls returns the calls in the order in which they were made. An error says why one of them was not kept.
func (d *DryRun) Calls() (calls []Sent, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls), d.full
}
