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
	// ResponseTTL is the time for which a response is kept unless it has its own Expires.
	ResponseTTL = 30 * 24 * time.Hour
	// MaxResponseBytes is the size of body and input of one response together, and of its
	// request.
	MaxResponseBytes = 32 << 20
	// MaxEventBytes is the size of the event log of one response.
	MaxEventBytes = 64 << 20
)

// ResponseHeader is the part of a stored response that is held in memory.
type ResponseHeader struct {
	ID       string      `json:"id"` // from NewID("resp_"), so that it grows with time
	Owner    state.Owner `json:"owner"`
	Previous string      `json:"previous,omitempty"` // the response it continues
	// Conversation is the conversation of the response, if any. The items that the response adds
	// begin at Position.
	Conversation string `json:"conversation,omitempty"`
	Position     uint64 `json:"position,omitempty"`
	Model        string `json:"model,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Status       string `json:"status"` // as in the response object

	Background bool `json:"background,omitempty"`
	Streamed   bool `json:"streamed,omitempty"`
	// Runs counts how often its work was started. To start it again, its request is needed.
	Runs int `json:"runs,omitempty"`
	// Node is the process that works on it until it has ended. Cancelled asks that process to end it.
	Node      state.Node `json:"node,omitempty"`
	Cancelled bool       `json:"cancelled,omitempty"`

	BodySize  int64 `json:"body_size"`
	InputSize int64 `json:"input_size"`
	// RequestSize is 0 once the response has ended.
	RequestSize int64 `json:"request_size,omitempty"`
	// LastEvent is the sequence number of the last event in the log, and EventSize the log's size
	// in bytes. Both are 0 if there is no log.
	LastEvent int64 `json:"last_event,omitempty"`
	EventSize int64 `json:"event_size,omitempty"`

	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Finished reports whether the response has ended and will not change.
func (h *ResponseHeader) Finished() bool { return h.Status != "queued" && h.Status != "in_progress" }

func (h *ResponseHeader) expired(now time.Time) bool { return !now.Before(h.Expires) }

// StoredResponse is a header with the parts that are read from disk.
type StoredResponse struct {
	ResponseHeader
	Body  json.RawMessage // the response object
	Input json.RawMessage // the array of input items, without those of Previous
	// Request holds what is needed to start the work again, as JSON in the caller's own form, or nil
	// if it cannot be started again. It is kept until the response has ended. Only
	// ReadResponseRequest returns it.
	Request json.RawMessage
	// Turn holds the items for the conversation. They are added in the same commit if the response
	// has ended with an answer.
	Turn []json.RawMessage
}

// responses holds the headers of stored responses; bodies, inputs and requests are in journal.Body. byUnfinished lists
// those that have not ended, and byOwner those of an owner in the order of their ids, which is that of their age.
var responses = state.Table[ResponseHeader]{
	Name:    journal.Response,
	ID:      func(h *ResponseHeader) string { return h.ID },
	Expires: func(h *ResponseHeader) time.Time { return h.Expires },
	Indexes: map[string]state.Index[ResponseHeader]{
		byUnfinished: {Unique: true, Key: func(h *ResponseHeader) []byte {
			if h.Finished() {
				return nil
			}
			return append([]byte{1}, state.TextKey(h.ID)...)
		}},
		byOwner: {Unique: true, Key: func(h *ResponseHeader) []byte {
			return append(state.TextKey(string(h.Owner)), h.ID...)
		}},
	},
}

// The keys of records that are only on disk. No id contains "/".
func bodyKey(id string) []byte    { return []byte(id + "/body") }
func inputKey(id string) []byte   { return []byte(id + "/input") }
func requestKey(id string) []byte { return []byte(id + "/request") }

// coldPrefix begins the keys of everything about a response that is only on disk, so that one
// operation removes it.
func coldPrefix(id string) []byte { return []byte(id + "/") }

// eventsAfter returns the key from which on a response's events after sequence are stored.
func eventsAfter(id string, sequence int64) []byte {
	return binary.BigEndian.AppendUint64(coldPrefix(id), uint64(sequence))
}

// PutResponse stores a new response. It sets Created and Expires if they are zero, and this process as its Node. The
// error is a *QuotaError if the owner has used up its quota, and state.ErrExists, state.ErrTooLarge or state.ErrInvalid
// if the response cannot be stored as it is. A stored response may grow beyond the quota until it has ended.
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
		if err := kept.checkRoom(tx, r.Owner, Kept{Responses: 1, Bytes: r.size()}); err != nil {
			return err
		}
		h := r.ResponseHeader
		if h.Created.IsZero() {
			h.Created = tx.Now()
		}
		if h.Expires.IsZero() {
			h.Expires = h.Created.Add(ResponseTTL)
		}
		h.Node = tx.Node()
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: bodyKey(r.ID), Value: r.Body})
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: inputKey(r.ID), Value: r.Input})
		if r.RequestSize > 0 {
			tx.Op(journal.Op{Kind: journal.Put, Table: journal.Body, Key: requestKey(r.ID), Value: r.Request})
		}
		return putResponse(tx, h, r.Turn)
	})
	return kept.countRefusal(err)
}

// check returns an error unless the response can be stored. An empty input becomes an empty array.
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

// checkBody refuses a body that is not a JSON object. What was stored damaged would be noticed only
// by the client that reads it.
func checkBody(id string, body []byte) error {
	if !json.Valid(body) || !gjson.ParseBytes(body).IsObject() {
		return fmt.Errorf("%w: the body of response %s is not an object", state.ErrInvalid, id)
	}
	return nil
}

// FindResponse returns the header of an owner's response without reading the disk. An unknown
// response, an expired one and one of another owner are all ErrNotFound.
func FindResponse(v state.View, id string, owner state.Owner) (ResponseHeader, error) {
	r := responses.Get(v, id)
	if r == nil || r.Rec.Owner != owner || r.Rec.expired(v.Now()) {
		return ResponseHeader{}, fmt.Errorf("response %q: %w", id, state.ErrNotFound)
	}
	return r.Rec, nil
}

// ReadResponse returns a stored response. The response of another owner is state.ErrNotFound. The disk has a change
// a moment before the header shows it. So a body that is newer than its header is returned with the header that belongs
// to it, because a client that reads the end of a response may go on at once, and then finds what was stored with it.
func ReadResponse(ctx context.Context, s *state.State, id string, owner state.Owner) (StoredResponse, error) {
	r, err := readResponse(ctx, s, id, owner)
	if err != nil || r.BodySize == int64(len(r.Body)) {
		return r, err
	}
	// An empty command ends when all changes before it are visible.
	if err := state.Run(ctx, s, func(*state.Tx) error { return nil }); err != nil {
		return StoredResponse{}, err
	}
	return readResponse(ctx, s, id, owner)
}

// readResponse returns a stored response whose body may be newer than its header.
func readResponse(ctx context.Context, s *state.State, id string, owner state.Owner) (StoredResponse, error) {
	h, err := FindResponse(s.View(), id, owner)
	if err != nil {
		return StoredResponse{}, err
	}
	r := StoredResponse{ResponseHeader: h}
	if r.Body, err = readBody(ctx, s, bodyKey(id)); err != nil {
		return StoredResponse{}, err
	}
	if r.Input, err = readBody(ctx, s, inputKey(id)); err != nil {
		return StoredResponse{}, err
	}
	return r, nil
}

// ReadResponseRequest returns what is needed to start an unfinished response again, or ErrNotFound.
func ReadResponseRequest(ctx context.Context, s *state.State, id string, owner state.Owner) ([]byte, error) {
	if _, err := FindResponse(s.View(), id, owner); err != nil {
		return nil, err
	}
	return readBody(ctx, s, requestKey(id))
}

// readBody returns a record that is only on disk.
func readBody(ctx context.Context, s *state.State, key []byte) ([]byte, error) {
	rec, err := s.Get(ctx, journal.Body, key)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("read %s: %w", key, state.ErrNotFound) // removed since its header was read
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return rec.Value, nil
}

// ResponseFilter selects responses. The zero value selects all.
type ResponseFilter struct {
	Unfinished bool // selects only queued responses and those in progress
}

// ListResponses returns the headers of unexpired responses, oldest first. At start the unfinished
// ones are those whose work was interrupted by the end of a process.
func ListResponses(v state.View, f ResponseFilter) []ResponseHeader {
	index, from := state.ByID, []byte(nil)
	if f.Unfinished {
		index, from = byUnfinished, []byte{1}
	}
	var found []ResponseHeader
	responses.From(v, index, from, func(r *state.Row[ResponseHeader]) bool {
		if h := &r.Rec; !h.expired(v.Now()) {
			found = append(found, *h)
		}
		return true
	})
	return found
}

// LatestResponses returns the headers of at most limit unexpired responses of an owner, newest first. A negative limit
// means all.
func LatestResponses(v state.View, owner state.Owner, limit int) (latest []ResponseHeader) {
	responses.Back(v, byOwner, append(state.TextKey(string(owner)), 0xff), func(r *state.Row[ResponseHeader]) bool {
		h := &r.Rec
		if len(latest) == limit || h.Owner != owner {
			return false
		}
		if !h.expired(v.Now()) {
			latest = append(latest, *h)
		}
		return true
	})
	return latest
}

// WatchResponse returns the header of an owner's response as FindResponse does, and a channel that is closed when it
// may have changed. A response that is missing or of another owner is state.ErrNotFound.
func WatchResponse(s *state.State, id string, owner state.Owner) (ResponseHeader, <-chan struct{}, error) {
	v := s.View()
	h, err := FindResponse(v, id, owner)
	return h, responses.Watch(v, id), err
}

// CancelResponse asks the process that works on a response to end it. It changes nothing if the response has ended. The
// mark is stored because that process may be another one, which sees it when it applies the change. The response of
// another owner is state.ErrNotFound.
func CancelResponse(ctx context.Context, s *state.State, id string, owner state.Owner) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		h, err := FindResponse(tx.View(), id, owner)
		if err != nil || h.Finished() || h.Cancelled {
			return err
		}
		h.Cancelled = true
		return responses.Put(tx, h)
	})
}

// ResponseUpdate describes a change of an unfinished response. Empty fields change nothing.
type ResponseUpdate struct {
	Status   string
	Model    string
	Provider string
	Body     json.RawMessage
	Expires  time.Time
	// Run counts another start of its work, which this process does from now on.
	Run bool
	// Ended, if set, is called with the process that works on the response. If it returns false, the change is refused
	// with ErrTaken.
	Ended func(state.Node) bool
	// Events is added to the event log, in the caller's own form. LastEvent is the sequence number
	// of its last event. Numbers only increase.
	Events    []byte
	LastEvent int64
	// Turn holds the items for the conversation. They are added in the same commit if Status ends
	// the response with an answer.
	Turn []json.RawMessage
	// Ends is the turn that ends with the response, or nil.
	Ends *Turn
}

// ErrTaken says that another process works on a response.
var ErrTaken = errors.New("another process works on it")

// UpdateResponse changes an unfinished response and returns its new header. A finished response is
// not changed, and the error is ErrFinished together with its header. If a cancellation and the
// last event race, the first one counts.
func UpdateResponse(ctx context.Context, s *state.State, id string, owner state.Owner,
	u ResponseUpdate) (ResponseHeader, error) {
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
		if u.Ended != nil && !u.Ended(h.Node) {
			return fmt.Errorf("response %s: %w", id, ErrTaken)
		}
		return u.apply(tx, &h)
	})
	if err != nil && !errors.Is(err, state.ErrFinished) {
		return ResponseHeader{}, err
	}
	return h, err
}

// apply makes the change as part of a command.
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
		h.Node = tx.Node()
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
	if h.Finished() {
		tx.OnCommit(u.Ends.End)
	}
	return putResponse(tx, *h, u.Turn)
}

// putResponse stores a header, which names no process any more if the response has ended. It adds turn to the
// conversation if the response has ended with an answer. A response that failed or was cancelled adds nothing.
func putResponse(tx *state.Tx, h ResponseHeader, turn []json.RawMessage) error {
	if h.Conversation != "" && (h.Status == "completed" || h.Status == "incomplete") {
		if err := addTurn(tx, h.Conversation, h.Owner, turn); err != nil {
			return err
		}
	}
	if h.Finished() {
		h.Node, h.Cancelled = "", false
	}
	return responses.Put(tx, h)
}

// DeleteResponse removes a response with all its records. Its provider must have deleted it before. The response of
// another owner is state.ErrNotFound.
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

// removeResponse removes a response with all its records and remembers its id. pending says what
// its provider must still delete, or is nil.
func (m *memory) removeResponse(tx *state.Tx, r *state.Row[ResponseHeader], pending *pendingDeletion) {
	prefix := coldPrefix(r.Rec.ID)
	tx.Op(journal.Op{Kind: journal.DeletePrefix, Table: journal.Body, Key: prefix})
	if r.Rec.EventSize > 0 {
		tx.Op(journal.Op{Kind: journal.DeletePrefix, Table: journal.Event, Key: prefix})
	}
	responses.Remove(tx, r)
	m.rememberResponse(tx, &r.Rec, pending)
}

// countResponses counts the stored responses when the state is opened.
func (m *memory) countResponses(s *state.State) {
	for h := range responses.All(s.View()) {
		m.kept.apply((*ResponseHeader)(nil), h)
	}
}
