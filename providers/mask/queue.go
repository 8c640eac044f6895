package mask

import (
	"context"
	"slices"
	"sync"
)

// queue grants slots to owners. An owner has at most half of the slots that other owners leave
// free, and always one. Owners that wait take turns, so that a picture waits for a few of each
// other owner and not for all of them.
type queue struct {
	mu    sync.Mutex
	slots int
	used  int
	held  map[string]int
	// waiting has the grants that each owner waits for, the oldest first. turns has these
	// owners, and begins with the one that was served longest ago.
	waiting map[string][]chan struct{}
	turns   []string
}

// newQueue returns a queue that grants at most this number of slots at a time.
func newQueue(slots int) *queue {
	return &queue{slots: slots, held: make(map[string]int), waiting: make(map[string][]chan struct{})}
}

// acquire waits for a slot until ctx ends, and returns the cause of the end then. Otherwise
// release must be called.
func (q *queue) acquire(ctx context.Context, owner string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	granted := make(chan struct{})
	q.mu.Lock()
	if len(q.waiting[owner]) == 0 {
		q.turns = append(q.turns, owner)
	}
	q.waiting[owner] = append(q.waiting[owner], granted)
	q.grant()
	q.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.leave(owner, granted) {
		q.free(owner) // it was granted as ctx ended
	}
	return context.Cause(ctx)
}

// release returns a slot of an owner.
func (q *queue) release(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free(owner)
}

// free returns a slot of an owner, with the lock held.
func (q *queue) free(owner string) {
	q.used--
	if q.held[owner]--; q.held[owner] == 0 {
		delete(q.held, owner)
	}
	q.grant()
}

// leave removes a grant for which a caller waits, with the lock held. It returns false if the grant is not waited for
// any more.
func (q *queue) leave(owner string, granted chan struct{}) bool {
	i := slices.Index(q.waiting[owner], granted)
	if i < 0 {
		return false
	}
	q.setWaiting(owner, slices.Delete(q.waiting[owner], i, i+1))
	return true
}

// setWaiting sets what an owner waits for. An owner that waits for nothing has no turn.
func (q *queue) setWaiting(owner string, list []chan struct{}) {
	if len(list) > 0 {
		q.waiting[owner] = list
		return
	}
	delete(q.waiting, owner)
	q.turns = slices.DeleteFunc(q.turns, func(o string) bool { return o == owner })
}

// grant gives free slots to owners whose turn it is, with the lock held.
func (q *queue) grant() {
	for q.used < q.slots {
		i := slices.IndexFunc(q.turns, q.mayHave)
		if i < 0 {
			return
		}
		owner := q.turns[i]
		q.turns = append(slices.Delete(q.turns, i, i+1), owner)
		q.used++
		q.held[owner]++
		close(q.waiting[owner][0])
		q.setWaiting(owner, q.waiting[owner][1:])
	}
}

// mayHave reports whether the share of an owner has room for one more slot.
func (q *queue) mayHave(owner string) bool {
	own := q.held[owner]
	return own < max((q.slots-(q.used-own))/2, 1)
}
