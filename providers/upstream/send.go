package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
)

// Request is a call with any method and body, for shapes that upload or download files or poll jobs.
type Request struct {
	Method string
	Path   string // below the provider's base address
	Query  string // without "?"
	// Location, if set, is an absolute address of a download that the provider gave. It replaces Path and
	// Query. It may be on another host, which never receives a key.
	Location string
	Header   http.Header // of the body, with its Content-Type; may be nil
	// Body returns a new reader of the body each time it is called. A nil Body means an empty one. Length is its
	// size in bytes, or -1 if that is not known.
	Body   func() (io.ReadCloser, error)
	Length int64
	// Model is the model for which a key rests after a rate limit; "" if the request is about no model.
	Model string
	// Owner is charged with the memory of a large reply. "" means the owner that WithOwner gave the context.
	Owner string
}

type ownerKey struct{}

// WithOwner returns a context in which Requests without an Owner count their large replies for owner. Providers
// of videos use it, because they make several calls for one job and do not know its owner.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// ownerOf returns the owner of a Request that is sent in ctx.
func ownerOf(ctx context.Context, r *Request) string {
	if r.Owner != "" {
		return r.Owner
	}
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

// maxRedirects bounds the redirects that a download follows. Other calls follow none.
const maxRedirects = 3

var errLocation = errors.New("the provider gave an address that is not followed")

// Observer gets the Requests that are sent in a context.
type Observer interface {
	// Observe is called before a Request is sent, whose Body it may replace. The function that it returns is called
	// with the reply, or with the error of a call that got no reply.
	Observe(r *Request) (answered func(*Reply, error))
}

type observerKey struct{}

// WithObserver returns a context in which o observes all Requests.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

// ObserverOf returns the observer of a context, or nil.
func ObserverOf(ctx context.Context) Observer {
	o, _ := ctx.Value(observerKey{}).(Observer)
	return o
}

// Send is like Do for a Request. Read the body of its Reply with Body.
func (c *Client) Send(
	ctx context.Context,
	r Request,
	authorize func(h http.Header, key string),
	key string,
) (*Reply, error) {
	o := ObserverOf(ctx)
	if o == nil {
		return c.send(ctx, r, authorize, key)
	}
	answered := o.Observe(&r)
	reply, err := c.send(ctx, r, authorize, key)
	answered(reply, err)
	return reply, err
}

// send sends r for Send.
func (c *Client) send(
	ctx context.Context,
	r Request,
	authorize func(h http.Header, key string),
	key string,
) (*Reply, error) {
	to, err := c.address(r)
	if err != nil {
		return nil, unusable(err)
	}
	reply := &Reply{memory: memory.NewClaim(c.memory, ownerOf(ctx, &r))}
	reply.watch.start(ctx, c.timeouts)
	for hop := 0; ; hop++ {
		if err := c.hop(reply, r, to, authorize, key); err != nil {
			reply.watch.stop()
			return nil, err
		}
		next := reply.Header.Get("Location")
		if r.Location == "" || reply.Status < 300 || reply.Status > 399 || next == "" {
			c.recordKeySuccess(key, reply)
			return reply, nil
		}
		reply.body.Close()
		if to, err = c.follow(to, next, hop); err != nil {
			reply.watch.stop()
			return nil, unusable(err)
		}
	}
}

// address returns the address that r is sent to first.
func (c *Client) address(r Request) (*url.URL, error) {
	if r.Location != "" {
		return c.follow(c.base, r.Location, 0)
	}
	u, err := c.below(r.Path)
	u.RawQuery = r.Query
	return &u, err
}

// follow returns the address of a download, which location gives relative to from. It refuses a plain address unless
// the provider's own address is plain, so that a download cannot lose its encryption on the way, and it refuses more
// than maxRedirects redirects. hop is the number of redirects before this one.
func (c *Client) follow(from *url.URL, location string, hop int) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || hop >= maxRedirects || to.Host == "" || to.User != nil ||
		(to.Scheme != "https" && to.Scheme != c.base.Scheme) {
		return nil, errLocation
	}
	to.Fragment = ""
	return to, nil
}

// isOwn reports whether scheme, host and port of an address are the provider's.
func (c *Client) isOwn(to *url.URL) bool {
	return to.Scheme == c.base.Scheme && strings.EqualFold(to.Hostname(), c.base.Hostname()) &&
		portOf(to) == portOf(c.base)
}

// portOf returns the port of an address, also if it is only implied by the scheme.
func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// hop sends the request to one address. It adds the key and the configured headers only if the address is the
// provider's own.
func (c *Client) hop(
	reply *Reply,
	r Request,
	to *url.URL,
	authorize func(h http.Header, key string),
	key string,
) error {
	h := r.Header.Clone()
	if h == nil {
		h = make(http.Header, 4)
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = userAgent
	}
	ctx := reply.watch.ctx
	if !c.isOwn(to) {
		ctx = context.WithValue(ctx, named{}, true)
	} else {
		for k, v := range c.headers {
			h.Set(k, v)
		}
		if key != "" {
			authorize(h, key)
		}
	}
	req := (&http.Request{Method: r.Method, URL: to, Host: to.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if r.Body != nil {
		body, err := r.Body()
		if err != nil {
			return unusable(err)
		}
		req.Body, req.GetBody, req.ContentLength = body, r.Body, r.Length
	}
	if f := reply.answered(c.transport.RoundTrip(req)); f != nil {
		return f
	}
	return nil
}

// unusable returns the failure of a call that could not be sent.
func unusable(err error) *Failure {
	return &Failure{Class: NotSent, Err: dialogue.BadUpstream(err.Error())}
}

// Body returns the reply's body, inflated if it was compressed. It is not bounded. Pass errors of reading it to
// Failed.
func (r *Reply) Body() (io.Reader, error) {
	if err := r.decompress(); err != nil {
		return nil, r.Failed(err)
	}
	return r.src, nil
}

// Length returns the size of the body in bytes, or -1 if the upstream did not send it.
func (r *Reply) Length() int64 { return r.length }
