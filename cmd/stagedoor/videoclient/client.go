package videoclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client asks one gateway with one key. Any goroutine may use it.
type Client struct {
	base string
	key  string
	http *http.Client
	pace time.Duration // the first pause after a failure
	// Waits, if not nil, is called when a request failed and is tried again after wait.
	Waits func(cause error, wait time.Duration)
}

// The times in which a gateway must be reached and begin its reply. A whole reply has no bound, because a stream of
// events lasts as long as its job, and a download as long as its connection needs.
const (
	dialTimeout  = 10 * time.Second
	replyTimeout = 2 * time.Minute
)

// New makes a client of the gateway at address, scheme://host[:port][/path]. An address with a query or with user and
// password is refused. Redirects are not followed, so that the key goes to that gateway only.
func New(address, key string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of a gateway: use one like http://127.0.0.1:8080", address)
	}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: replyTimeout,
		ForceAttemptHTTP2:     true,
	}
	return &Client{base: strings.TrimRight(address, "/"), key: key, pace: firstPause, http: &http.Client{Transport: t,
		// The key goes to the gateway that was named and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Error is a reply of the gateway that reports an error.
type Error struct {
	Status  int
	Code    string
	Message string
	// RetryAfter is the wait that the gateway asks for, or 0 if it asks for none.
	RetryAfter time.Duration
}

// Error implements error. A reply that is not the gateway's has no message, and its status says the most.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the gateway answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return e.Message
}

// passing reports whether the same request may succeed later.
func (e *Error) passing() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout ||
		e.Status >= 500 && e.Status != http.StatusNotImplemented
}

// body is the body of a request. It is kept in memory, so that each attempt can send it. A nil body is none.
type body struct {
	media string
	data  []byte
}

// call sends one request and returns the reply, whose body the caller closes. A reply of 300 and more is an *Error,
// except 416 (the requested range is not there), which downloads need.
func (c *Client) call(ctx context.Context, method, path string, b *body, header http.Header) (*http.Response, error) {
	var content io.Reader
	if b != nil {
		content = bytes.NewReader(b.data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if b != nil {
		req.Header.Set("Content-Type", b.media)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	if res.StatusCode < 300 || res.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refusal(res)
}

// plain returns an error without the address that was called, which the user typed and knows.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// maxError bounds what is read of a refusal.
const maxError = 64 << 10

// refusal returns the error for a reply with an error status. It reads a bounded part of the body.
func refusal(res *http.Response) error {
	e := &Error{Status: res.StatusCode}
	if seconds, err := time.ParseDuration(res.Header.Get("Retry-After") + "s"); err == nil && seconds > 0 {
		e.RetryAfter = seconds
	}
	var doc struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxError))
	if err == nil && json.Unmarshal(text, &doc) == nil {
		e.Code, e.Message = doc.Error.Code, doc.Error.Message
	}
	return e
}

// maxReply bounds a document: a page of a hundred jobs with the longest prompts
// is thirteen megabytes.
const maxReply = 32 << 20

// document sends a request and decodes the JSON of the reply into out. It repeats the request a few times after a
// temporary failure, so the request must be safe to repeat.
func (c *Client) document(ctx context.Context, method, path string, b *body, header http.Header, out any) error {
	p := pause{first: c.pace, most: tries}
	for {
		err := c.documentOnce(ctx, method, path, b, header, out)
		if err == nil || !passing(err) {
			return err
		}
		if again := p.sleep(ctx, err, c.Waits); again != nil {
			return again
		}
	}
}

// documentOnce makes one call and decodes its reply into out. Content that is no JSON is errForeign: the address may
// lead to another server.
func (c *Client) documentOnce(ctx context.Context, method, path string, b *body, header http.Header, out any) error {
	res, err := c.call(ctx, method, path, b, header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return errForeign
	}
	return nil
}

// errForeign is the error for a reply that cannot be a gateway's.
var errForeign = errors.New("what answers at this address is no gateway, or one of another version")
