package upstream

import (
	"context"
	"net/http"
	"time"

	"stagedoor/providers/dialogue"
)

// Dialect is what Ask needs to know of the shape that a provider is asked in.
type Dialect struct {
	Authorize   func(h http.Header, key string)
	DecodeError func(status int, header http.Header, body []byte) *dialogue.Error
}

// Ask is Send with a key of the provider's, which is judged by what comes of it.
// A nil error means a status of 200 to 299, or 416; any other is a *Failure.
//
// Keys may be of several accounts, and what one has made is unknown to another:
// a request that is answered 404 is sent again with each of the others.
func (c *Client) Ask(ctx context.Context, r Request, d Dialect) (*Reply, error) {
	first := c.keys.Take(time.Now(), r.Model)
	reply, err := c.askAs(ctx, r, d, first)
	if !NotFound(err) {
		return reply, err
	}
	for _, key := range c.keys.All() {
		if key == first {
			continue
		}
		// Only an answer says more than the first one did.
		if reply, other := c.askAs(ctx, r, d, key); other == nil {
			return reply, nil
		} else if !NotFound(other) {
			err = other
		}
	}
	return nil, err
}

// NotFound reports whether an error is that what was asked for is not there, or
// not any more.
func NotFound(err error) bool {
	f, ok := err.(*Failure)
	return ok && f.Class == CallerFault && (f.Err.Status == http.StatusNotFound || f.Err.Status == http.StatusGone)
}

func (c *Client) askAs(ctx context.Context, r Request, d Dialect, key string) (*Reply, error) {
	reply, err := c.Send(ctx, r, d.Authorize, key)
	if err != nil {
		return nil, err
	}
	if reply.Status/100 == 2 || reply.Status == http.StatusRequestedRangeNotSatisfiable {
		return reply, nil
	}
	defer reply.Close()
	body, err := reply.ReadAll(nil)
	if err != nil {
		body = nil // the status is enough
	}
	f := Refused(dialogue.Traits{}, reply.Status, reply.Header, d.DecodeError(reply.Status, reply.Header, body), c.keys.All()...)
	if key != "" {
		c.keys.Judge(key, r.Model, f, time.Now())
	}
	return nil, f
}

// Fault returns the code and message of a failure after a request was accepted, in the form that
// a client may read.
func (c *Client) Fault(code, message string) (cleanCode, cleanMessage string) {
	f := InStream(dialogue.Traits{}, &dialogue.Error{Status: http.StatusBadRequest, Code: code, Message: message}, c.keys.All()...)
	cleanCode, _ = f.Err.Code.(string)
	return cleanCode, f.Err.Message
}
