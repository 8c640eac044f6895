package work

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"stagedoor/state"
)

// Quota limits what one owner may keep of responses and conversations. A zero field sets no limit.
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

// QuotaError says that an owner has used up its quota.
type QuotaError struct {
	Kept  Kept
	Quota Quota
}

// Error implements error.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("%d responses and %d conversations of %d bytes are kept, of at most %d, %d and %d bytes",
		e.Kept.Responses, e.Kept.Conversations, e.Kept.Bytes, e.Quota.Responses, e.Quota.Conversations, e.Quota.Bytes)
}

// quotaCounter counts what each owner keeps, as far as it is durable.
type quotaCounter struct {
	quota   atomic.Pointer[Quota]
	refused atomic.Int64
	// undeleted and givenUp count the responses that stay at their providers, see Stats.
	undeleted, givenUp atomic.Int64

	mu     sync.Mutex
	owners map[state.Owner]Kept
	rows   int // responses of all owners, and their bytes
	bytes  int64
}

// quotaRecord is a record that counts towards its owner's quota. A nil one counts nothing.
type quotaRecord interface{ quotaUse() (state.Owner, Kept) }

// quotaUse implements quotaRecord.
func (h *ResponseHeader) quotaUse() (owner state.Owner, n Kept) {
	if h == nil {
		return "", Kept{}
	}
	return h.Owner, Kept{Responses: 1, Bytes: h.size()}
}

// quotaUse implements quotaRecord.
func (c *Conversation) quotaUse() (owner state.Owner, n Kept) {
	if c == nil {
		return "", Kept{}
	}
	return c.Owner, Kept{Conversations: 1, Bytes: c.Bytes}
}

// size returns the bytes of the response on disk that count towards the quota.
func (h *ResponseHeader) size() int64 { return h.BodySize + h.InputSize + h.RequestSize + h.EventSize }

// apply counts a change. before is nil for a new record, and after is nil for a removed one.
func (k *quotaCounter) apply(before, after quotaRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, h := range []quotaRecord{before, after} {
		owner, n := h.quotaUse()
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

// totals returns the number of stored responses and their bytes.
func (k *quotaCounter) totals() (rows int, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rows, k.bytes
}

// keptBy returns what an owner keeps.
func (k *quotaCounter) keptBy(owner state.Owner) Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owners[owner]
}

// add adds n, or subtracts it if sign is -1.
func (k *Kept) add(n Kept, sign int) {
	k.Responses += sign * n.Responses
	k.Conversations += sign * n.Conversations
	k.Bytes += int64(sign) * n.Bytes
}

// addChanges adds the changes of an owner's records to k.
func addChanges[H quotaRecord](k *Kept, of state.Owner, changes iter.Seq2[H, H]) {
	for before, after := range changes {
		for i, h := range []H{before, after} {
			if owner, n := h.quotaUse(); owner == of {
				k.add(n, 2*i-1)
			}
		}
	}
}

// check returns a *QuotaError if an owner that keeps kept may not keep more in addition.
func (k *quotaCounter) check(kept, more Kept) error {
	exceeds := func(kept, more, most int64) bool { return more > 0 && most > 0 && kept+more > most }
	q := k.quota.Load()
	if q != nil && (exceeds(int64(kept.Responses), int64(more.Responses), int64(q.Responses)) ||
		exceeds(int64(kept.Conversations), int64(more.Conversations), int64(q.Conversations)) ||
		exceeds(kept.Bytes, more.Bytes, q.Bytes)) {
		return &QuotaError{Kept: kept, Quota: *q}
	}
	return nil
}

// countRefusal counts err if it is a *QuotaError, and returns it.
func (k *quotaCounter) countRefusal(err error) error {
	if _, ok := errors.AsType[*QuotaError](err); ok {
		k.refused.Add(1)
	}
	return err
}

// checkRoom is check inside a command. It includes the changes of earlier commands that are not
// durable yet.
func (k *quotaCounter) checkRoom(tx *state.Tx, owner state.Owner, more Kept) error {
	kept := k.keptBy(owner)
	addChanges(&kept, owner, responses.Changed(tx))
	addChanges(&kept, owner, conversations.Changed(tx))
	return k.check(kept, more)
}

// SetResponseQuota sets the quota of each owner at once. Records beyond it stay until they expire
// or are deleted. Without a call there is no quota.
func SetResponseQuota(s *state.State, q Quota) { state.MemoryOf[*memory](s).kept.quota.Store(&q) }

// KeptResponses returns what an owner keeps.
func KeptResponses(s *state.State, owner state.Owner) Kept {
	return state.MemoryOf[*memory](s).kept.keptBy(owner)
}

// CheckResponseRoom returns the *QuotaError that PutResponse would return now. It lets a caller
// refuse a request before it costs anything.
func CheckResponseRoom(s *state.State, owner state.Owner) error {
	k := &state.MemoryOf[*memory](s).kept
	return k.countRefusal(k.check(k.keptBy(owner), Kept{Responses: 1, Bytes: 1}))
}
