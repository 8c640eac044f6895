package state

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Quota bounds what one owner may keep of responses. Zero values: any amount.
type Quota struct {
	Responses int
	Bytes     int64
}

// Kept is what an owner keeps of responses.
type Kept struct {
	Responses int
	Bytes     int64 // of bodies, inputs, events and requests
}

// QuotaError says that an owner keeps as many responses as it may.
type QuotaError struct {
	Kept  Kept
	Quota Quota
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("%d responses of %d bytes are kept, of at most %d and %d bytes", e.Kept.Responses, e.Kept.Bytes, e.Quota.Responses, e.Quota.Bytes)
}

// keeping counts what each owner keeps, as far as it is durable.
type keeping struct {
	quota   atomic.Pointer[Quota]
	refused atomic.Int64
	// undeleted counts what UndeletedResponses returns, and givenUp the deletions at providers
	// that failed until the ids of their responses were forgotten.
	undeleted, givenUp atomic.Int64

	mu     sync.Mutex
	owners map[Owner]Kept
	bytes  int64
}

// add counts a change of a response.
func (k *keeping) add(c change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h, sign := range headersOf(c) {
		kept := k.owners[h.Owner]
		kept.add(h, sign)
		k.bytes += int64(sign) * h.size()
		if kept == (Kept{}) {
			delete(k.owners, h.Owner)
		} else {
			k.owners[h.Owner] = kept
		}
	}
}

// headersOf returns the headers that a change takes away, with -1, and brings, with 1.
func headersOf(c change) map[*ResponseHeader]int {
	headers := make(map[*ResponseHeader]int, 2)
	if r, ok := c.before.(*row[ResponseHeader]); ok {
		headers[&r.rec] = -1
	}
	if r, ok := c.after.(*row[ResponseHeader]); ok {
		headers[&r.rec] = 1
	}
	return headers
}

func (k *Kept) add(h *ResponseHeader, sign int) {
	k.Responses += sign
	k.Bytes += int64(sign) * h.size()
}

func (h *ResponseHeader) size() int64 { return h.BodySize + h.InputSize + h.RequestSize + h.EventSize }

// check returns a *QuotaError if an owner that keeps kept may not keep n bytes more in a
// further response.
func (k *keeping) check(kept Kept, n int64) error {
	q := k.quota.Load()
	if q == nil || (q.Responses == 0 || kept.Responses < q.Responses) && (q.Bytes == 0 || kept.Bytes+n <= q.Bytes) {
		return nil
	}
	return &QuotaError{Kept: kept, Quota: *q}
}

// counted counts err if it is a *QuotaError, and returns it.
func (k *keeping) counted(err error) error {
	if _, ok := errors.AsType[*QuotaError](err); ok {
		k.refused.Add(1)
	}
	return err
}

// SetResponseQuota bounds what each owner may keep, at once. What is over stays until
// it expires or is deleted. At first there is no bound.
func (s *State) SetResponseQuota(q Quota) { s.kept.quota.Store(&q) }

// KeptResponses returns what an owner keeps of responses.
func (s *State) KeptResponses(owner Owner) Kept {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	return s.kept.owners[owner]
}

// ResponseRoom returns the *QuotaError that PutResponse would return for a response of
// an owner now, so that a request can be refused before it costs anything.
func (s *State) ResponseRoom(owner Owner) error {
	return s.kept.counted(s.kept.check(s.KeptResponses(owner), 1))
}

// responseRoom is ResponseRoom for a command: what its batch has put counts, too.
func (s *State) responseRoom(tx *Tx, owner Owner, n int64) error {
	kept := s.KeptResponses(owner)
	for _, c := range tx.done {
		if c.table != responses.name() {
			continue
		}
		for h, sign := range headersOf(c) {
			if h.Owner == owner {
				kept.add(h, sign)
			}
		}
	}
	return s.kept.check(kept, n)
}
