package tokens

import (
	"context"
	"strconv"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// Lives of one-time links from the moment that they are made. Each is as short as its way to the person allows: the
// first administrator reads the link on the gateway's terminal, and the others get theirs from an administrator.
const (
	FirstLinkLife  = 15 * time.Minute
	ResetLinkLife  = 24 * time.Hour
	InvitationLife = 7 * 24 * time.Hour
)

// maxTaken is the number of usernames that are taken after which a link ends.
const maxTaken = 10

// maxInvitations is the number of invitations that may be open, and maxLeadInvitations that of those which the leads of
// one group have made.
const (
	maxInvitations     = 1000
	maxLeadInvitations = 50
)

// Invitation describes a user who does not exist yet. The person who opens the link chooses the password, and may
// choose another username than the suggested one.
type Invitation struct {
	Username string // suggested by the form; may be empty
	Email    string // may be empty
	Admin    bool   // may administer the gateway
	Group    int64  // 0: none
	By       string // the username of the administrator or lead who invites; "": the operator
	// Lead is the lead who invites into the group, or 0. The invitation ends when that user no longer leads the group.
	Lead int64
}

// AdministratorLink returns the secret of a link that makes the first administrator. It ends the earlier ones. It
// returns ErrExists if there is an active administrator, who can invite others.
func (c *Client) AdministratorLink(ctx context.Context) (secret string, l identity.Link, err error) {
	return c.addLink(ctx, FirstLinkLife, func(tx *state.Tx) (identity.Link, error) {
		if identity.HasAdministrator(tx.View()) {
			return identity.Link{}, ErrExists
		}
		removeLinks(tx, func(l *identity.Link) bool { return l.First })
		return identity.Link{First: true}, nil
	})
}

// ResetLink returns the secret of a link with which a user chooses a new password. It ends the user's earlier ones, and
// all that ends the user's sessions ends it. It returns ErrNotFound or ErrUserDisabled.
func (c *Client) ResetLink(ctx context.Context, user int64, by string) (secret string, l identity.Link, err error) {
	return c.addLink(ctx, ResetLinkLife, func(tx *state.Tx) (identity.Link, error) {
		u, ok := identity.FindUser(tx.View(), user)
		switch {
		case !ok:
			return identity.Link{}, ErrNotFound
		case !u.Active():
			return identity.Link{}, ErrUserDisabled
		}
		removeLinks(tx, func(l *identity.Link) bool { return l.User == user })
		return identity.Link{User: u.ID, Epoch: u.Epoch, By: by}, nil
	})
}

// Invite returns the secret of a link that makes a user. It returns ErrExists if the username is taken, ErrInvalid,
// *TooMany, and ErrNotFound for a lead who does not lead the group.
func (c *Client) Invite(ctx context.Context, i Invitation) (secret string, l identity.Link, err error) {
	if i.Username != "" {
		err = checkUsername(i.Username)
	}
	if err == nil {
		err = checkEmail(i.Email)
	}
	if err == nil && i.Username == "" && i.Email == "" {
		err = &FieldError{"username", "or email must say who is invited"}
	}
	if err != nil {
		return "", identity.Link{}, err
	}
	return c.addLink(ctx, InvitationLife, func(tx *state.Tx) (identity.Link, error) {
		open, ofLeads := 0, 0
		for _, l := range identity.ListLinks(tx.View()) {
			if l.Invites() {
				open++
			}
			if l.Lead != 0 && l.Group == i.Group {
				ofLeads++
			}
		}
		if open >= maxInvitations {
			return identity.Link{}, &TooMany{"open invitations", maxInvitations, "withdraw one first"}
		}
		if i.Lead != 0 {
			if g, ok := identity.LedBy(tx.View(), i.Lead); !ok || g.ID != i.Group || i.Admin {
				return identity.Link{}, ErrNotFound
			}
			if ofLeads >= maxLeadInvitations {
				return identity.Link{}, &TooMany{"open invitations", maxLeadInvitations, "withdraw one first"}
			}
		} else if _, taken := identity.FindUserByName(tx.View(), i.Username); taken {
			// A lead does not hear of it, because users of other groups are not the lead's to know. The person who
			// opens the link chooses another name.
			return identity.Link{}, ErrExists
		}
		if _, ok := identity.FindGroup(tx.View(), i.Group); i.Group != 0 && !ok {
			return identity.Link{}, &FieldError{"group", "must be the id of a group"}
		}
		return identity.Link{Username: i.Username, Email: i.Email, Admin: i.Admin, Group: i.Group, By: i.By,
			Lead: i.Lead}, nil
	})
}

// addLink stores the link that describe returns, under a new secret.
func (c *Client) addLink(ctx context.Context, life time.Duration,
	describe func(*state.Tx) (identity.Link, error)) (secret string, l identity.Link, err error) {
	if secret, err = kindLink.mint(c.random); err != nil {
		return "", identity.Link{}, err
	}
	l, err = decide(ctx, c, nil, func(tx *state.Tx) (identity.Link, error) {
		l, err := describe(tx)
		if err != nil {
			return l, err
		}
		if l.ID, err = state.NewID("lnk_", tx.Now(), c.random); err != nil {
			return l, err
		}
		l.Hash, l.Created, l.Expires = state.HashSecret(secret), tx.Now(), tx.Now().Add(life)
		return l, identity.PutLink(tx, l)
	})
	if err != nil {
		return "", identity.Link{}, err
	}
	return secret, l, nil
}

// removeLinks removes the links that which chooses, in the transaction of the change that makes them void.
func removeLinks(tx *state.Tx, which func(*identity.Link) bool) {
	for _, l := range identity.ListLinks(tx.View()) {
		if which(&l) {
			identity.RemoveLink(tx, l.ID)
		}
	}
}

// Invitations returns the open invitations, oldest first.
func (c *Client) Invitations() []identity.Link {
	var open []identity.Link
	for _, l := range identity.ListLinks(c.state.View()) {
		if l.Invites() {
			open = append(open, l)
		}
	}
	return open
}

// WithdrawInvitation ends an invitation and returns it, or ErrNotFound if it is not open.
func (c *Client) WithdrawInvitation(ctx context.Context, id string) (identity.Link, error) {
	return c.withdraw(ctx, id, func(state.View, *identity.Link) bool { return true })
}

// withdraw ends the open invitation with this id if may permits it, and returns it. It returns ErrNotFound otherwise.
func (c *Client) withdraw(ctx context.Context, id string,
	may func(state.View, *identity.Link) bool) (identity.Link, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Link, error) {
		for _, l := range identity.ListLinks(tx.View()) {
			if l.ID == id && l.Invites() && may(tx.View(), &l) {
				identity.RemoveLink(tx, id)
				return l, nil
			}
		}
		return identity.Link{}, ErrNotFound
	})
}

