package pages

import (
	"net/url"
	"strconv"
	"time"
)

// Users lists accounts for who administers.
type Users struct {
	Desk
	Query string
	Users []User
	Pager Pager
	Entry UserEntry
	// Sort is name, seen, month, or "" for the newest first. State is active, disabled, admin, or "" for all.
	Sort, State string
	Groups      []GroupChoice // by which the list can be filtered

	Invite      InviteEntry
	Invitations []Invitation // those that are open
}

// InviteEntry is the form that invites people, as it was typed.
type InviteEntry struct {
	Form   Form // can be sent once
	People string
	Groups []GroupChoice
	Open   bool // the form is shown unfolded
}

// GroupChoice is a group that a form offers.
type GroupChoice struct {
	ID     int64
	Name   string
	Chosen bool
}

// Invitation is an open invitation in a list.
type Invitation struct {
	ID, For, Group   string
	Admin            bool
	By               string
	Created, Expires time.Time
}

// UserEntry is the form for a new user as it was typed.
type UserEntry struct {
	Form            Form // can be sent once
	Username, Email string
	// Open: the form is shown unfolded.
	Open bool
}

// User is an account as who administers sees it.
type User struct {
	ID                     int64
	Username, Email        string
	Admin, Active, Erased  bool
	SecondFactor           bool
	Created, Seen          time.Time // Seen is zero for a user who was never seen
	Group                  string    // "": none
	Available, Held, Spent int64
	Month                  int64 // spent in this month
}

// SortPath returns the address of the list in another order. It keeps the search and the filters.
func (u *Users) SortPath(order string) string {
	v := url.Values{"sort": {order}}
	for _, g := range u.Groups {
		if g.Chosen {
			v.Set("group", strconv.FormatInt(g.ID, 10))
		}
	}
	for name, value := range map[string]string{"q": u.Query, "state": u.State} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return string(placeUsers) + "?" + v.Encode()
}

func (u *Users) frame() frame { return u.at(placeUsers, "users.html", "Users") }

// Pager tells which part of a list is shown.
type Pager struct {
	First, Last, Total int    // counted from 1
	Before, After      string // addresses; "": there is no such page
}

// OneUser is an account with all that is its.
type OneUser struct {
	Desk
	User   User
	FormID string
	Amount string // as typed before
	Reason string
	Keys   []Key
	Entry  KeyEntry
	Usage  *Report

	Ceiling          CeilingEntry
	Group, GroupPath string // the group of the user; "": none
	Groups           []GroupChoice
	Sessions         []Session
	Identities       []Identity
	Self             bool // the user is the administrator who looks at the page
	WantsCode        bool // the administrator who looks at the page has a second factor
}

func (u *OneUser) frame() frame { return u.plotted(placeUsers, "user.html", u.User.Username) }

// AllKeys lists the keys of all users.
type AllKeys struct {
	Desk
	Query string
	Keys  []Key
	Pager Pager
}

func (k *AllKeys) frame() frame { return k.at(placeAdminKeys, "allkeys.html", "Keys") }

// Codes lists redeem codes and mints new ones.
type Codes struct {
	Desk
	Codes  []Code
	Pager  Pager
	FormID string
	// As typed before.
	Count, Amount, Expiry string
}

// Code is a redeem code in a list, by its last characters.
type Code struct {
	Hint     string
	Amount   int64
	Created  time.Time
	MintedBy string
	Status   string // open, used, expired
	Used     time.Time
	UsedBy   string
	Expires  time.Time
}

func (c *Codes) frame() frame { return c.at(placeCodes, "codes.html", "Redeem codes") }
