package pages

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PathLed is the address of the pages on which a lead looks after a group.
const PathLed = "/group"

// Led is a group as its lead sees it.
type Led struct {
	Viewer
	Group   Group
	Budget  *BudgetLine // nil: the group has none
	Members []LedMember
	Pager   Pager
	// Invite is the form that invites people into the group, Invitations those that leads have made and that are open.
	Invite      InviteEntry
	Invitations []Invitation
}

func (l *Led) frame() frame {
	return l.at(placeLed, "led.html", l.Group.Name).with("", "people.css", "")
}

// LedMember is a member of a group.
type LedMember struct {
	ID       int64
	Username string
	Active   bool
	Lead     bool
	Mine     bool // the lead who looks at the page has the rights of a lead over the member
	Keys     int64
	Use      RecentUse
}

// RecentUse has the recent spending of the keys of a user, in micro-dollars.
type RecentUse struct {
	Month int64
	Days  []int64 // the last RecentDays, today at the end
	// Requests is the address of the user's requests, or "".
	Requests string
}

// RecentDays is the length of RecentUse.Days.
const RecentDays = 14

// Spark returns the shape of a line through the days, or "" if nothing was spent.
func (u *RecentUse) Spark() string { return spark(u.Days) }

// spark returns the shape of a line through numbers in a box that is as wide as there are steps and 100 high, or "" if
// all are 0. Its own numbers are whole, because a list has many lines.
func spark(numbers []int64) string {
	most := int64(0)
	for _, n := range numbers {
		most = max(most, n)
	}
	if most == 0 {
		return ""
	}
	var b strings.Builder
	for i, n := range numbers {
		b.WriteString([]string{"L", "M"}[btoi(i == 0)])
		fmt.Fprintf(&b, "%d %.0f", i, 98-96*float64(max(n, 0))/float64(most))
	}
	return b.String()
}

// Words returns in words what the line shows.
func (u *RecentUse) Words() string {
	sum := int64(0)
	for _, n := range u.Days {
		sum += n
	}
	return formatMoney(sum) + " in the last " + strconv.Itoa(len(u.Days)) + " days"
}

// LedKeys lists the keys of the members of a group for its lead, and makes new ones.
type LedKeys struct {
	Viewer
	Group     string
	Keys      []LedKey
	Pager     Pager
	Entry     KeyEntry
	Forbidden bool    // the ceiling of the group forbids new keys and other budgets
	Edit      *LedKey // whose budget is changed; nil: none
}

// LedKey is a key of a member, without any part of its secret.
type LedKey struct {
	Key
	Mine bool // the lead may change the key
	// MayEnable is set if the lead may enable the disabled key.
	MayEnable bool
	Month     int64
	LastDay   time.Time // zero: not used since the beginning of the month or in the last days
}

func (l *LedKeys) frame() frame { return l.at(placeLedKeys, "ledkeys.html", "Keys of "+l.Group) }
