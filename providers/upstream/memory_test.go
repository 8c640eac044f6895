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
	return &http.Response{
		StatusCode:    200,
		Header:        http.Header{},
		Body:          io.NopCloser(strings.NewReader(r.body)),
		ContentLength: length,
		Request:       q,
	}, nil
}

// A pool has a bound and counts what each owner has.
type pool struct {
	capacity, most, used int64
	owners               map[string]int64
}

var errFull = errors.New("full")

func (p *pool) Take(owner string, n int64) error {
	if p.used+n > p.capacity {
		return errFull
	}
	p.Adopt(owner, n)
	return nil
}

func (p *pool) Adopt(owner string, n int64) { p.used += n; p.owners[owner] += n }
func (p *pool) Give(owner string, n int64)  { p.Adopt(owner, -n) }
func (p *pool) Most() int64                 { return p.most }

// TestLargeRepliesAreCountedForTheirOwner: a whole reply or an event that does not fit is
// refused, one that fits is counted for the owner of its call until that ends.
func TestLargeRepliesAreCountedForTheirOwner(t *testing.T) {
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
			budget := &pool{capacity: 16 * mib, most: 8 * mib, owners: make(map[string]int64)}
			client, err := New(Options{BaseURL: "http://upstream.test", Transport: c.transport, Memory: budget})
			if err != nil {
				t.Fatal(err)
			}
			do := func() (*Reply, error) {
				return client.Do(t.Context(), shapes.Call{Path: "/v1/x", Body: []byte("{}"), Owner: "ann"}, nil, "")
			}
			send := func() (*Reply, error) {
				return client.Send(t.Context(), Request{Method: http.MethodGet, Path: "/v1/x", Owner: "ann"}, nil, "")
			}
			inherit := func() (*Reply, error) {
				return client.Send(WithOwner(t.Context(), "ann"), Request{Method: http.MethodGet, Path: "/v1/x"}, nil,
					"")
			}
			read := func(call func() (*Reply, error)) error {
				r, err := call()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				err = c.read(r)
				if err == nil && budget.owners["ann"] < mib {
					t.Errorf("%d bytes are counted for a reply of 1 MiB", budget.owners["ann"])
				}
				return err
			}
			for _, call := range []func() (*Reply, error){do, send, inherit} {
				if err := read(call); err != nil || budget.used != 0 {
					t.Fatalf("got %v, and %d bytes are left counted", err, budget.used)
				}
			}
			other := memory.NewClaim(budget, "bob")
			other.Adopt(15 * mib)
			var f *Failure
			err = read(do)
			if !errors.As(err, &f) || f.Err.Status != 503 || f.Err.Code != "overloaded" || f.Err.RetryAfter == 0 {
				t.Errorf("without room: got %v, want 503 overloaded with a time to come back", err)
			}
			other.End()
			budget.most = mib
			if err := read(do); !errors.As(err, &f) || f.Err.Code != "upstream_invalid_response" {
				t.Errorf("larger than an owner may have: got %v, want 502 upstream_invalid_response", err)
			}
			if budget.used != 0 {
				t.Errorf("%d bytes are left counted", budget.used)
			}
		})
	}
}
