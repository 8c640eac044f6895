package state

import (
	"time"

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

var sessions = Table[Session]{
	Name:    journal.Session,
	ID:      func(s *Session) string { return s.ID },
	Expires: func(s *Session) time.Time { return s.Expires },
	Indexes: map[string]Index[Session]{
		ByHash: HashIndex(sessionHash),
		byUser: {Key: func(s *Session) []byte { return NumberKey(s.User) }},
	},
}

func sessionHash(s *Session) *Hash { return &s.Hash }

// SessionByHash finds the session of a cookie, live or not.
func (v View) SessionByHash(h Hash) (Session, bool) {
	return sessions.FindHash(v, h, sessionHash).Record()
}

// Sessions lists a user's sessions, live or not, oldest first.
func (v View) Sessions(user int64) []Session {
	return sessions.List(v, byUser, NumberKey(user))
}

// PutSession keeps s.
func (tx *Tx) PutSession(s Session) error {
	if err := CheckID(s.ID); err != nil {
		return err
	}
	if err := sessions.CheckHash(tx.View(), &s, sessionHash); err != nil {
		return err
	}
	return sessions.Put(tx, s)
}

// RemoveSession forgets a session; an unknown one is none.
func (tx *Tx) RemoveSession(id string) {
	if r := sessions.Get(tx.View(), id); r != nil {
		sessions.Remove(tx, r)
	}
}
