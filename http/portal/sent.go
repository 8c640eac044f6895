package portal

import (
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"
)

// sent remembers which forms were sent, so that a second click or a reload does
// not make a second key. (Payments have the ledger to remember them.) It forgets
// after a day, and the oldest when there are too many: it guards against
// accidents. Who wants to send a form twice can open it twice.
type sent struct {
	now  func() time.Time
	mu   sync.Mutex
	ids  map[string]*list.Element
	list *list.List // of sentForm, by age
}

type sentForm struct {
	id string
	at time.Time
}

const (
	maxSent  = 10_000
	sentLife = 24 * time.Hour
	formID   = 16 // bytes
)

func newSent(now func() time.Time) *sent {
	return &sent{now: now, ids: map[string]*list.Element{}, list: list.New()}
}

// newFormID is the id of a form that is drawn.
func newFormID() string {
	var raw [formID]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

func isFormID(id string) bool {
	raw, err := hex.DecodeString(id)
	return err == nil && len(raw) == formID
}

// first tells whether the form was not sent before, and notes that it was now.
func (s *sent) first(id string) bool {
	if !isFormID(id) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] != nil {
		return false
	}
	now := s.now()
	s.ids[id] = s.list.PushBack(sentForm{id, now})
	for e := s.list.Front(); e != nil; e = s.list.Front() {
		f := e.Value.(sentForm)
		if len(s.ids) <= maxSent && now.Sub(f.at) < sentLife {
			break
		}
		delete(s.ids, f.id)
		s.list.Remove(e)
	}
	return true
}

// again lets a form be sent once more: what it asked for was refused.
func (s *sent) again(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.ids[id]; e != nil {
		delete(s.ids, id)
		s.list.Remove(e)
	}
}
