package state

import (
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// Session is a login in a browser, which holds the secret in a cookie.
type Session struct {
	ID   string `json:"id"` // from NewID("ses_")
	Hash Hash   `json:"hash"`
	User int64  `json:"user"`
	// Epoch is the user's when the session was made.
	Epoch   int64     `json:"epoch,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Seen    time.Time `json:"seen"` // coarse: each time is a write
}

// Live tells whether the session is u's and good at now.
func (s *Session) Live(u *User, now time.Time) bool {
	return now.Before(s.Expires) && u.ID == s.User && u.Active() && u.Epoch == s.Epoch
}

const byUser = "user"

var sessions = table[Session]{
	durable: journal.Session,
	id:      func(s *Session) string { return s.ID },
	expires: func(s *Session) time.Time { return s.Expires },
	more: map[string]*memdb.IndexSchema{
		byHash: hashIndex(sessionHash),
		byUser: {Name: byUser, Indexer: index[Session](func(s *Session) []byte { return numbers(s.User) })},
	},
}

func sessionHash(s *Session) *Hash { return &s.Hash }

// SessionByHash finds the session of a cookie, live or not.
func (v View) SessionByHash(h Hash) (Session, bool) {
	return found(sessions.byHash(v.txn, h, sessionHash))
}

// Sessions lists a user's sessions, live or not, oldest first.
func (v View) Sessions(user int64) []Session {
	return records(sessions.under(v.txn, byUser, numbers(user)))
}

// PutSession keeps s.
func (tx *Tx) PutSession(s Session) error {
	if err := checkID(s.ID); err != nil {
		return err
	}
	if err := sessions.takes(tx.mem, &s, sessionHash); err != nil {
		return err
	}
	return sessions.put(tx, s)
}

// RemoveSession forgets a session; an unknown one is none.
func (tx *Tx) RemoveSession(id string) {
	if r := sessions.get(tx.mem, id); r != nil {
		sessions.remove(tx, r)
	}
}
