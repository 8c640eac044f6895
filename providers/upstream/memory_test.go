package upstream

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
)

// replying is a transport whose replies have one body, and tell its length or not.
type replying struct {
	body  string
	tells bool
}

func (r replying) RoundTrip(q *http.Request) (*http.Response, error) {
	length := int64(-1)
	if r.tells {
		length = int64(len(r.body))
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(r.body)), ContentLength: length, Request: q}, nil
}

// TestLargeRepliesAreCountedInTheMemoryOfAllRequests: a whole reply or an event that does
// not fit is refused, one that fits is counted until its call ends.
func TestLargeRepliesAreCountedInTheMemoryOfAllRequests(t *testing.T) {
	const mib = 1 << 20
	whole := strings.Repeat("x", mib)
	for name, c := range map[string]struct {
		transport replying
		read      func(r *Reply) error
	}{
		"whole":                {replying{whole, true}, func(r *Reply) error { _, err := r.ReadAll(nil); return err }},
		"whole without length": {replying{whole, false}, func(r *Reply) error { _, err := r.ReadAll(nil); return err }},
		"event": {replying{"data: " + whole + "\n\n", false}, func(r *Reply) error {
			events, err := r.Events()
			if err == nil {
				_, err = events.Next()
			}
			if err != nil {
				return r.Failed(err)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			budget := memory.New(16 * mib)
			client, err := New(Options{BaseURL: "http://upstream.test", Transport: c.transport, Memory: budget})
			if err != nil {
				t.Fatal(err)
			}
			call := func() error {
				r, err := client.Do(t.Context(), shapes.Call{Path: "/v1/x", Body: []byte("{}")}, nil, "")
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				err = c.read(r)
				if err == nil && budget.Used() < mib {
					t.Errorf("%d bytes are counted for a reply of 1 MiB", budget.Used())
				}
				return err
			}
			if err := call(); err != nil || budget.Used() != 0 {
				t.Fatalf("got %v, and %d bytes are left counted", err, budget.Used())
			}
			other := budget.Claim()
			if err := other.Grow(15 * mib); err != nil {
				t.Fatal(err)
			}
			var f *Failure
			if err := call(); !errors.As(err, &f) || f.Err.Status != 503 || f.Err.Code != "overloaded" || f.Err.RetryAfter == 0 {
				t.Errorf("without room: got %v, want 503 overloaded with a time to come back", err)
			}
			other.End()
			budget.Set(mib)
			if err := call(); !errors.As(err, &f) || f.Err.Code != "upstream_invalid_response" {
				t.Errorf("larger than everything: got %v, want 502 upstream_invalid_response", err)
			}
			if budget.Used() != 0 {
				t.Errorf("%d bytes are left counted", budget.Used())
			}
		})
	}
}
