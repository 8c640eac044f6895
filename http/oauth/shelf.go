package oauth

import (
	"container/list"
	"encoding/base64"
	"fmt"
	"io"
	"sync"
	"time"
)

// shelf keeps a bounded number of things for a while, each under an id that
// cannot be guessed. What is put on it must not change.
type shelf[T any] struct {
	most   int
	life   time.Duration
	now    func() time.Time
	random io.Reader

	mu      sync.Mutex
	entries map[string]*list.Element // of *kept[T]
	order   *list.List               // by age, which is also by expiry
}

type kept[T any] struct {
	id      string
	value   T
	expires time.Time
}

func newShelf[T any](o Options, most int, life time.Duration) *shelf[T] {
	return &shelf[T]{most: most, life: life, now: o.Now, random: o.Random, entries: make(map[string]*list.Element), order: list.New()}
}

const shelfIDBytes = 32

// put keeps v under a new id.
func (s *shelf[T]) put(v T) (id string, err error) {
	var raw [shelfIDBytes]byte
	if _, err := io.ReadFull(s.random, raw[:]); err != nil {
		return "", fmt.Errorf("draw an id: %w", err)
	}
	id = base64.RawURLEncoding.EncodeToString(raw[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[id] = s.order.PushBack(&kept[T]{id, v, s.now().Add(s.life)})
	s.tidy()
	return id, nil
}

// tidy drops what has expired, and what is too much.
func (s *shelf[T]) tidy() {
	now := s.now()
	for e := s.order.Front(); e != nil; e = s.order.Front() {
		if k := e.Value.(*kept[T]); len(s.entries) <= s.most && now.Before(k.expires) {
			return
		}
		s.drop(e)
	}
}

func (s *shelf[T]) drop(e *list.Element) {
	delete(s.entries, s.order.Remove(e).(*kept[T]).id)
}

// get looks at what is under an id.
func (s *shelf[T]) get(id string) (v T, ok bool) { return s.find(id, false) }

// take removes what is under an id: of any number of callers one gets it.
func (s *shelf[T]) take(id string) (v T, ok bool) { return s.find(id, true) }

func (s *shelf[T]) find(id string, remove bool) (v T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok {
		return v, false
	}
	k := e.Value.(*kept[T])
	if !s.now().Before(k.expires) {
		s.drop(e)
		return v, false
	}
	if remove {
		s.drop(e)
	}
	return k.value, true
}
