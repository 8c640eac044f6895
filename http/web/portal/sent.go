package portal

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

// sent remembers which forms a user has sent, so that a second click or a reload does
// not make a second key. (Payments have the ledger to remember them.) It forgets after a
// day, and the oldest form of a user when that user has sent too many. It guards against
// accidents: a user who wants to send a form twice can open it twice.
type sent struct {
	now   func() time.Time
	mu    sync.Mutex
	users map[int64][]sentForm // oldest first
	tidy  time.Time            // when old forms of all users were last removed
}

type sentForm struct {
	id string
	at time.Time
}

const (
	maxSent  = 100 // of one user
	sentLife = 24 * time.Hour
	formID   = 16 // bytes
)

func newSent(now func() time.Time) *sent {
	return &sent{now: now, users: map[int64][]sentForm{}}
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

// first says whether the user had not sent the form before, and notes it.
func (s *sent) first(user int64, id string) bool {
	if !isFormID(id) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.removeOld(now)
	forms := s.users[user]
	if slices.ContainsFunc(forms, func(f sentForm) bool { return f.id == id }) {
		return false
	}
	if len(forms) >= maxSent {
		forms = slices.Delete(forms, 0, 1)
	}
	s.users[user] = append(forms, sentForm{id, now})
	return true
}

// removeOld forgets expired forms, once an hour at most.
func (s *sent) removeOld(now time.Time) {
	if now.Sub(s.tidy) < time.Hour {
		return
	}
	s.tidy = now
	for user, forms := range s.users {
		forms = slices.DeleteFunc(forms, func(f sentForm) bool { return now.Sub(f.at) >= sentLife })
		if s.users[user] = forms; len(forms) == 0 {
			delete(s.users, user)
		}
	}
}

// again lets the user send a form once more, because what it asked for was refused.
func (s *sent) again(user int64, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[user] = slices.DeleteFunc(s.users[user], func(f sentForm) bool { return f.id == id })
}
