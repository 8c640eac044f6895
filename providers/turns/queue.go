// Package turns bounds expensive work that is done at a time in the process, and lets owners take turns at it. Package
// stagedoor/state/share refuses what finds no room; a Queue has it wait.
//
// # Usage
//
//	if err := queue.Acquire(ctx, owner); err != nil {
//		return err
//	}
//	defer queue.Release(owner)
//
// # Concurrency
//
// Any goroutine may use a Queue.
package turns

import (
	"context"
	"slices"
	"sync"
)

// Queue grants slots to owners. An owner has at most half of the slots that other owners leave
// free, and always one. Owners that wait take turns, so that work waits for a few pieces of each
// other owner's and not for all of them.
type Queue struct {
	mu    sync.Mutex
	slots int
	used  int
	held  map[string]int
	// waiting has the grants that each owner waits for, the oldest first. turns has these
	// owners, and begins with the one that was served longest ago.
	waiting map[string][]chan struct{}
	turns   []string
}

// New returns a queue that grants at most this number of slots at a time.
func New(slots int) *Queue {
	return &Queue{slots: slots, held: make(map[string]int), waiting: make(map[string][]chan struct{})}
}

// Acquire waits for a slot until ctx ends, and returns the cause of the end then. Otherwise
// Release must be called.
func (q *Queue) Acquire(ctx context.Context, owner string) error {
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

// Release returns a slot of an owner.
func (q *Queue) Release(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free(owner)
}

// Load returns how many slots are in use and how many owners wait.
func (q *Queue) Load() (used, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used, len(q.turns)
}

// free returns a slot of an owner, with the lock held.
func (q *Queue) free(owner string) {
	q.used--
	if q.held[owner]--; q.held[owner] == 0 {
		delete(q.held, owner)
	}
	q.grant()
}

// leave removes a grant for which a caller waits, with the lock held. It returns false if the grant is not waited for
// any more.
func (q *Queue) leave(owner string, granted chan struct{}) bool {
	i := slices.Index(q.waiting[owner], granted)
	if i < 0 {
		return false
	}
	q.setWaiting(owner, slices.Delete(q.waiting[owner], i, i+1))
	return true
}

// setWaiting sets what an owner waits for. An owner that waits for nothing has no turn.
func (q *Queue) setWaiting(owner string, list []chan struct{}) {
	if len(list) > 0 {
		q.waiting[owner] = list
		return
	}
	delete(q.waiting, owner)
	q.turns = slices.DeleteFunc(q.turns, func(o string) bool { return o == owner })
}

// grant gives free slots to owners whose turn it is, with the lock held.
func (q *Queue) grant() {
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
func (q *Queue) mayHave(owner string) bool {
	own := q.held[owner]
	return own < max((q.slots-(q.used-own))/2, 1)
}
