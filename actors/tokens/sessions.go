package tokens

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

const (
	// maxSessions is the number of logins that a user keeps. A further login ends the oldest.
	maxSessions = 50
	// seenEvery is the precision of Session.Seen and User.Seen, because each update is a write.
	seenEvery  = 15 * time.Minute
	maxBrowser = 64
)

// sessionOf returns a stored session with its user.
func sessionOf(s identity.Session, u identity.User) Session {
	return Session{ID: s.ID, User: userOf(u), Created: s.Created, Expires: s.Expires, Seen: s.Seen,
		Browser: s.Device, Address: s.Address, Strong: s.Strong, Issuer: s.Issuer}
}

// Login makes a session and returns its cookie, which cannot be read later. It returns ErrLogin, ErrUserDisabled,
// *Limited, or *CodeRequired, after which FinishLogin makes the session.
func (c *Client) Login(ctx context.Context, l Login) (cookie string, s Session, err error) {
	if len(l.Username) > maxUsername || len(l.Password) > maxPassword {
		return "", Session{}, ErrLogin // no user has such a name
	}
	u, err := c.admitLogin(ctx, l)
	if err != nil {
		return "", Session{}, err
	}
	if u.SecondFactor != nil {
		return "", Session{}, &CodeRequired{Halfway{User: u.ID, Epoch: u.Epoch, Device: l.Device}}
	}
	return c.openSession(ctx, u, Sender{l.From, l.Browser})
}

// admitLogin checks a login if the limiter admits it, and reports the outcome to the limiter.
func (c *Client) admitLogin(ctx context.Context, l Login) (identity.User, error) {
	subjects := loginSubjects(l)
	if err := askAdmission(ctx, c, subjects); err != nil {
		return identity.User{}, err
	}
	ended := undecided
	defer func() { c.system.Send(c.pid, &settling{subjects, ended}) }()
	u, err := c.checkLogin(ctx, l)
	switch {
	case err == nil:
		ended = succeeded
	case errors.Is(err, ErrLogin):
		ended = failed
	}
	if errors.Is(err, ErrLogin) || errors.Is(err, ErrUserDisabled) {
		c.recordFailure(ctx, identity.WrongPassword, &u, err)
	}
	return u, err
}

// recordFailure writes a failed login to the audit log. It names only users that exist, because people type passwords
// into the field of the name.
func (c *Client) recordFailure(ctx context.Context, kind identity.FailureKind, u *identity.User, refusal error) {
	target := state.Target{Kind: "user", Name: u.Username}
	if u.ID != 0 {
		target.ID = strconv.FormatInt(u.ID, 10)
	}
	if err := identity.RecordFailedSignIn(ctx, c.state, kind, target, refusal.Error()); err != nil {
		c.system.Logger().Warn("the audit log lacks a failed login", "cause", err)
	}
}

// checkLogin checks the password. It takes the same time for a wrong password and an unknown user.
func (c *Client) checkLogin(ctx context.Context, l Login) (identity.User, error) {
	u, _ := identity.FindUserByName(c.state.View(), l.Username)
	ok, err := c.hasher.Verify(ctx, hashOwner(l), u.Password, l.Password)
	switch {
	case err != nil:
		return u, c.hasherError(ctx, err)
	case !ok:
		return u, ErrLogin
	case !u.Active():
		return u, ErrUserDisabled
	}
	return u, nil
}

// openSession makes a session for a user whose password was checked. It fails if the password has changed since.
func (c *Client) openSession(ctx context.Context, checked identity.User, from Sender) (string, Session, error) {
	cookie, err := kindSession.mint(c.random)
	if err != nil {
		return "", Session{}, err
	}
	s, err := decide(ctx, c, nil, func(tx *state.Tx) (Session, error) {
		u, ok := identity.FindUser(tx.View(), checked.ID)
		if !ok || u.Password != checked.Password || !u.Active() || u.SecondFactor != nil {
			return Session{}, ErrLogin
		}
		actAsUser(tx, &u)
		return addSession(tx, u, state.HashSecret(cookie), c.config.Session, from, c.random, proof{})
	})
	if err != nil {
		return "", Session{}, err
	}
	return cookie, s, nil
}

// actAsUser makes the rest of a command be recorded under a user who has proved an identity in it.
func actAsUser(tx *state.Tx, u *identity.User) { tx.ActAs(tx.Actor().As(state.ActorUser, u.Username)) }

// proof says how a login was made. strong: it proved two factors by itself. issuer is the OpenID provider, or "".
type proof struct {
	strong bool
	issuer string
}

