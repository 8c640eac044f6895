package pages

import (
	"strconv"
	"time"
)

// Users lists accounts for administrators.
type Users struct {
	Viewer
	Query string
	Users []User
	All   int // users, of whom Users has those that the filters select
	Cards []GroupCard
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
	Mails  bool // links can be mailed
}

// GroupCard is a group with its budget, above the list of users.
type GroupCard struct {
	Name, Path string
	Class      string // of its colour, which the name decides
	Members    int64
	Spent      int64 // in this month if Budget is nil
	Budget     *BudgetLine
}

// NewGroupCard returns the card of a group. line is nil if the group has no budget.
func NewGroupCard(name, path string, members, spent int64, line *BudgetLine) GroupCard {
	return GroupCard{Name: name, Path: path, Class: nameClass(name), Members: members, Spent: spent, Budget: line}
}

// Percent returns how much of the budget is spent, or -1 without one.
func (c *GroupCard) Percent() int64 {
	if c.Budget == nil {
		return -1
	}
	return c.Budget.Percent()
}

// GroupChoice is a group that a form offers.
type GroupChoice struct {
	ID     int64
	Name   string
	Chosen bool
}

// Invitation is an open invitation in a list.
type Invitation struct {
	Path, For, Group string // Group is "" on a page about one
	Admin            bool
	By               string
	Created, Expires time.Time
}

// UserEntry is the form for a new user as it was typed.
type UserEntry struct {
	Form            Form // can be sent once
	Username, Email string
	// Open says whether the form is shown unfolded.
	Open bool
}

// User is an account as an administrator sees it.
type User struct {
	ID                     int64
	Username, Email        string
	Admin, Active, Erased  bool
	SecondFactor           bool
	Created, Seen          time.Time // Seen is zero for a user who was never seen
	Group                  string    // "": none
	Available, Held, Spent int64
	Keys                   int64 // that work, or can be enabled
	Use                    RecentUse
	Lead                   bool // leads the group
}

// Initials returns up to two letters that stand for the user's name.
func (u *User) Initials() string { return initials(u.Username) }

// AvatarClass returns the class of the colour behind the initials.
func (u *User) AvatarClass() string { return nameClass(u.Username) }

// SortPath returns the address of the list in another order. It keeps the search and the filters.
func (u *Users) SortPath(order string) string {
	query := map[string]string{"sort": order, "q": u.Query, "state": u.State}
	for _, g := range u.Groups {
		if g.Chosen {
			query["group"] = strconv.FormatInt(g.ID, 10)
		}
	}
	return Address(string(placeUsers), query)
}

func (u *Users) frame() frame {
	return u.at(placeUsers, "users.html", "Users and groups").with("", "people.css", "")
}

// Lists returns the links between the lists of people: users, groups and all keys.
func (u *Users) Lists() []Link { return people("Users") }

// Lead says how many users, groups and open invitations there are.
func (u *Users) Lead() string {
	lead := plural(int64(u.All), "user")
	if len(u.Groups) > 0 {
		lead += " and " + plural(int64(len(u.Groups)), "group")
	}
	if n := len(u.Invitations); n > 0 {
		lead += ", " + plural(int64(n), "open invitation")
	}
	return lead + "."
}

// Pager describes the part of a list that a page shows, and leads to the parts before and after it.
type Pager struct {
	First, Last, Total int    // counted from 1
	Before, After      string // addresses; "": there is no such page
}

// OneUser is an account with all that is its.
type OneUser struct {
	Viewer
	User   User
	FormID string
	Amount string // as typed before
	Reason string
	Keys   []Key
	// Recordings is that of AllKeys.
	Recordings string
	Entry      KeyEntry
	Usage      *Report

	Ceiling          CeilingEntry
	Group, GroupPath string // the group of the user; "": none
	Groups           []GroupChoice
	Sessions         []Session
	Identities       []Identity
	Self             bool // the user is the administrator who looks at the page
	WantsCode        bool // the administrator who looks at the page has a second factor
	// MailTo is the address to which a link for a new password can be mailed, or "".
	MailTo string
}

func (u *OneUser) frame() frame {
	return u.at(placeUsers, "user.html", u.User.Username).with("", "usage.css", "")
}

// Lists returns the same links as Users.Lists.
func (k *AllKeys) Lists() []Link { return people("All keys") }

// AllKeys lists the keys of all users.
type AllKeys struct {
	Viewer
	Query string
	Keys  []Key
	Pager Pager
	// Recordings says for how long what recorded keys send is kept; "": no key can be recorded.
	Recordings string
}

func (k *AllKeys) frame() frame { return k.at(placeUsers, "allkeys.html", "Keys") }

// Codes lists redeem codes and mints new ones.
type Codes struct {
	Viewer
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
