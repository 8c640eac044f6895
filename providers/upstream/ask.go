package upstream

import (
	"context"
	"net/http"
	"time"

	"stagedoor/providers/dialogue"
)

// Dialect has the functions of a shape with which SendWithKey writes a key and reads a refusal.
type Dialect struct {
	Authorize   func(h http.Header, key string)
	DecodeError func(status int, header http.Header, body []byte) *dialogue.Error
}

// SendWithKey sends r with the next of the provider's keys, and rests a key that the provider refused. A
// nil error means a status of 200 to 299, or 416. Any other error is a *Failure.
//
// Keys may belong to several accounts, and one account does not know what another one made. So a request
// with the status 404 is sent again with each of the other keys.
func (c *Client) SendWithKey(ctx context.Context, r Request, d Dialect) (*Reply, error) {
	first := c.keys.Take(time.Now(), r.Model)
	reply, err := c.askAs(ctx, r, d, first)
	if !NotFound(err) {
		return reply, err
	}
	for _, key := range c.keys.All() {
		if key == first {
			continue
		}
		// A second 404 adds nothing to the first one.
		if reply, other := c.askAs(ctx, r, d, key); other == nil {
			return reply, nil
		} else if !NotFound(other) {
			err = other
		}
	}
	return nil, err
}

// NotFound reports whether err is a provider's answer that the resource does not exist or was removed.
func NotFound(err error) bool {
	f, ok := err.(*Failure)
	return ok && f.Class == CallerFault && (f.Err.Status == http.StatusNotFound || f.Err.Status == http.StatusGone)
}

// askAs sends r with one key and turns an error status into a *Failure.
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
		body = nil // the status is enough to classify the failure
	}
	decoded := d.DecodeError(reply.Status, reply.Header, body)
	f := Refused(dialogue.Traits{}, reply.Status, reply.Header, decoded, c.secrets...)
	if key != "" {
		c.keys.RecordFailure(key, r.Model, f, time.Now())
	}
	return nil, f
}

// CleanFault returns the code and the message of a job's failure without addresses and keys, so that a
// client may read them.
func (c *Client) CleanFault(code, message string) (cleanCode, cleanMessage string) {
	decoded := dialogue.Reported(http.StatusBadRequest, "", code, message)
	f := InStream(dialogue.Traits{}, decoded, c.secrets...)
	cleanCode, _ = f.Err.Code.(string)
	return cleanCode, f.Err.Message
}
