package tokens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

const (
	// maxExternal is the number of identities that a user may link.
	maxExternal = 10
	// maxNamesakes is the number of usernames that are tried for a new user.
	maxNamesakes = 1000
)

// ExternalSignIn is a person whom an OpenID provider has just authenticated, with the rights that the configuration
// derives from the provider's answer.
type ExternalSignIn struct {
	Issuer, Subject string // name the person for good
	// Answer identifies the provider's answer, which works once on all nodes.
	Answer Once
	// Strong says that the provider has checked a second factor, so that no code is asked for.
	Strong bool
	// Create lets a person whom no user has linked become a new user, with Email and a name like Username.
	Create          bool
	Username, Email string
	// Group is the name of the group in which the user is from now on, "" for none. Nil: the group stays.
	Group *string
	// Admin says whether the user administers the gateway from now on. Nil: the role stays.
	Admin *bool
	From  Sender
	// Device returns the Device of a Login to the user with this name. Nil: the browser is unknown.
	Device func(username string) string
}

// ExternalIdentity is a person at an OpenID provider as whom a user signs in.
type ExternalIdentity struct {
	ID            string
	Issuer        string
	Created, Seen time.Time
}

// externalResult is the outcome of the command of LoginExternal, which makes changes also where a code is missing.
type externalResult struct {
	session Session
	halfway *Halfway
}

// LoginExternal makes the session of a person whom a provider has authenticated, and gives the user the group and the
// role that the provider's answer says. The last administrator stays one. It returns ErrUnlinked if no user has linked
// the person and none may be made, ErrUserDisabled, ErrUsed, *FieldError if the group does not exist, *TooMany, and
// *CodeRequired if the user has a second factor that the provider did not check.
func (c *Client) LoginExternal(ctx context.Context, e ExternalSignIn) (cookie string, s Session, err error) {
	if cookie, err = kindSession.mint(c.random); err != nil {
		return "", Session{}, err
	}
	var refused identity.User
	r, err := decide(ctx, c, nil, func(tx *state.Tx) (externalResult, error) {
		u, err := c.externalUser(tx, &e)
		if refused = u; err != nil {
			return externalResult{}, err
		}
		if u.SecondFactor != nil && !e.Strong {
			half := Halfway{User: u.ID, Epoch: u.Epoch, Issuer: e.Issuer}
			if e.Device != nil {
				half.Device = e.Device(u.Username)
			}
			return externalResult{halfway: &half}, nil
		}
		s, err := addSession(tx, u, state.HashSecret(cookie), c.config.Session, e.From, c.random,
			proof{e.Strong, e.Issuer})
		return externalResult{session: s}, err
	})
	switch {
	case errors.Is(err, ErrUnlinked), errors.Is(err, ErrUserDisabled):
		c.recordFailure(ctx, identity.RefusedIdentity, &refused, err)
		return "", Session{}, err
	case err != nil:
		return "", Session{}, err
	case r.halfway != nil:
		return "", Session{}, &CodeRequired{*r.halfway}
	}
	return cookie, r.session, nil
}

// externalUser returns the user of a person after the changes that the provider's answer asks for.
func (c *Client) externalUser(tx *state.Tx, e *ExternalSignIn) (identity.User, error) {
	x, linked := identity.FindExternalIdentity(tx.View(), e.Issuer, e.Subject)
	u, found := identity.FindUser(tx.View(), x.User)
	switch {
	case linked && (!found || !u.Active()):
		return u, ErrUserDisabled
	case !linked && !e.Create:
		return u, ErrUnlinked
	case !linked:
		name, err := freeUsername(tx.View(), cmp.Or(e.Username, "user"))
		if err != nil {
			return u, err
		}
		u = identity.User{Username: name, Email: e.Email, Status: identity.UserActive}
	}
	actAsUser(tx, &u)
	if e.Group != nil {
		g, ok := identity.FindGroupByName(tx.View(), *e.Group)
		if !ok && *e.Group != "" {
			// Without the group's ceiling the user could do more than was meant.
			return u, &FieldError{"group", "must be the name of a group"}
		}
		u.Group = g.ID
	}
	if e.Admin != nil && (*e.Admin || !isLastAdministrator(tx.View(), &u)) {
		u.Admin = *e.Admin
	}
	var err error
	if linked {
		err = identity.PutUser(tx, u)
	} else {
		u, err = identity.AddUser(tx, u)
	}
	if err != nil {
		return u, err
	}
	_, err = c.putExternal(tx, x, u.ID, e)
	return u, err
}

