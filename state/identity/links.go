package identity

import (
	"cmp"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Link is a one-time link with which a person chooses a password. It makes a user, or replaces the password of one.
// Only the hash of its secret is stored, and its record is removed by its use, so that it works once on all nodes.
type Link struct {
	ID   string     `json:"id"` // from NewID("lnk_")
	Hash state.Hash `json:"hash"`
	// User is the user who gets a new password, or 0 if the link makes a user. Epoch is the user's epoch at the time
	// when the link was made. The link is not valid any more once the user has a later one.
	User  int64 `json:"user,omitempty"`
	Epoch int64 `json:"epoch,omitempty"`
	// First is set for a link that makes the first administrator. It works only while there is no administrator.
	First bool `json:"first,omitempty"`
	// The rest is of invitations. Username is what the form suggests.
	Username string `json:"username,omitempty"`
	Email    string `json:"email,omitempty"`
	Admin    bool   `json:"admin,omitempty"`
	Group    int64  `json:"group,omitempty"` // the group in which the user will be; 0: none
	By       string `json:"by,omitempty"`    // the user who made the link; "": the operator
	// Lead is the lead of the group who made the invitation. It ends when that user no longer leads the group.
	Lead int64 `json:"lead,omitempty"`
	// Taken counts the usernames that were chosen and belong to others.
	Taken   int       `json:"taken,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Invites reports whether the link is an invitation.
func (l *Link) Invites() bool { return l.User == 0 && !l.First }

// links holds the links with which people make an account or choose a new password, by the hashes of their secrets,
// until they are used or expire.
var links = state.Table[Link]{
	Name:    journal.Link,
	ID:      func(l *Link) string { return l.ID },
	Expires: func(l *Link) time.Time { return l.Expires },
	Audit: &state.Audit[Link]{Kind: "link", Describe: func(v state.View, l *Link) (state.Target, state.Fields) {
		u, _ := FindUser(v, l.User)
		g, _ := FindGroup(v, l.Group)
		return state.Target{Name: cmp.Or(u.Username, l.Username)}, state.Fields{"user": u.Username, "first": l.First,
			"username": l.Username, "email": state.Hidden(l.Email), "admin": l.Admin, "group": g.Name,
			"expires": l.Expires}
	}},
	Indexes: map[string]state.Index[Link]{state.ByHash: state.HashIndex(linkHash)},
}

func linkHash(l *Link) *state.Hash { return &l.Hash }

// FindLink returns the link with this hash unless it has expired.
func FindLink(v state.View, h state.Hash) (Link, bool) {
	l, ok := links.FindHash(v, h, linkHash).Record()
	return l, ok && v.Now().Before(l.Expires)
}

// ListLinks returns the links that have not expired, oldest first.
func ListLinks(v state.View) []Link {
	var live []Link
	for l := range links.All(v) {
		if v.Now().Before(l.Expires) {
			live = append(live, *l)
		}
	}
	return live
}

// PutLink stores l.
func PutLink(tx *state.Tx, l Link) error { return putHashed(tx, &links, l, l.ID, linkHash) }

// RemoveLink removes a link if it exists.
func RemoveLink(tx *state.Tx, id string) { removeByID(tx, &links, id) }
