package pages

import "time"

// CeilingEntry is the form for the ceiling of a user or a group, with what is in force or was typed.
type CeilingEntry struct {
	Action, Token  string
	Rename         bool // the form changes the name, too
	Name           string
	SomeScopes     bool // only the ticked ones; else everything
	Scopes         []Choice
	SomeModels     bool // only those in Models; else all
	Models         string
	Budget, Window string
	CreateKeys     bool
	Together       string // whom the budget is for
}

// Group is a group in a list.
type Group struct {
	ID      int64
	Name    string
	Members int64
	Limits  Limits
	Spent   int64
	Created time.Time
}

// Limits are a ceiling in a list and on the pages of the users whom it restricts.
type Limits struct {
	Owner          string // "you" or "your group", for users
	Scopes, Models []string
	NoScopes       bool // Scopes is empty because nothing is permitted
	NoModels       bool
	Budget         int64
	Window         string
	Spent          int64 // in the window of the budget
	NoKeys         bool
}

// Restricts reports whether there is anything to show.
func (l Limits) Restricts() bool {
	return l.Scopes != nil || l.Models != nil || l.NoScopes || l.NoModels || l.Budget != 0 || l.NoKeys
}

// Groups lists groups for administrators.
type Groups struct {
	Viewer
	Query  string
	Groups []Group
	Pager  Pager
	Name   string // of a new one, as typed before
}

func (g *Groups) frame() frame { return g.at(placeUsers, "groups.html", "Groups") }

// Lists returns the same links as Users.Lists.
func (g *Groups) Lists() []Link { return people("Groups") }

// OneGroup is a group with its members.
type OneGroup struct {
	Viewer
	Group   Group
	Entry   CeilingEntry
	Members []User
	Pager   Pager
	Add     string // a username, as typed before
}

func (g *OneGroup) frame() frame { return g.at(placeUsers, "group.html", g.Group.Name) }
