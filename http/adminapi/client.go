package adminapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
)

// Client sends requests to the administration API. The commands use it.
type Client struct{ transport http.RoundTripper }

// NewClient returns a Client for the gateway that transport connects to.
func NewClient(transport http.RoundTripper) *Client { return &Client{transport} }

// NewInProcessClient returns a Client that calls h directly, for commands that work on a data
// directory without a running gateway.
func NewInProcessClient(h http.Handler) *Client { return &Client{inProcess{h}} }

// Do sends in as JSON (no body if it is nil) and decodes the reply into out. An error reply of the
// API is returned as an error with its message.
// The text of the API's error becomes the error of the command without anything before it, because
// it is written for the person who typed the command.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	body := []byte(nil)
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	address := "http://stagedoor" + Prefix + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return &url.Error{Op: method, URL: address, Err: err} // as http.Client does, so that callers can recognise it
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		var f Failure
		if json.Unmarshal(text, &f) != nil || f.Error.Message == "" {
			return errors.New(res.Status)
		}
		return errors.New(f.Error.Message)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("cannot read the gateway's reply (does it run another version?): %w", err)
	}
	return nil
}

// maxReply is the number of bytes that Do reads of a reply. A page of 500 receipts is about 1 MiB.
const maxReply = 64 << 20

// inProcess is an http.RoundTripper that calls a handler.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	p.handler.ServeHTTP(rec, r)
	return &http.Response{StatusCode: rec.status, Status: fmt.Sprintf("%d %s", rec.status, http.StatusText(rec.status)),
		Header: rec.header, Body: io.NopCloser(&rec.body), Request: r}, nil
}

// recorder is an http.ResponseWriter that keeps the reply in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
