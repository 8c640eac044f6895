package work

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/state"
	"stagedoor/state/journal"
)

const (
	// ResponseTTL is how long a response is kept if it does not say.
	ResponseTTL = 30 * 24 * time.Hour
	// MaxResponseBytes bounds body and input of one response together, and the
	// request it is begun again from.
	MaxResponseBytes = 32 << 20
	// MaxEventBytes bounds the event log of one response.
	MaxEventBytes = 64 << 20
)

// ResponseHeader is what is hot about a stored response.
type ResponseHeader struct {
	ID       string      `json:"id"` // from NewID("resp_"), so that it grows with time
	Owner    state.Owner `json:"owner"`
	Previous string      `json:"previous,omitempty"` // the response it continues
	// Conversation is the conversation that it belongs to, and Position is where what it added begins there.
	Conversation string `json:"conversation,omitempty"`
	Position     uint64 `json:"position,omitempty"`
	Model        string `json:"model,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Status       string `json:"status"` // as in the response object

	Background bool `json:"background,omitempty"`
	Streamed   bool `json:"streamed,omitempty"`
	// Runs is how often its work has begun; a further run needs its request.
	Runs int `json:"runs,omitempty"`

	BodySize  int64 `json:"body_size"`
	InputSize int64 `json:"input_size"`
	// RequestSize is 0 once the response has ended.
	RequestSize int64 `json:"request_size,omitempty"`
	// LastEvent is the sequence number of the last event in the log, EventSize
	// the log's bytes. Without a log both are 0.
	LastEvent int64 `json:"last_event,omitempty"`
	EventSize int64 `json:"event_size,omitempty"`

	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Finished reports whether the response has ended and will not change.
func (h *ResponseHeader) Finished() bool { return h.Status != "queued" && h.Status != "in_progress" }

func (h *ResponseHeader) expired(now time.Time) bool { return !now.Before(h.Expires) }

// StoredResponse is a header and what is read from disk for it.
type StoredResponse struct {
	ResponseHeader
	Body  json.RawMessage // the response object
	Input json.RawMessage // the array of input items, without those of Previous
	// Request is what the work can be begun again from, JSON in the caller's own
	// form; nil: it cannot. It is kept until the response has ended, and read by
	// ResponseRequest only.
	Request json.RawMessage
	// Turn is added to the conversation in the same commit if the response has ended with an answer.
	Turn []json.RawMessage
}

var responses = state.Table[ResponseHeader]{
	Name:    journal.Response,
	ID:      func(h *ResponseHeader) string { return h.ID },
	Expires: func(h *ResponseHeader) time.Time { return h.Expires },
}

// Keys of the cold records. "/" is in no id.
func bodyKey(id string) []byte    { return []byte(id + "/body") }
func inputKey(id string) []byte   { return []byte(id + "/input") }
func requestKey(id string) []byte { return []byte(id + "/request") }
func coldPrefix(id string) []byte { return []byte(id + "/") }
func eventsAfter(id string, sequence int64) []byte {
	return binary.BigEndian.AppendUint64(coldPrefix(id), uint64(sequence))
}

// PutResponse keeps a new response. Created and Expires are set if they are zero. The
// error is a *QuotaError if its owner keeps as much as it may; a response that is kept
// may grow beyond that until it has ended.
func PutResponse(ctx context.Context, s *state.State, r StoredResponse) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("store response: %w", err)
	}
	r.BodySize, r.InputSize = int64(len(r.Body)), int64(len(r.Input))
	r.LastEvent, r.EventSize, r.RequestSize = 0, 0, int64(len(r.Request))
	kept := &state.MemoryOf[*memory](s).kept
	err := state.Run(ctx, s, func(tx *state.Tx) error {
		if responses.Get(tx.View(), r.ID) != nil {
			return fmt.Errorf("response %s: %w", r.ID, state.ErrExists)
		}
		if err := kept.room(tx, r.Owner, Kept{Responses: 1, Bytes: r.size()}); err != nil {
			return err
		}
		h := r.ResponseHeader
		if h.Created.IsZero() {
			h.Created = tx.Now()
		}
		if h.Expires.IsZero() {
			h.Expires = h.Created.Add(ResponseTTL)
		}
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: bodyKey(r.ID), Value: r.Body})
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: inputKey(r.ID), Value: r.Input})
		if r.RequestSize > 0 {
			tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: requestKey(r.ID), Value: r.Request})
		}
		return putResponse(tx, h, r.Turn)
	})
	return kept.counted(err)
}

func (r *StoredResponse) check() error {
	if err := state.CheckID(r.ID); err != nil {
		return err
	}
	if r.Owner == "" {
		return fmt.Errorf("%w: response %s has no owner", state.ErrInvalid, r.ID)
	}
	if len(r.Input) == 0 {
		r.Input = json.RawMessage("[]")
	}
	if !json.Valid(r.Input) || !gjson.ParseBytes(r.Input).IsArray() {
		return fmt.Errorf("%w: the input of response %s is not an array", state.ErrInvalid, r.ID)
	}
	if len(r.Body)+len(r.Input) > MaxResponseBytes || len(r.Request) > MaxResponseBytes {
		return fmt.Errorf("response %s: %w", r.ID, state.ErrTooLarge)
	}
	if len(r.Request) > 0 && !json.Valid(r.Request) {
		return fmt.Errorf("%w: the request of response %s is not JSON", state.ErrInvalid, r.ID)
	}
	return checkBody(r.ID, r.Body)
}

func checkBody(id string, body []byte) error {
	if !json.Valid(body) || !gjson.ParseBytes(body).IsObject() {
		return fmt.Errorf("%w: the body of response %s is not an object", state.ErrInvalid, id)
	}
	return nil
}

// FindResponse returns the header of a response for its owner, without reading the disk. A response of another owner,
// an expired and an unknown one are all ErrNotFound.
func FindResponse(v state.View, id string, owner state.Owner) (ResponseHeader, error) {
	r := responses.Get(v, id)
	if r == nil || r.Rec.Owner != owner || r.Rec.expired(v.Now()) {
		return ResponseHeader{}, fmt.Errorf("response %q: %w", id, state.ErrNotFound)
	}
	return r.Rec, nil
}

// WatchResponse returns a response's header and a channel that is closed when it may have changed: by UpdateResponse or
// its removal.
func WatchResponse(s *state.State, id string, owner state.Owner) (ResponseHeader, <-chan struct{}, error) {
	v := s.View()
	h, err := FindResponse(v, id, owner)
	if err != nil {
		return ResponseHeader{}, nil, err
	}
	return h, responses.Watch(v, id), nil
}

// ReadResponse returns a stored response. While one is being written its body may be
// newer than its header.
func ReadResponse(ctx context.Context, s *state.State, id string, owner state.Owner) (StoredResponse, error) {
	h, err := FindResponse(s.View(), id, owner)
	if err != nil {
		return StoredResponse{}, err
	}
	r := StoredResponse{ResponseHeader: h}
	if r.Body, err = cold(ctx, s, bodyKey(id)); err != nil {
		return StoredResponse{}, err
	}
	if r.Input, err = cold(ctx, s, inputKey(id)); err != nil {
		return StoredResponse{}, err
	}
	return r, nil
}

// ReadResponseRequest returns what an unfinished response can be begun again from;
// ErrNotFound: nothing.
func ReadResponseRequest(ctx context.Context, s *state.State, id string, owner state.Owner) ([]byte, error) {
	if _, err := FindResponse(s.View(), id, owner); err != nil {
		return nil, err
	}
	return cold(ctx, s, requestKey(id))
}

func cold(ctx context.Context, s *state.State, key []byte) ([]byte, error) {
	rec, err := s.Get(ctx, journal.Body, key)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("read %s: %w", key, state.ErrNotFound) // removed a moment ago
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return rec.Value, nil
}

// ResponseFilter says which responses to list; the zero value: all.
type ResponseFilter struct {
	Owner      state.Owner // "": all owners
	Unfinished bool        // only those still queued or in progress
}

// ListResponses lists the headers of responses that have not expired, oldest first. At start those that are unfinished
// are the ones whose work ended with a process.
func ListResponses(v state.View, f ResponseFilter) []ResponseHeader {
	var found []ResponseHeader
	for h := range responses.All(v) {
		if (f.Owner == "" || h.Owner == f.Owner) && !(f.Unfinished && h.Finished()) && !h.expired(v.Now()) {
			found = append(found, *h)
		}
	}
	return found
}

// ResponseUpdate is what changes about an unfinished response. Empty fields stay
// as they are.
type ResponseUpdate struct {
	Status   string
	Model    string
	Provider string
	Body     json.RawMessage
	Expires  time.Time
	// Run counts another run of its work.
	Run bool
	// Events is added to the event log: the events up to and with the sequence
	// number LastEvent, in the caller's own form. Numbers only grow.
	Events    []byte
	LastEvent int64
	// Turn is added to the conversation of the response in the same commit, if Status ends it with an answer.
	Turn []json.RawMessage
}

// UpdateResponse changes an unfinished response and returns its new header. One
// that has finished stays as it is: ErrFinished, together with its header. So of
// two that race, a cancellation and the last event, the first one counts.
func UpdateResponse(
	ctx context.Context,
	s *state.State,
	id string,
	owner state.Owner,
	u ResponseUpdate,
) (ResponseHeader, error) {
	if u.Body != nil {
		if err := checkBody(id, u.Body); err != nil {
			return ResponseHeader{}, fmt.Errorf("update response: %w", err)
		}
	}
	var h ResponseHeader
	err := state.Run(ctx, s, func(tx *state.Tx) (err error) {
		if h, err = FindResponse(tx.View(), id, owner); err != nil {
			return err
		}
		if h.Finished() {
			return fmt.Errorf("response %s: %w", id, state.ErrFinished)
		}
		return u.apply(tx, &h)
	})
	if err != nil && !errors.Is(err, state.ErrFinished) {
		return ResponseHeader{}, err
	}
	return h, err
}

func (u *ResponseUpdate) apply(tx *state.Tx, h *ResponseHeader) error {
	if u.Status != "" {
		h.Status = u.Status
	}
	if u.Model != "" {
		h.Model = u.Model
	}
	if u.Provider != "" {
		h.Provider = u.Provider
	}
	if !u.Expires.IsZero() {
		h.Expires = u.Expires
	}
	if u.Run {
		h.Runs++
	}
	if h.Finished() && h.RequestSize > 0 {
		h.RequestSize = 0
		tx.Op(journal.Op{Kind: journal.Delete, Table: journal.Body, Key: requestKey(h.ID)})
	}
	if u.Body != nil {
		h.BodySize = int64(len(u.Body))
		if h.BodySize+h.InputSize > MaxResponseBytes {
			return fmt.Errorf("response %s: %w", h.ID, state.ErrTooLarge)
		}
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: bodyKey(h.ID), Value: u.Body})
	}
	if len(u.Events) > 0 {
		if err := appendEvents(tx, h, u.LastEvent, u.Events); err != nil {
			return err
		}
	}
	return putResponse(tx, *h, u.Turn)
}

// putResponse writes a header. turn is what the response adds to its conversation if it has ended with an answer: one
// that has failed or was cancelled adds nothing.
func putResponse(tx *state.Tx, h ResponseHeader, turn []json.RawMessage) error {
	if h.Conversation != "" && (h.Status == "completed" || h.Status == "incomplete") {
		if err := addTurn(tx, h.Conversation, h.Owner, turn); err != nil {
			return err
		}
	}
	return responses.Put(tx, h)
}

// DeleteResponse removes a response with everything that belongs to it. Its provider must have deleted it
// before.
func DeleteResponse(ctx context.Context, s *state.State, id string, owner state.Owner) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		h, err := FindResponse(tx.View(), id, owner)
		if err != nil {
			return err
		}
		state.MemoryOf[*memory](tx).removeResponse(tx, responses.Get(tx.View(), h.ID), nil)
		return nil
	})
}

func (m *memory) removeResponse(tx *state.Tx, r *state.Row[ResponseHeader], pending *pendingDeletion) {
	prefix := coldPrefix(r.Rec.ID)
	tx.Op(journal.Op{Kind: journal.DeletePrefix, Table: journal.Body, Key: prefix})
	if r.Rec.EventSize > 0 {
		tx.Op(journal.Op{Kind: journal.DeletePrefix, Table: journal.Event, Key: prefix})
	}
	responses.Remove(tx, r)
	m.rememberResponse(tx, &r.Rec, pending)
}

// countResponses counts the responses that are kept when the state is opened.
func (m *memory) countResponses(s *state.State) {
	for h := range responses.All(s.View()) {
		m.kept.change((*ResponseHeader)(nil), h)
	}
}
