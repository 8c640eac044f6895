package work

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"stagedoor/state"
)

// Quota bounds what one owner may keep of responses and conversations. A zero value means any amount.
type Quota struct {
	Responses     int
	Conversations int
	Bytes         int64
}

// Kept counts the responses and conversations that an owner keeps, and their bytes.
type Kept struct {
	Responses     int
	Conversations int
	Bytes         int64 // of bodies, inputs, events and requests, and of items and metadata
}

// QuotaError says that an owner keeps as much as it may.
type QuotaError struct {
	Kept  Kept
	Quota Quota
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf(
		"%d responses and %d conversations of %d bytes are kept, of at most %d, %d and %d bytes",
		e.Kept.Responses, e.Kept.Conversations, e.Kept.Bytes,
		e.Quota.Responses, e.Quota.Conversations, e.Quota.Bytes,
	)
}

// keeping counts what each owner keeps, as far as it is durable.
type keeping struct {
	quota   atomic.Pointer[Quota]
	refused atomic.Int64
	// undeleted counts the responses that are kept by their providers because too many deletions of their owner
	// waited, and givenUp those because all tries to delete them failed until their ids were forgotten.
	undeleted, givenUp atomic.Int64

	mu     sync.Mutex
	owners map[state.Owner]Kept
	rows   int // of all owners
	bytes  int64
}

// holder is a record that counts for what its owner keeps. A nil one counts nothing.
type holder interface{ holds() (state.Owner, Kept) }

func (h *ResponseHeader) holds() (owner state.Owner, n Kept) {
	if h == nil {
		return "", Kept{}
	}
	return h.Owner, Kept{Responses: 1, Bytes: h.size()}
}

func (c *Conversation) holds() (owner state.Owner, n Kept) {
	if c == nil {
		return "", Kept{}
	}
	return c.Owner, Kept{Conversations: 1, Bytes: c.Bytes}
}

func (h *ResponseHeader) size() int64 { return h.BodySize + h.InputSize + h.RequestSize + h.EventSize }

// change counts a record that changed, came or left.
func (k *keeping) change(before, after holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, h := range []holder{before, after} {
		owner, n := h.holds()
		kept, sign := k.owners[owner], 2*i-1
		k.rows += sign * n.Responses
		if n.Responses > 0 {
			k.bytes += int64(sign) * n.Bytes
		}
		if kept.add(n, sign); kept == (Kept{}) {
			delete(k.owners, owner)
		} else {
			k.owners[owner] = kept
		}
	}
}

// totals returns how many responses are kept, and their bytes.
func (k *keeping) totals() (rows int, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rows, k.bytes
}

// of returns what an owner keeps.
func (k *keeping) of(owner state.Owner) Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owners[owner]
}

// add adds n, or takes it away if sign is -1.
func (k *Kept) add(n Kept, sign int) {
	k.Responses += sign * n.Responses
	k.Conversations += sign * n.Conversations
	k.Bytes += int64(sign) * n.Bytes
}

// follow adds the changes of records of an owner.
func follow[H holder](k *Kept, of state.Owner, changes iter.Seq2[H, H]) {
	for before, after := range changes {
		for i, h := range []H{before, after} {
			if owner, n := h.holds(); owner == of {
				k.add(n, 2*i-1)
			}
		}
	}
}

// check returns a *QuotaError if an owner that keeps kept may not keep more beside it.
func (k *keeping) check(kept, more Kept) error {
	exceeds := func(kept, more, most int64) bool { return more > 0 && most > 0 && kept+more > most }
	q := k.quota.Load()
	if q != nil && (exceeds(int64(kept.Responses), int64(more.Responses), int64(q.Responses)) ||
		exceeds(int64(kept.Conversations), int64(more.Conversations), int64(q.Conversations)) ||
		exceeds(kept.Bytes, more.Bytes, q.Bytes)) {
		return &QuotaError{Kept: kept, Quota: *q}
	}
	return nil
}

// counted counts err if it is a *QuotaError, and returns it.
func (k *keeping) counted(err error) error {
	if _, ok := errors.AsType[*QuotaError](err); ok {
		k.refused.Add(1)
	}
	return err
}

// room is check for a command, in which what the commands before it have put counts, too.
func (k *keeping) room(tx *state.Tx, owner state.Owner, more Kept) error {
	kept := k.of(owner)
	follow(&kept, owner, responses.Changed(tx))
	follow(&kept, owner, conversations.Changed(tx))
	return k.check(kept, more)
}

// SetResponseQuota bounds what each owner may keep, at once. What is beyond it stays until it expires or is deleted.
// At first there is no bound.
func SetResponseQuota(s *state.State, q Quota) { state.MemoryOf[*memory](s).kept.quota.Store(&q) }

// KeptResponses returns what an owner keeps.
func KeptResponses(s *state.State, owner state.Owner) Kept {
	return state.MemoryOf[*memory](s).kept.of(owner)
}

// CheckResponseRoom returns the *QuotaError that PutResponse would return for a response of an owner now, so that a
// request can be refused before it costs anything.
func CheckResponseRoom(s *state.State, owner state.Owner) error {
	k := &state.MemoryOf[*memory](s).kept
	return k.counted(k.check(k.of(owner), Kept{Responses: 1, Bytes: 1}))
}
