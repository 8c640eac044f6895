package identity

import (
	"fmt"
	"slices"
	"strings"

	"stagedoor/state"
	"stagedoor/state/budget"
)

// Ceiling limits what a user, or each member of a group, may do, whatever the user's keys allow.
// The zero Ceiling sets no limit.
type Ceiling struct {
	// Scopes lists the permissions of the keys. Nil permits all of them, and an empty list none.
	Scopes []string `json:"scopes"`
	// Models holds globs of public model ids. Nil permits all models, and an empty list none.
	Models []string      `json:"models"`
	Budget int64         `json:"budget,omitempty"` // micro-dollars; 0: none set
	Window budget.Window `json:"budget_window,omitempty"`
	// NoKeys forbids the user to create keys and developer tokens. Existing developer tokens are
	// refused.
	NoKeys bool `json:"no_keys,omitempty"`
}

// Limit returns the ceiling's budget.
func (c *Ceiling) Limit() budget.Budget { return budget.Budget{Amount: c.Budget, Window: c.Window} }

// describe adds the ceiling to what the audit log shows of its user or group.
func (c *Ceiling) describe(f state.Fields) {
	f["scopes"], f["models"], f["budget"], f["budget_window"] = c.Scopes, c.Models, c.Budget, c.Window
	f["create_keys"] = !c.NoKeys
}

// Restricts reports whether the ceiling restricts anything.
func (c *Ceiling) Restricts() bool {
	return c.Scopes != nil || c.Models != nil || c.Budget != 0 || c.NoKeys
}

// check returns an error unless the ceiling can be stored.
func (c *Ceiling) check() error {
	if c.Budget < 0 || c.Budget > budget.MaxCredits || !c.Window.Known() {
		return fmt.Errorf("%w: a budget of %d for %q", state.ErrInvalid, c.Budget, c.Window)
	}
	for _, scope := range c.Scopes {
		if !validScope(scope) {
			return fmt.Errorf("%w: the invalid scope %q", state.ErrInvalid, scope)
		}
	}
	return nil
}

// permits returns nil, ErrScopeForbidden or ErrModelForbidden.
func (c *Ceiling) permits(scope, model string) error {
	switch {
	case !permitsScope(c.Scopes, scope):
		return ErrScopeForbidden
	case !permitsModel(c.Models, model):
		return ErrModelForbidden
	}
	return nil
}

// validScope reports whether scope has a valid form. The API shapes define which scopes exist, so
// this package cannot check more.
func validScope(scope string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789_-"
	return scope != "" && len(scope) <= 32 && strings.Trim(scope, letters) == ""
}

// permitsScope reports whether a list of scopes permits scope. An empty scope is not checked.
func permitsScope(set []string, scope string) bool {
	return scope == "" || set == nil || slices.Contains(set, scope)
}

// permitsModel reports whether a list of globs permits model. A nil list permits every model, and an empty model is not
// checked.
func permitsModel(globs []string, model string) bool {
	return model == "" || globs == nil ||
		slices.ContainsFunc(globs, func(glob string) bool { return MatchModel(glob, model) })
}

// CeilingError says that the ceiling of a key's user or of the user's group does not permit what the key does.
type CeilingError struct {
	owner string // "user" or "group"
	cause error  // ErrScopeForbidden or ErrModelForbidden
}

// Error implements error. It says whose ceiling it is, because the user can ask that person for more.
func (e *CeilingError) Error() string {
	what := "use the scope"
	if e.cause == ErrModelForbidden {
		what = "use the model"
	}
	if e.owner == "group" {
		return "the group of the key's user may not " + what
	}
	return "the key's user may not " + what
}

// Unwrap returns ErrScopeForbidden or ErrModelForbidden.
func (e *CeilingError) Unwrap() error { return e.cause }
