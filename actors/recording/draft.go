package recording

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Draft keeps an exchange while it runs. The calls of an attempt may run at the same time.
type Draft struct {
	recording *Recording

	mu      sync.Mutex
	x       Exchange
	size    int64 // bytes taken of the recording's room
	over    bool  // the exchange does not fit, so it is dropped
	secrets []string
}

// Client keeps what the client sent. q has everything but the bytes, which are copied.
func (d *Draft) Client(id string, q Client, in shapes.Params, body []byte) {
	if d == nil {
		return
	}
	q.Path, q.Model, q.Stream, q.Array, q.Header = in.Path, in.Model, in.Stream, in.Array, in.Header.Clone()
	d.x.ID, d.x.Client = id, q
	d.keep(&d.x.Client.Body, body)
}

// keep appends bytes. d.mu must be held, or nothing else may know d yet.
func (d *Draft) keep(to *Bytes, data []byte) {
	if d.take(len(data)) {
		*to = append(*to, data...)
	}
}

// take claims bytes of the recording's room. d.mu must be held.
func (d *Draft) take(bytes int) bool {
	n := int64(bytes)
	switch {
	case d.over:
		return false
	case d.recording.room.Add(-n) < 0:
		d.recording.room.Add(n)
		d.over = true
		return false
	}
	d.size += n
	return true
}

// Env returns an Env like e that keeps the ids, times and signatures that it gives out.
func (d *Draft) Env(e *dialogue.Env) *dialogue.Env {
	if d == nil {
		return e
	}
	own := *e
	own.Now = func() time.Time {
		now := e.Now()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.x.Times = append(d.x.Times, now.UnixNano())
		return now
	}
	own.ID = func() string {
		id := e.ID()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.x.IDs = append(d.x.IDs, id)
		return id
	}
	own.Signatures = signatures{e.Signatures, d}
	return &own
}

type signatures struct {
	dialogue.SignatureCache
	draft *Draft
}

// Recall implements dialogue.SignatureCache.
func (s signatures) Recall(owner, call string) (string, bool) {
	v, ok := s.SignatureCache.Recall(owner, call)
	if d := s.draft; ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.x.Signatures == nil {
			d.x.Signatures = map[string]string{}
		}
		if d.x.Signatures[call] == "" && d.take(len(v)) {
			d.x.Signatures[call] = v
		}
	}
	return v, ok
}

// Attempt begins an attempt. secrets are the keys of its provider.
func (d *Draft) Attempt(secrets []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.x.Attempts = append(d.x.Attempts, Attempt{Calls: []Call{}})
	d.secrets = append(d.secrets, secrets...)
}

// AttemptEnded keeps how the last attempt went. a has everything but its calls.
func (d *Draft) AttemptEnded(a Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := &d.x.Attempts[len(d.x.Attempts)-1]
	a.Calls = last.Calls
	*last = a
}

// DraftCall keeps one call of the last attempt.
type DraftCall struct {
	draft       *Draft
	attempt, at int
}

// Call begins a call, before the key is added to its headers.
func (d *Draft) Call(c *shapes.Call) *DraftCall {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	attempt := len(d.x.Attempts) - 1
	calls := &d.x.Attempts[attempt].Calls
	k := Call{Millis: d.millis(), Path: c.Path, Query: c.Query, Header: c.Header.Clone()}
	d.keep(&k.Body, c.Body)
	*calls = append(*calls, k)
	return &DraftCall{d, attempt, len(*calls) - 1}
}

func (d *Draft) millis() int64 { return time.Since(d.x.Began).Milliseconds() }

// call returns the call. d.mu must be held.
func (c *DraftCall) call() *Call { return &c.draft.x.Attempts[c.attempt].Calls[c.at] }

// Reply keeps a reply, or the error because of which there is none.
func (c *DraftCall) Reply(status int, h http.Header, err error) {
	if c == nil {
		return
	}
	c.draft.mu.Lock()
	defer c.draft.mu.Unlock()
	k := c.call()
	k.Status, k.ReplyMillis, k.ReplyHeader = status, c.draft.millis(), h.Clone()
	if err != nil {
		k.Cut = err.Error()
	}
}

// Reader returns a reader of the reply's body that keeps what is read from it.
func (c *DraftCall) Reader(body io.Reader) io.Reader {
	if c == nil {
		return body
	}
	return &kept{body, c}
}

type kept struct {
	io.Reader
	call *DraftCall
}

// Read implements io.Reader.
func (k *kept) Read(p []byte) (int, error) {
	n, err := k.Reader.Read(p)
	d := k.call.draft
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep(&k.call.call().ReplyBody, p[:n])
	if err != nil && err != io.EOF && !errors.Is(err, context.Canceled) {
		k.call.call().Cut = err.Error()
	}
	return n, err
}

// Deliver keeps a piece of the reply to the client. failure says that it ends a stream that failed.
func (d *Draft) Deliver(data []byte, failure bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if failure {
		d.keep(&d.x.Reply.Failure, data)
	} else {
		d.keep(&d.x.Reply.Body, data)
	}
}

// End hands the exchange to the recording's writer, or drops it if it does not fit or the recording is over. o has
// everything that Deliver has not kept.
func (d *Draft) End(o Reply) {
	if d == nil {
		return
	}
	d.mu.Lock()
	o.Body, o.Failure = d.x.Reply.Body, d.x.Reply.Failure
	d.x.Reply, d.x.Millis = o, d.millis()
	fits := !d.over
	d.over = true // the writer has the bytes from now on
	d.mu.Unlock()
	r := d.recording
	if fits {
		select {
		case r.out <- d:
			return
		default:
		}
	}
	r.room.Add(d.size)
	r.dropped.Add(1)
}

// redact removes secrets: the values of headers that carry them, members of requests that are named as secrets, and
// whatever equals one of those or a key of the provider.
func (d *Draft) redact() {
	all := &d.x
	secrets := slices.Clone(d.secrets)
	headers := []http.Header{all.Client.Header}
	requests := []*Bytes{&all.Client.Body}
	texts := []*Bytes{&all.Client.Body, &all.Reply.Body, &all.Reply.Failure, &all.Reply.Error}
	words := []*string{&all.Client.Path}
	for i := range all.Attempts {
		for j := range all.Attempts[i].Calls {
			c := &all.Attempts[i].Calls[j]
			headers, requests = append(headers, c.Header, c.ReplyHeader), append(requests, &c.Body)
			texts = append(texts, &c.Body, &c.ReplyBody)
			words = append(words, &c.Path, &c.Query, &c.Cut)
		}
	}
	for _, h := range headers {
		secrets = append(secrets, redactHeader(h)...)
	}
	for _, t := range requests {
		secrets = append(secrets, redactMembers(t)...)
	}
	replace := replacer(secrets)
	for _, t := range texts {
		*t = replace(*t)
	}
	for _, w := range words {
		*w = string(replace([]byte(*w)))
	}
	for _, h := range headers {
		for _, values := range h {
			for i, v := range values {
				values[i] = string(replace([]byte(v)))
			}
		}
	}
}