// CheckLink returns the link of a secret with its user, who is zero for a link that makes one. It changes nothing. It
// returns ErrUsed if the link does not work, for whatever reason.
func (c *Client) CheckLink(secret string) (identity.Link, User, error) {
	hash, ok := kindLink.hashOf(secret)
	if !ok {
		return identity.Link{}, User{}, ErrUsed
	}
	l, u, err := checkLink(c.state.View(), hash)
	return l, userOf(u), err
}

// checkLink finds a link that can still be used. A link for the first administrator is useless once there is one, an
// invitation by a lead ends when that user no longer leads the group, and a link for a user ends with a change of the
// user's session epoch, such as a new password. The error is the same in all cases, so that it reveals nothing.
func checkLink(v state.View, hash state.Hash) (identity.Link, identity.User, error) {
	l, ok := identity.FindLink(v, hash)
	u, found := identity.FindUser(v, l.User)
	led, _ := identity.LedBy(v, l.Lead)
	switch {
	case !ok, l.First && identity.HasAdministrator(v),
		l.Lead != 0 && led.ID != l.Group,
		l.User != 0 && (!found || !u.Active() || u.Epoch != l.Epoch):
		return identity.Link{}, identity.User{}, ErrUsed
	}
	return l, u, nil
}

// countTaken stores that a link was used with a username that is taken, which ends it at the last of maxTaken times.
// The holder must not find out which usernames there are by trying them. It returns ErrExists, or ErrUsed.
func (c *Client) countTaken(ctx context.Context, hash state.Hash) error {
	err := do(ctx, c, nil, func(tx *state.Tx) error {
		l, _, err := checkLink(tx.View(), hash)
		if err != nil {
			return err
		}
		if l.Taken++; l.Taken >= maxTaken {
			identity.RemoveLink(tx, l.ID)
			return nil
		}
		return identity.PutLink(tx, l)
	})
	if err == nil {
		err = ErrExists
	}
	return err
}

// UseLink ends a link. It makes a user with the username and password, or sets the password of the link's user, whose
// sessions end. It returns ErrUsed, ErrExists if the username is taken, ErrInvalid, and *Limited.
func (c *Client) UseLink(ctx context.Context, secret, username, password string) (User, error) {
	l, _, err := c.CheckLink(secret)
	if err == nil && l.User == 0 {
		err = checkUsername(username)
	}
	if err == nil {
		err = checkPassword(password)
	}
	if err != nil {
		return User{}, err // saves the hashing; the command checks the link again
	}
	// The limiter counts for the lead, because a lead could make any number of invitations and try some names with
	// each.
	var subjects []subject
	if l.Lead != 0 {
		subjects = []subject{{byLead, strconv.FormatInt(l.Lead, 10)}}
	}
	if err := askAdmission(ctx, c, subjects); err != nil {
		return User{}, err
	}
	ended := undecided
	defer func() { c.system.Send(c.pid, &settling{subjects, ended}) }()
	if _, taken := identity.FindUserByName(c.state.View(), username); taken && l.User == 0 {
		ended = failed
		return User{}, c.countTaken(ctx, l.Hash) // saves the hashing; the command below checks it again
	}
	hash, err := c.hash(ctx, "link "+l.ID, password)
	if err != nil {
		return User{}, err
	}
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		l, u, err := checkLink(tx.View(), l.Hash)
		if err != nil {
			return User{}, err
		}
		identity.RemoveLink(tx, l.ID)
		u.Password = hash
		if l.User != 0 {
			u.Epoch++
			actAsUser(tx, &u)
			return userOf(u), identity.PutUser(tx, u)
		}
		u.Username, u.Email, u.Status, u.Group = username, l.Email, identity.UserActive, l.Group
		u.Admin = l.First || l.Admin
		actAsUser(tx, &u)
		u, err = identity.AddUser(tx, u)
		return userOf(u), err
	})
}
