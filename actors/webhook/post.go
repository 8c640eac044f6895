package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"stagedoor/providers/jsonw"
	"stagedoor/state/work"
)

// tryWithin bounds one try from the lookup of the name to the reply.
const tryWithin = 10 * time.Second

// Endpoint is a server to which events are sent.
type Endpoint struct {
	work.Webhook
	URL string
	Key []byte // from ParseSecret
	// Allow has networks that may be called although they are not public.
	Allow []netip.Prefix
	// Mail is the address of a person who gets the events by Send in place of a server that gets them at URL.
	Mail string
	Send func(ctx context.Context, d *work.Delivery) error
}

// poster sends deliveries to one endpoint.
type poster struct {
	endpoint Endpoint
	client   *http.Client
	now      func() time.Time
}

// newPoster returns the client for one endpoint. Its guard checks the address that the name
// resolves to when the connection is made, and it follows no redirects, so that an endpoint cannot
// lead the gateway into the operator's network.
func newPoster(e Endpoint, now func() time.Time) *poster {
	dialer := &net.Dialer{Timeout: tryWithin, Control: guard{e.Allow}.control}
	return &poster{endpoint: e, now: now, client: &http.Client{
		Transport: &http.Transport{
			// No proxy is used whatever the environment says, because the guard would check the
			// address of the proxy.
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    tryWithin,
			MaxIdleConnsPerHost:    perEndpoint,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 16 << 10,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // replies are discarded
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// close closes idle connections.
func (p *poster) close() { p.client.CloseIdleConnections() }

// try sends one delivery once, by mail if the endpoint has Send and as a signed POST otherwise. The errors in its
// outcome do not contain the address of the endpoint.
func (p *poster) try(ctx context.Context, d *work.Delivery) outcome {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	if p.endpoint.Send != nil {
		if err := p.endpoint.Send(ctx, d); err != nil {
			return outcome{err: err}
		}
		return outcome{status: http.StatusOK}
	}
	request, err := p.request(ctx, d)
	if err != nil {
		return outcome{err: errors.New("the endpoint's address cannot be used")}
	}
	reply, err := p.client.Do(request)
	if err != nil {
		return outcome{err: withoutAddress(err)}
	}
	defer reply.Body.Close()
	// A short reply is read to its end, so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, reply.Body, 4<<10)
	return outcome{status: reply.StatusCode}
}

// request builds a signed request. The time in the signature is that of the try, so that a receiver
// can refuse old requests.
func (p *poster) request(ctx context.Context, d *work.Delivery) (*http.Request, error) {
	body := payload(d)
	at := p.now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"stagedoor"},
		"Webhook-Id":        {d.Event},
		"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
		"Webhook-Signature": {signature(p.endpoint.Key, d.Event, at, body)},
	}
	return r, nil
}

// payload returns the JSON body of a delivery, which is the same for every try. An event that has no data of its own
// names its subject instead.
func payload(d *work.Delivery) []byte {
	w := jsonw.Writer{}
	w.Object().Key("id").String(d.Event).Key("object").String("event")
	w.Key("created_at").Int(d.Created.Unix()).Key("type").String(d.Type)
	if w.Key("data"); d.Data != nil {
		w.Raw(d.Data).End()
		return w.Buf
	}
	w.Object().Key("id").String(d.Subject).End().End()
	return w.Buf
}

// withoutAddress returns the reason for a failure without the address of the endpoint, which may hold a secret.
func withoutAddress(err error) error {
	var name *net.DNSError
	switch {
	case errors.Is(err, errForbidden):
		return errForbidden
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", tryWithin)
	case errors.As(err, &name):
		return errors.New("the endpoint's name was not resolved")
	}
	return errors.New("the endpoint was not reached")
}
