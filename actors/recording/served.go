package recording

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// margin is added to maxText for the bodies of a served exchange while they arrive. It is cut off after secrets were
// replaced, so that a secret of which only the beginning is there goes with it.
const margin = 8 << 10

// Serve records the exchange of a request for media or embeddings if its key is recorded for pages. It returns the
// writer and the request that the handler uses in place of w and q, and a function that the handler calls at its end.
// The calls to the provider are recorded by the Draft that From returns for the context of the request. Bodies are cut
// while they arrive, because those of media are large. A nil Recorder records nothing. Recordings for a replay have no
// such exchanges.
func (r *Recorder) Serve(w http.ResponseWriter, q *http.Request, shape dialogue.Shape, id, key string) (
	http.ResponseWriter, *http.Request, func()) {
	var d *Draft
	if r != nil {
		if active := r.active.Load(); active != nil {
			d = newDraft(key, slices.DeleteFunc(slices.Clone((*active)[key]), target.faithful))
		}
	}
	if d == nil {
		return w, q, func() {}
	}
	d.cuts = true
	d.Client(id, Client{Shape: shape}, shapes.Params{Path: q.URL.Path, Header: q.Header}, nil)
	q = q.WithContext(upstream.WithObserver(q.Context(), d))
	q.Body = &sent{ReadCloser: q.Body, draft: d, to: func() *Bytes { return &d.x.Client.Body }}
	t := &tee{ResponseWriter: w, draft: d}
	return t, q, func() { t.end(q.Context().Err() != nil) }
}

// From returns what keeps the exchange of a request in its context, or nil.
func From(ctx context.Context) *Draft {
	d, _ := upstream.ObserverOf(ctx).(*Draft)
	return d
}

// SetID sets the id under which the log of requests has the request, if that is not the id of the HTTP request.
func (d *Draft) SetID(id string) {
	if d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.x.ID = id
	}
}

// sent is a body that is kept as it is read.
type sent struct {
	io.ReadCloser
	draft *Draft
	to    func() *Bytes
}

// Read implements io.Reader.
func (s *sent) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.draft.mu.Lock()
	defer s.draft.mu.Unlock()
	s.draft.keep(s.to(), p[:n])
	return n, err
}

// tee keeps what is sent to the client.
type tee struct {
	http.ResponseWriter
	draft  *Draft
	status int
}

// Unwrap implements the interface that http.ResponseController looks for.
func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (t *tee) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *tee) Write(p []byte) (int, error) {
	t.draft.Deliver(p, false)
	return t.ResponseWriter.Write(p)
}

// end ends the exchange.
func (t *tee) end(partial bool) {
	d, o := t.draft, Reply{Partial: partial}
	if t.status >= http.StatusBadRequest {
		d.mu.Lock()
		o.Status, o.Error = t.status, d.x.Reply.Body
		d.x.Reply.Body = nil
		d.mu.Unlock()
	}
	d.End(o)
}

// Try begins an attempt of a served exchange at a provider with these secrets. simulated says that the sandbox answers,
// which is no call.
func (d *Draft) Try(provider, model string, simulated bool, secrets []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.to) > 0 {
		d.x.Attempts = append(d.x.Attempts, Attempt{Target: dialogue.Target{Provider: provider, Model: model},
			Simulated: simulated, Calls: []Call{}})
		d.secrets = append(d.secrets, secrets...)
	}
}

// Observe implements upstream.Observer.
func (d *Draft) Observe(r *upstream.Request) func(*upstream.Reply, error) {
	call := d.Call(&shapes.Call{Path: cmp.Or(r.Path, "a download"), Query: r.Query, Header: r.Header})
	if open := r.Body; open != nil && call != nil {
		r.Body = func() (io.ReadCloser, error) {
			body, err := open()
			if err != nil {
				return nil, err
			}
			return call.sending(body), nil
		}
	}
	return call.Answered
}

// sending returns a body that is kept as it is read. A body that was opened before is forgotten.
func (c *DraftCall) sending(body io.ReadCloser) io.ReadCloser {
	c.draft.mu.Lock()
	defer c.draft.mu.Unlock()
	if c.draft.over() {
		return body
	}
	c.call().Body = nil
	return &sent{ReadCloser: body, draft: c.draft, to: func() *Bytes { return &c.call().Body }}
}

// Answered keeps the reply of a call while it is read, or the error for which there is none.
func (c *DraftCall) Answered(reply *upstream.Reply, err error) {
	switch {
	case c == nil:
	case err != nil:
		c.Reply(0, nil, err)
	default:
		c.Reply(reply.Status, reply.Header, nil)
		_ = reply.Watch(c.Reader) // whatever reads the body meets the same error
	}
}
