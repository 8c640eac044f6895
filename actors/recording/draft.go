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
//
// The exchange counts against the room of each sink that takes it until that has written or dropped it. mu guards
// x, to, size and secrets while the request runs.
type Draft struct {
	key      string
	faithful bool          // a sink needs all of the exchange, in one piece
	cuts     bool          // a served exchange: bodies are cut while they arrive
	env      *dialogue.Env // that of Env, without the draft

	mu       sync.Mutex
	x        Exchange
	to       []*sink // that have room for the exchange, until it has ended
	size     int64   // bytes taken of the room of each of them
	secrets  []string
	redacted sync.Once
}

// newDraft returns a draft for the sinks that take an exchange now, or nil.
func newDraft(key string, targets []target) *Draft {
	var d *Draft
	for _, t := range targets {
		now := time.Now()
		if !t.until.IsZero() && !now.Before(t.until) {
			continue
		}
		if d == nil {
			d = &Draft{key: key, x: Exchange{Began: now, Attempts: []Attempt{}}}
		}
		d.faithful = d.faithful || t.faithful()
		d.to = append(d.to, t.to)
		t.to.begun.Add(1)
	}
	return d
}

// Alone reports whether the request must have one exchange. A replay has one target at a time.
func (d *Draft) Alone() bool { return d != nil && d.faithful }

// Fork returns a draft for another exchange of the same request, which runs at the same time, and its Env. One of the
// two Ends and the other one is given to Drop. The attempt that runs is not one of the fork.
func (d *Draft) Fork(e *dialogue.Env) (*Draft, *dialogue.Env) {
	if d == nil {
		return nil, e
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.to) == 0 {
		return nil, d.env
	}
	f := &Draft{key: d.key, to: slices.Clone(d.to), secrets: slices.Clone(d.secrets), x: Exchange{ID: d.x.ID,
		Began: d.x.Began, Client: d.x.Client, Attempts: cloneAttempts(d.x.Attempts[:max(len(d.x.Attempts)-1, 0)])}}
	f.x.Client.Header = d.x.Client.Header.Clone()
	if !f.take(len(d.x.Client.Body)) {
		return nil, d.env
	}
	return f, f.Env(d.env)
}

// cloneAttempts returns a copy that can be changed. The bodies are shared.
func cloneAttempts(all []Attempt) []Attempt {
	all = append([]Attempt{}, all...)
	for i := range all {
		calls := append([]Call{}, all[i].Calls...)
		for j := range calls {
			calls[j].Header, calls[j].ReplyHeader = calls[j].Header.Clone(), calls[j].ReplyHeader.Clone()
		}
		all[i].Calls = calls
	}
	return all
}

// Drop forgets the exchange, because another one of the same request has served it.
func (d *Draft) Drop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release(d.to)
	d.to = nil
}

// release gives the bytes of the exchange back. d.mu must be held.
func (d *Draft) release(to []*sink) {
	for _, s := range to {
		s.room.Add(d.size)
	}
}

// Client keeps what the client sent: in has its path, its model and its headers, body its bytes, which are copied, and
// q the rest.
func (d *Draft) Client(id string, q Client, in shapes.Params, body []byte) {
	if d == nil {
		return
	}
	q.Path, q.Model, q.Stream, q.Array, q.Header = in.Path, in.Model, in.Stream, in.Array, in.Header.Clone()
	d.x.ID, d.x.Client = id, q
	d.keep(&d.x.Client.Body, body)
}

// over reports whether a served exchange has ended, after which its calls may still go on. d.mu must be held.
func (d *Draft) over() bool { return d.cuts && len(d.to) == 0 }

// keep appends bytes. d.mu must be held, or nothing else may know d yet. A body of a served exchange is kept
// up to maxText and a margin, from which redact removes what a secret at the cut would leave.
func (d *Draft) keep(to *Bytes, data []byte) {
	if most := maxText + margin - len(*to); d.cuts && len(data) > most {
		data = data[:max(most, 0)]
	}
	if d.take(len(data)) {
		*to = append(*to, data...)
	}
}

// take claims bytes of the room of each sink, and drops the exchange for those that have not as many. It
// reports whether a sink is left. d.mu must be held. A sink without room loses the whole exchange and not a
// part of it, because a replay needs all of it.
func (d *Draft) take(bytes int) bool {
	n := int64(bytes)
	d.to = slices.DeleteFunc(d.to, func(s *sink) bool {
		if s.room.Add(-n) >= 0 {
			return false
		}
		s.room.Add(n + d.size)
		s.dropped.Add(1)
		return true
	})
	if len(d.to) == 0 {
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
	d.env = e
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

// Attempt begins an attempt. secrets are those of its provider.
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
	if attempt < 0 || d.over() {
		return nil // a call after the end of a served exchange
	}
	calls := &d.x.Attempts[attempt].Calls
	k := Call{Millis: d.millis(), Path: c.Path, Query: c.Query, Header: c.Header.Clone()}
	d.keep(&k.Body, c.Body)
	*calls = append(*calls, k)
	return &DraftCall{d, attempt, len(*calls) - 1}
}

func (d *Draft) millis() int64 { return time.Since(d.x.Began).Milliseconds() }

// call returns the call. d.mu must be held.
func (c *DraftCall) call() *Call { return &c.draft.x.Attempts[c.attempt].Calls[c.at] }

// Reply keeps a reply, or the error because of which there is none. A call without a reply has the status 0
// and the error in Cut.
func (c *DraftCall) Reply(status int, h http.Header, err error) {
	if c == nil {
		return
	}
	c.draft.mu.Lock()
	defer c.draft.mu.Unlock()
	if c.draft.over() {
		return
	}
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
	if d.over() {
		return n, err
	}
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

// End hands the exchange to the writers, and drops it for those that are too slow. o has everything that Deliver has
// not kept.
func (d *Draft) End(o Reply) {
	if d == nil {
		return
	}
	d.mu.Lock()
	o.Body, o.Failure = d.x.Reply.Body, d.x.Reply.Failure
	d.x.Reply, d.x.Millis = o, d.millis()
	to := d.to
	d.to = nil // the writers have the bytes from now on
	d.mu.Unlock()
	for _, s := range to {
		select {
		case s.out <- d:
		default:
			s.room.Add(d.size)
			s.dropped.Add(1)
		}
	}
}

// redactOnce redacts the exchange for the first writer that has it. Afterwards it does not change any more.
func (d *Draft) redactOnce() { d.redacted.Do(d.redact) }

// redact removes secrets: the values of headers that carry them, members of requests that are named as
// secrets, those in URLs of requests, and whatever equals one of those or a key of the provider. It runs when the
// exchange has ended, on the goroutine of a writer, and so costs the request nothing.
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
	cut := make([]bool, len(texts)) // while they arrived
	for i, t := range texts {
		cut[i] = d.cuts && len(*t) == maxText+margin
	}
	for _, h := range headers {
		secrets = append(secrets, redactHeader(h)...)
	}
	for _, t := range requests {
		secrets = append(secrets, redactMembers(t)...)
		text, found := redactURLs(*t)
		*t, secrets = text, append(secrets, found...)
	}
	replace := replacer(secrets)
	for i, t := range texts {
		if *t = replace(*t); cut[i] {
			*t = (*t)[:max(len(*t)-margin, 0)]
			all.Shortened = true
		}
	}
	for _, w := range words {
		text, _ := redactURLs(replace([]byte(*w)))
		*w = string(text)
	}
	for _, h := range headers {
		for _, values := range h {
			for i, v := range values {
				values[i] = string(replace([]byte(v)))
			}
		}
	}
}
