package budget

import (
	"fmt"
	"strings"
)

// MaxCredits bounds what an account can hold, in micro-dollars: a billion dollars. Since spent and held never exceed
// it, no sum of theirs overflows.
const MaxCredits = 1_000_000_000_000_000

// Window is the time that a budget is for.
type Window string

// The windows. The empty one is WindowTotal.
const (
	WindowTotal Window = "total"
	WindowDay   Window = "day"   // of UTC
	WindowMonth Window = "month" // of UTC
)

// Known reports whether w is one of the windows.
func (w Window) Known() bool {
	return w == "" || w == WindowTotal || w == WindowDay || w == WindowMonth
}

// Name returns the window, and WindowTotal for the empty one.
func (w Window) Name() Window {
	if w == "" {
		return WindowTotal
	}
	return w
}

// ScopeKind says what a Scope names.
type ScopeKind string

// The kinds of scopes.
const (
	KeyScope   ScopeKind = ""
	UserScope  ScopeKind = "user"
	GroupScope ScopeKind = "group"
)

// Scope names a party that a budget bounds: a key, a user or a group of users.
type Scope struct {
	Kind ScopeKind
	ID   string // the id of the key, the name of the user or of the group
}

// ScopeNamed returns the scope with a durable name.
func ScopeNamed(name string) Scope {
	if kind, id, found := strings.Cut(name, ":"); found {
		return Scope{ScopeKind(kind), id}
	}
	return Scope{KeyScope, name}
}

// Name returns the durable name of a scope, under which its spending is counted. No id of a key has a colon in it.
func (s Scope) Name() string {
	if s.Kind == KeyScope {
		return s.ID
	}
	return string(s.Kind) + ":" + s.ID
}

// Budget says how much a key, a user or a group may spend and hold in a window. The zero Budget has no amount and
// bounds nothing.
type Budget struct {
	Amount int64 // micro-dollars
	Window Window
}

// Left returns how much a scope can still hold that has spent and holds these amounts in the window: MaxCredits if
// nothing bounds it, and never less than zero.
func (b Budget) Left(spent, held int64) int64 {
	if b.Amount <= 0 {
		return MaxCredits
	}
	return max(b.Amount-spent-held, 0)
}

// Error says that the budget of a scope does not cover an amount.
type Error struct {
	Scope  Scope
	Budget Budget
	Left   int64 // of the budget
	Asked  int64
}

// Error implements error.
func (e *Error) Error() string {
	what := string(e.Scope.Kind)
	if e.Scope.Kind == KeyScope {
		what = "key"
	}
	return fmt.Sprintf("%d asked, %d left of the budget of %d (%s) of %s %s",
		e.Asked, e.Left, e.Budget.Amount, e.Budget.Window.Name(), what, e.Scope.ID)
}
