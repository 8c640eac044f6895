package identity

import (
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Session is a login in a browser. The browser holds its secret in a cookie.
type Session struct {
	ID   string     `json:"id"` // from NewID("ses_")
	Hash state.Hash `json:"hash"`
	User int64      `json:"user"`
	// Epoch is the user's Epoch at the time of the login.
	Epoch   int64     `json:"epoch,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Seen    time.Time `json:"seen"` // last use, rounded, because each update is a write
	// Strong says that the login proved two factors by itself, without a code of the user's second factor.
	Strong bool `json:"strong,omitempty"`
	// Issuer is the OpenID provider that authenticated the user, or "".
	Issuer string `json:"issuer,omitempty"`
	// Device names the browser and its system, and Address is the client's address, both at the time of Seen.
	Device  string `json:"device,omitempty"`
	Address string `json:"address,omitempty"`
}

// Live reports whether the session belongs to u and is valid at now.
func (s *Session) Live(u *User, now time.Time) bool {
	return now.Before(s.Expires) && u.ID == s.User && u.Active() && u.Epoch == s.Epoch
}

const byUser = "user"

// sessions holds the sessions of browsers, by the hashes of their cookies, until they expire. A new one is recorded as
// sign_in, and one that is removed before it expires as sign_out.
var sessions = state.Table[Session]{
	Name:    journal.Session,
	ID:      func(s *Session) string { return s.ID },
	Expires: func(s *Session) time.Time { return s.Expires },
	Audit: &state.Audit[Session]{Kind: "session", Create: "sign_in", Remove: "sign_out",
		Describe: func(v state.View, s *Session) (state.Target, state.Fields) {
			u, _ := FindUser(v, s.User)
			return state.Target{Name: u.Username}, state.Fields{"expires": s.Expires}
		}},
	Indexes: map[string]state.Index[Session]{
		state.ByHash: state.HashIndex(sessionHash),
		byUser:       {Key: func(s *Session) []byte { return state.NumberKey(s.User) }},
	},
}

func sessionHash(s *Session) *state.Hash { return &s.Hash }

// FindSession returns the session with this hash, also if it is no longer valid.
func FindSession(v state.View, h state.Hash) (Session, bool) {
	return sessions.FindHash(v, h, sessionHash).Record()
}

// ListSessions returns a user's sessions, oldest first, including those that are no longer valid.
func ListSessions(v state.View, user int64) []Session {
	return sessions.List(v, byUser, state.NumberKey(user))
}

// PutSession stores s.
func PutSession(tx *state.Tx, s Session) error {
	return putHashed(tx, &sessions, s, s.ID, sessionHash)
}

// RemoveSession removes a session if it exists.
func RemoveSession(tx *state.Tx, id string) {
	removeByID(tx, &sessions, id)
}
