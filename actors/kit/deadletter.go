package kit

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// deadLetters counts the messages that could not be delivered, by type, and rejects those with a waiting caller.
type deadLetters struct {
	total  atomic.Int64
	byType sync.Map // message type -> *atomic.Int64; one entry for each type
}

// receive runs on the sender's goroutine inside the library, so it must neither block nor panic.
func (d *deadLetters) receive(event any) {
	dead, ok := event.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	d.total.Add(1)
	d.counter(fmt.Sprintf("%T", dead.Message)).Add(1)
	if r, ok := dead.Message.(Rejecter); ok {
		// A panic in Reject must not reach the sender.
		defer func() { _ = recover() }()
		r.Reject(ReasonDead)
	}
}

// counter returns the counter of a message type.
func (d *deadLetters) counter(name string) *atomic.Int64 {
	n, ok := d.byType.Load(name)
	if !ok {
		n, _ = d.byType.LoadOrStore(name, new(atomic.Int64))
	}
	return n.(*atomic.Int64)
}

// snapshot returns the counts by message type.
func (d *deadLetters) snapshot() map[string]int64 {
	counts := make(map[string]int64)
	d.byType.Range(func(name, n any) bool {
		counts[name.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return counts
}