// addSession stores a new session of a user.
func addSession(tx *state.Tx, u identity.User, hash state.Hash, lifetime time.Duration, from Sender,
	random io.Reader, by proof) (Session, error) {
	id, err := state.NewID("ses_", tx.Now(), random)
	if err != nil {
		return Session{}, err
	}
	if old := identity.ListSessions(tx.View(), u.ID); len(old) >= maxSessions {
		for _, s := range old[:len(old)-maxSessions+1] {
			identity.RemoveSession(tx, s.ID)
		}
	}
	s := identity.Session{ID: id, Hash: hash, User: u.ID, Epoch: u.Epoch,
		Created: tx.Now(), Expires: tx.Now().Add(lifetime), Strong: by.strong, Issuer: by.issuer}
	return touchSession(tx, s, u, from)
}

// touchSession stores that a session and its user are seen now.
func touchSession(tx *state.Tx, s identity.Session, u identity.User, from Sender) (Session, error) {
	s.Seen, u.Seen = tx.Now(), tx.Now()
	if from.Address.IsValid() {
		s.Address = from.Address.String()
	}
	if from.Browser != "" {
		s.Device = from.Browser[:min(len(from.Browser), maxBrowser)]
	}
	if err := identity.PutUser(tx, u); err != nil {
		return Session{}, err
	}
	return sessionOf(s, u), identity.PutSession(tx, s)
}

// Session returns the session of a cookie, or ErrNoSession. From time to time it stores that the session was seen, and
// from where, and ignores an error of that write.
func (c *Client) Session(ctx context.Context, cookie string, from Sender) (Session, error) {
	hash, ok := kindSession.hashOf(cookie)
	if !ok {
		return Session{}, ErrNoSession
	}
	v := c.state.View()
	s, u, ok := liveSession(v, hash)
	if !ok {
		return Session{}, ErrNoSession
	}
	if v.Now().Sub(s.Seen) < seenEvery {
		return sessionOf(s, u), nil
	}
	touched, err := decide(ctx, c, nil, func(tx *state.Tx) (Session, error) {
		s, u, ok := liveSession(tx.View(), hash)
		if !ok {
			return Session{}, ErrNoSession
		}
		return touchSession(tx, s, u, from)
	})
	switch {
	case errors.Is(err, ErrNoSession):
		return Session{}, err
	case err != nil:
		return sessionOf(s, u), nil
	}
	return touched, nil
}

// liveSession returns a session with its user, and whether both are valid now.
func liveSession(v state.View, hash state.Hash) (identity.Session, identity.User, bool) {
	s, ok := identity.FindSession(v, hash)
	if !ok {
		return s, identity.User{}, false
	}
	u, ok := identity.FindUser(v, s.User)
	return s, u, ok && s.Live(&u, v.Now())
}

// Sessions returns a user's live sessions, oldest first.
func (c *Client) Sessions(user int64) []Session {
	v := c.state.View()
	u, ok := identity.FindUser(v, user)
	if !ok {
		return nil
	}
	live := slices.DeleteFunc(identity.ListSessions(v, user),
		func(s identity.Session) bool { return !s.Live(&u, v.Now()) })
	return each(live, func(s identity.Session) Session { return sessionOf(s, u) })
}

// Logout ends the session of a cookie. An unknown cookie is no error.
func (c *Client) Logout(ctx context.Context, cookie string) error {
	hash, ok := kindSession.hashOf(cookie)
	if !ok {
		return nil
	}
	if _, ok := identity.FindSession(c.state.View(), hash); !ok {
		return nil
	}
	return do(ctx, c, nil, func(tx *state.Tx) error {
		if s, ok := identity.FindSession(tx.View(), hash); ok {
			identity.RemoveSession(tx, s.ID)
		}
		return nil
	})
}

// EndSession ends one session of a user, or returns ErrNotFound if the user has no such session.
func (c *Client) EndSession(ctx context.Context, user int64, id string) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		for _, s := range identity.ListSessions(tx.View(), user) {
			if s.ID == id {
				identity.RemoveSession(tx, id)
				return nil
			}
		}
		return ErrNotFound
	})
}

// EndSessions ends all of a user's sessions. It raises the account's epoch, which every session carries, so that no
// session has to be found and changed. ErrNotFound means that there is no such account.
func (c *Client) EndSessions(ctx context.Context, user int64) error {
	_, err := c.changeUser(ctx, user, func(u *identity.User) error { u.Epoch++; return nil })
	return err
}
