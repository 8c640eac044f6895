package text

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/actors/text"
	"stagedoor/http/accesslog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/upstream"
	"stagedoor/state"
)

// record is the stored response of a request whose client reads the reply, so
// that its id is good the moment it is known:
//
//	nothing ── first event of a stream ──> in_progress ──> completed | incomplete | failed | cancelled
//	nothing ── whole reply ──> completed | incomplete | failed
//
// Each state is durable before the client reads of it. The door opens and fails
// it, the pump completes it; the one that comes second waits for the first. It
// holds no body: thousands of streams do not keep what they began with.
type record struct {
	visit *visit
	own   []byte // the request without the history that was put before it

	mu    sync.Mutex
	phase phase
	id    string
	// refused, if set, is why the reply was not begun.
	refused *dialogue.Error
}

type phase uint8

const (
	unkept phase = iota
	open         // in progress
	ended        // nothing more is written
)

// open stores the response as in progress before its client reads the first
// frame. An error means that the reply must not begin. A reply that has ended by
// now, as a short one has, is stored already.
//
//go:noinline
func (r *record) open(first *text.Chunk) *dialogue.Error {
	if r == nil || first.Failed != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	doc, _ := objects(first.Data.B)
	if r.phase != unkept || doc == nil {
		return nil
	}
	if status := responses.Status(doc); status != inProgress {
		doc, _ = sjson.SetBytes(doc, "status", inProgress)
	}
	if err := r.put(doc, first.Meta); err != nil {
		r.phase, r.refused = ended, storeError(err, "store")
	}
	return r.refused
}

// complete stores the response that has ended. It is text.Request.Complete.
func (r *record) complete(_ context.Context, m text.Meta, last []byte) ([]byte, *dialogue.Error) {
	doc := last
	if inner := gjson.GetBytes(last, "response"); inner.IsObject() {
		doc = []byte(inner.Raw)
	}
	if !responses.Terminal(responses.Status(doc)) || gjson.GetBytes(doc, "id").String() == "" {
		return nil, nil // an error event: there is nothing to keep
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.put(bytes.Clone(doc), &m)
	if err == nil {
		r.visit.doors.items.add(r.visit.owner(), r.id, doc)
		return nil, nil
	}
	e := storeError(err, "store")
	r.settle(func(begun []byte) []byte { return responses.Failed(begun, e) })
	event, _ := sjson.SetRawBytes([]byte(`{"type":"response.failed"}`), "response", responses.Failed(doc, e))
	event, _ = sjson.SetBytes(event, "sequence_number", gjson.GetBytes(last, "sequence_number").Int())
	return event, e
}

// fail stores the response that the frame says has failed, before its client is
// told.
func (r *record) fail(f *text.Chunk) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first, last := objects(f.Data.B)
	switch {
	case responses.Terminal(responses.Status(last)):
		_ = r.put(last, f.Meta) // a failure is told, stored or not
	case r.phase == open: // told by a bare error event
		r.settle(func(begun []byte) []byte { return responses.Failed(begun, f.Failed) })
	case first != nil:
		_ = r.put(responses.Failed(first, f.Failed), f.Meta)
	}
}

// close settles a response whose reply is over and told no end: its client has
// left, or could not be told. out is told why if the reply was not begun.
func (r *record) close(out *text.Outcome) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != nil {
		out.Err, out.Committed = r.refused, false
	}
	if r.phase != open {
		return
	}
	r.settle(func(begun []byte) []byte {
		switch {
		case out.Err == nil:
			return responses.Failed(begun, dialogue.Incomplete())
		case out.Err.Status == statusClientLeft:
			return responses.Cancelled(begun, r.visit.doors.Env.Now())
		}
		return responses.Failed(begun, out.Err)
	})
	if r.phase == open {
		r.visit.doors.Logger.Error("response not stored", "request_id", accesslog.RequestID(r.visit.w), "response_id", r.id)
	}
}

// settle ends a response that is in progress by what is made of the object it
// began with.
func (r *record) settle(end func(begun []byte) []byte) {
	if r.phase != open {
		return
	}
	stored, err := r.visit.doors.Store.Response(r.context(), r.id, r.visit.owner())
	switch {
	case errors.Is(err, state.ErrNotFound):
		r.phase = ended // deleted meanwhile
	case err == nil:
		_ = r.put(end(stored.Body), nil) // close says so if it stays open
	}
}

// put writes the response: its first state as a new record, any other over it. A
// record of the same id that is there already is another's, and one that its
// owner deleted meanwhile stays so: neither is written, and neither is an error.
func (r *record) put(doc []byte, m *text.Meta) error {
	status := responses.Status(doc)
	var err error
	switch r.phase {
	case unkept:
		err = r.create(doc, status, m)
	case open:
		_, err = r.visit.doors.Store.UpdateResponse(r.context(), r.id, r.visit.owner(), state.ResponseUpdate{Status: status, Body: doc})
	}
	passed := errors.Is(err, state.ErrExists) || errors.Is(err, state.ErrFinished) || errors.Is(err, state.ErrNotFound)
	switch {
	case err != nil && !passed:
		return err
	case passed || responses.Terminal(status):
		r.phase = ended
	default:
		r.phase = open
	}
	return nil
}

func (r *record) create(doc []byte, status string, m *text.Meta) error {
	v := r.visit
	r.id = gjson.GetBytes(doc, "id").String()
	h := state.ResponseHeader{ID: r.id, Owner: v.owner(), Previous: v.head.PreviousResponseID,
		Model: v.head.Model, Status: status, Streamed: v.head.Stream}
	if m != nil && m.Untouched {
		h.Provider = m.Provider
	}
	return v.doors.Store.PutResponse(r.context(), state.StoredResponse{ResponseHeader: h, Body: doc,
		Input: items(responses.InputItems(r.own, v.doors.Env.ID))})
}

// context is the request's without its end: what a client that leaves has begun
// is settled all the same.
func (r *record) context() context.Context { return context.WithoutCancel(r.visit.r.Context()) }

// inProgress is the status of a response that has begun.
const inProgress = "in_progress"

// objects are the first and the last response object with an id in the events of
// a frame; nil: none has one.
func objects(frame []byte) (first, last []byte) {
	events := upstream.NewEventReader(bytes.NewReader(frame))
	for {
		ev, err := events.Next()
		if err != nil {
			return first, last
		}
		doc := gjson.GetBytes(ev.Data, "response")
		if !doc.IsObject() || doc.Get("id").Str == "" {
			continue
		}
		last = []byte(doc.Raw)
		if first == nil {
			first = last
		}
	}
}
