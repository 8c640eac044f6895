package text

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/actors/background"
	"stagedoor/actors/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/work"
)

// record stores the response of a request while its reply is written, so that its id is valid as soon
// as the client knows it:
//
//	nothing ── first event of a stream ──> in_progress ──> completed | incomplete | failed | cancelled
//	nothing ── whole reply ──> completed | incomplete | failed
//
// Each state is durable before the client sees it. The handler calls open and fail, the request's actor
// calls complete, and mu serializes them. A record does not keep the response body, which would cost
// memory for each of thousands of streams.
type record struct {
	requestContext *requestContext
	own            []byte // the request without the history that was put before it

	mu    sync.Mutex
	phase phase
	id    string
	// refused, if set, is the error because of which no reply was begun.
	refused *dialogue.Error
}

type phase uint8

const (
	unkept phase = iota
	open         // in progress
	ended        // nothing more is written
)

// open stores the response as in progress before the client gets the first chunk. After an error, the
// reply must not begin. The response of a short reply may be stored as completed already.
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

// complete stores a response that has ended. It implements text.Request.Complete.
func (r *record) complete(_ context.Context, m text.Meta, last []byte) ([]byte, *dialogue.Error) {
	doc := endedResponse(last)
	if doc == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.put(bytes.Clone(doc), &m)
	if err == nil {
		r.requestContext.handlers.items.add(r.requestContext.owner(), r.id, responses.OutputItems(doc))
		r.requestContext.turn.End() // before the client begins the next one
		return nil, nil
	}
	e := storeError(err, "store")
	r.settle(func(begun []byte) []byte { return responses.Failed(begun, e) })
	return failedEvent(doc, last, e), e
}

// endedResponse returns the response of a last event or of a whole reply, or nil for an error event, which has none.
func endedResponse(last []byte) []byte {
	doc := last
	if inner := gjson.GetBytes(last, "response"); inner.IsObject() {
		doc = []byte(inner.Raw)
	}
	if !responses.Terminal(responses.Status(doc)) || gjson.GetBytes(doc, "id").String() == "" {
		return nil
	}
	return doc
}

// failedEvent returns the event that takes the place of last if the end of a response cannot be stored.
func failedEvent(doc, last []byte, e *dialogue.Error) []byte {
	event, _ := sjson.SetRawBytes([]byte(`{"type":"response.failed"}`), "response", responses.Failed(doc, e))
	event, _ = sjson.SetBytes(event, "sequence_number", gjson.GetBytes(last, "sequence_number").Int())
	return event
}

// fail stores a response whose chunk reports a failure, before the client gets the chunk.
func (r *record) fail(f *text.Chunk) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first, last := objects(f.Data.B)
	switch {
	case responses.Terminal(responses.Status(last)):
		_ = r.put(last, f.Meta) // the client gets the failure even if it cannot be stored
	case r.phase == open: // the chunk has an error event without a response
		r.settle(func(begun []byte) []byte { return responses.Failed(begun, f.Failed) })
	case first != nil:
		_ = r.put(responses.Failed(first, f.Failed), f.Meta)
	}
}

// close stores the end of a response whose reply ended without one, because the client has left or the
// end could not be stored. While the store is away it leaves that to the background. If the reply was not begun, close
// sets the reason in out.
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
	failure, hs := out.Err, r.requestContext.handlers
	end := func(begun []byte) []byte {
		switch {
		case failure == nil:
			return responses.Failed(begun, dialogue.Incomplete())
		case failure.Status == dialogue.StatusClientClosed:
			return responses.Cancelled(begun, hs.Env.Now())
		}
		return responses.Failed(begun, failure)
	}
	if r.settle(end); r.phase == open {
		hs.Background.StoreEnd(r.id, r.requestContext.owner(), end)
	}
}

// settle replaces a stored response that is in progress with end of it.
func (r *record) settle(end func(begun []byte) []byte) {
	if r.phase != open {
		return
	}
	stored, err := work.ReadResponse(r.context(), r.requestContext.handlers.Store, r.id, r.requestContext.owner())
	switch {
	case errors.Is(err, state.ErrNotFound):
		r.phase = ended // deleted meanwhile
	case err == nil:
		_ = r.put(end(stored.Body), nil) // if it stays open, close has it stored later
	}
}

// put creates the stored response at its first state and updates it at any other. If another record has
// the same id, or the owner has deleted the response meanwhile, put writes nothing and returns nil.
func (r *record) put(doc []byte, m *text.Meta) error {
	status := responses.Status(doc)
	rc := r.requestContext
	turn, err := background.TurnItems(r.context(), rc.turn, rc.input, doc)
	if err != nil {
		return err
	}
	switch r.phase {
	case unkept:
		err = r.create(doc, status, m, turn)
	case open:
		_, err = work.UpdateResponse(r.context(), rc.handlers.Store, r.id, rc.owner(),
			work.ResponseUpdate{Status: status, Body: doc, Turn: turn, Ends: rc.turn})
	}
	passed := errors.Is(err, state.ErrExists) || errors.Is(err, state.ErrFinished) || errors.Is(err, state.ErrNotFound)
	if passed && len(turn) > 0 {
		if err := rc.turn.Add(r.context(), turn); err != nil {
			return err
		}
	}
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

// create stores the response with its input and its place in a conversation.
func (r *record) create(doc []byte, status string, m *text.Meta, turn []jsonRaw) error {
	rc := r.requestContext
	r.id = gjson.GetBytes(doc, "id").String()
	h := work.ResponseHeader{ID: r.id, Owner: rc.owner(), Previous: rc.head.PreviousResponseID,
		Model: rc.head.Model, Status: status, Streamed: rc.head.Stream}
	if m != nil && m.Untouched {
		h.Provider = m.Provider
	}
	if rc.turn != nil {
		h.Conversation, h.Position = rc.turn.Conversation.ID, rc.turn.Conversation.Next
	}
	return work.PutResponse(r.context(), rc.handlers.Store, work.StoredResponse{ResponseHeader: h, Body: doc,
		Input: rc.inputItems(r.own), Turn: turn})
}

// context returns the request's context without its cancellation, because a response is also stored
// after its client has left.
func (r *record) context() context.Context {
	return context.WithoutCancel(r.requestContext.r.Context())
}

// inProgress is the status of a response before its end.
const inProgress = "in_progress"

// objects returns the first and the last response object with an id in the events of a chunk, or nil.
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
