package videojob

import (
	"sync"

	"stagedoor/state"
	"stagedoor/state/share"
)

// slots are the places of jobs in flight. A job has one from before its record is written until its actor has ended,
// through all incarnations.
type slots struct {
	pool *share.Pool

	mu   sync.Mutex
	jobs map[string]state.Owner // by id
}

// newSlots returns so many places, which owners share.
func newSlots(most int64) *slots {
	return &slots{pool: share.New(share.Videos, most, 1), jobs: make(map[string]state.Owner)}
}

// take gives a new job a slot, or returns a *share.Refused.
func (s *slots) take(id string, owner state.Owner) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pool.Take(string(owner), 1); err != nil {
		return err
	}
	s.jobs[id] = owner
	return nil
}

// adopt gives a job that exists already a slot, unless it has one.
func (s *slots) adopt(id string, owner state.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.jobs[id]; !ok {
		s.pool.Adopt(string(owner), 1)
		s.jobs[id] = owner
	}
}

// release gives back the slot of a job. Later calls do nothing.
func (s *slots) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner, ok := s.jobs[id]; ok {
		s.pool.Give(string(owner), 1)
		delete(s.jobs, id)
	}
}

// releaseEnded gives back the slots of jobs that ended without the parent's notice.
func (s *slots) releaseEnded(ended func(id string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, owner := range s.jobs {
		if ended(id) {
			s.pool.Give(string(owner), 1)
			delete(s.jobs, id)
		}
	}
}