// putExternal stores that an answer of a provider was used for a user. A zero x is a new identity.
func (c *Client) putExternal(tx *state.Tx, x identity.ExternalIdentity, user int64,
	e *ExternalSignIn) (ExternalIdentity, error) {
	var err error
	if x.ID == "" {
		if len(identity.ListExternalIdentities(tx.View(), user)) >= maxExternal {
			return ExternalIdentity{}, &TooMany{"linked sign-ins", maxExternal, "remove one first"}
		}
		x = identity.ExternalIdentity{Issuer: e.Issuer, Subject: e.Subject, User: user, Created: tx.Now()}
		if x.ID, err = state.NewID("xid_", tx.Now(), c.random); err != nil {
			return ExternalIdentity{}, err
		}
	}
	if x.Used, err = e.Answer.use(x.Used, tx.Now()); err != nil {
		return ExternalIdentity{}, err
	}
	x.Seen = tx.Now()
	return externalOf(x), identity.PutExternalIdentity(tx, x)
}

// externalOf returns what callers see of an external identity.
func externalOf(x identity.ExternalIdentity) ExternalIdentity {
	return ExternalIdentity{ID: x.ID, Issuer: x.Issuer, Created: x.Created, Seen: x.Seen}
}

// freeUsername returns a username like the one that a provider suggests. The provider's users choose it, so it never
// is the name of a user that exists.
func freeUsername(v state.View, suggested string) (string, error) {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (isAlphanumeric(byte(r)) || strings.ContainsRune("._@+-", r)) {
			return r
		}
		return -1
	}, suggested)
	name = cmp.Or(name[:min(len(name), maxUsername-len("-1000"))], "user")
	for n := 1; n <= maxNamesakes; n++ {
		free := name
		if n > 1 {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		if _, taken := identity.FindUserByName(v, free); !taken {
			return free, nil
		}
	}
	return "", &TooMany{"namesakes", maxNamesakes, "ask the provider for another name"}
}

// isLastAdministrator reports whether no other active user administers the gateway.
func isLastAdministrator(v state.View, u *identity.User) bool {
	if !u.Admin {
		return false
	}
	last := true
	identity.EachUser(v, func(other *identity.User) bool {
		last = other.ID == u.ID || !other.Admin || !other.Active()
		return last
	})
	return last
}

// LinkExternal lets a signed-in user sign in as a person whom a provider has just authenticated. It returns ErrExists
// if that person is linked already, ErrNotFound, ErrUsed and *TooMany.
func (c *Client) LinkExternal(ctx context.Context, user int64, e ExternalSignIn) (ExternalIdentity, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (ExternalIdentity, error) {
		if u, ok := identity.FindUser(tx.View(), user); !ok || !u.Active() {
			return ExternalIdentity{}, ErrNotFound
		}
		if _, linked := identity.FindExternalIdentity(tx.View(), e.Issuer, e.Subject); linked {
			return ExternalIdentity{}, ErrExists
		}
		return c.putExternal(tx, identity.ExternalIdentity{}, user, &e)
	})
}

// ExternalIdentities returns the identities of a user, oldest first.
func (c *Client) ExternalIdentities(user int64) []ExternalIdentity {
	return each(identity.ListExternalIdentities(c.state.View(), user), externalOf)
}

// freshFor is the time after signing in during which a user without a password need not show again who it is.
const freshFor = 10 * time.Minute

// ConfirmSession checks a signed-in user without a password before a change that a stolen session must not suffice
// for: the session must be a fresh one. It returns ErrStale.
func (c *Client) ConfirmSession(s *Session) error {
	if c.state.View().Now().Sub(s.Created) > freshFor {
		return ErrStale
	}
	return nil
}
