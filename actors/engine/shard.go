package engine

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// shard admits requests and knows those of them that are in flight. There are several, so that requests that begin at
// the same time seldom wait for each other.
type shard struct {
	system *kit.System
	props  *actor.Props

	mu       sync.Mutex
	refusing bool
	first    *core // of a list
	pending  *core // the request whose actor is being made
	_        [64]byte
}

// admit starts the actor of a request, on a goroutine of the actor system.
func (s *shard) admit(r *core) *upstream.Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return shuttingDown()
	}
	s.pending = r // for the producer, which runs during the call
	pid, err := s.system.SpawnOnce(s.props, "engine/r")
	s.pending = nil
	if err != nil {
		return CallerFault(dialogue.Internal(err))
	}
	r.pid, r.listed = pid, true
	if r.next = s.first; r.next != nil {
		r.next.prev = r
	}
	s.first = r
	return nil
}

// remove forgets a request, if it was admitted.
func (s *shard) remove(r *core) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.listed {
		return
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		s.first = r.next
	}
	r.listed, r.prev, r.next = false, nil, nil
}

// actorOf returns the actor of a request, or nil if it has none yet.
func (s *shard) actorOf(r *core) *actor.PID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.pid
}

// cut refuses requests from now on, and cancels those in flight.
func (s *shard) cut(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = true
	for r := s.first; r != nil; r = r.next {
		s.system.Send(r.pid, &cancel{cause})
	}
}
