package identity

import (
	"strconv"
	"sync/atomic"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
)

// Access answers the questions that every request has: which key it uses, and what the key and its
// user may do. The answers are kept in memory beside the tables, so a lookup takes no transaction
// and no lock. AccessOf returns it. It is safe for concurrent use.
type Access struct {
	state   *state.State
	keys    keyring
	roster  roster
	failed  [failureKinds]failedSignIns
	version atomic.Uint64
	changed atomic.Pointer[chan struct{}] // closed by the next change of version
}

// AccessOf returns the Access of a state.
func AccessOf(s *state.State) *Access { return state.MemoryOf[*Access](s) }

// bumpVersion changes the version and wakes the callers of WatchAccess.
func (a *Access) bumpVersion() {
	a.version.Add(1)
	next := make(chan struct{})
	close(*a.changed.Swap(&next))
}

// Key returns the key with the hash of the secret that a client has sent, which may be the previous secret while that
// is accepted. Use Key.Permits to check whether the key may be used.
func (a *Access) Key(hash state.Hash) (Key, bool) {
	if k, ok := a.keys.findKey(hash); ok {
		return k, true
	}
	k, ok := a.keys.findPrevious(hash)
	return k, ok && !k.PreviousUntil(a.state.Now()).IsZero()
}

// KeysOf returns the committed keys of a user, including revoked ones, in order of creation. The
// records are shared and must not be modified. A command uses the function KeysOf, which sees the
// changes of the commands before it.
func (a *Access) KeysOf(user string) []Key { return a.keys.keysOf(user) }

// Recorded returns the ids of the keys whose requests and replies are kept now, and until when.
func (a *Access) Recorded() map[string]time.Time {
	var until map[string]time.Time
	now := a.state.Now()
	for id, k := range *a.keys.recorded.Load() {
		if t := k.Recorded(now); !t.IsZero() {
			if until == nil {
				until = map[string]time.Time{}
			}
			until[id] = t
		}
	}
	return until
}

// HasOthers reports whether any key belongs to another owner. An owner without others may use more than a share of the
// gateway's capacity. Keys that are disabled or revoked count until they are deleted. If this owner has very many keys,
// the answer is true without a look at all of them.
func (a *Access) HasOthers(owner state.Owner) bool { return a.keys.hasOthers(owner) }

// KeyByID returns the key with this id, or state.ErrNotFound.
func (a *Access) KeyByID(id string) (Key, error) { return FindKey(a.state.View(), id) }

// Blocked reports whether account belongs to a disabled user, whose keys are refused.
func (a *Access) Blocked(account string) bool {
	u := a.roster.findRestricted(account)
	return u != nil && !u.Active()
}

// UserPermits returns nil if the ceilings of the account's user and of the user's group permit
// scope and model. Otherwise the error wraps ErrScopeForbidden or ErrModelForbidden. An empty scope
// or model is not checked.
func (a *Access) UserPermits(account, scope, model string) error {
	u := a.roster.findRestricted(account)
	if u == nil {
		return nil
	}
	if err := u.Ceiling.permits(scope, model); err != nil {
		return &CeilingError{owner: "user", cause: err}
	}
	if g := a.roster.groupOf(u); g != nil {
		if err := g.Ceiling.permits(scope, model); err != nil {
			return &CeilingError{owner: "group", cause: err}
		}
	}
	return nil
}

// BudgetScopes returns the scopes whose budgets limit a request of the key in addition to the
// user's budget: the key itself and the user's group. The cost of a request is counted for each of
// them.
func (a *Access) BudgetScopes(key, account string) []budget.Scope {
	var all []budget.Scope
	if key != "" {
		all = append(all, budget.Scope{Kind: budget.KeyScope, ID: key})
	}
	if u := a.roster.findRestricted(account); u != nil {
		if g := a.roster.groupOf(u); g != nil {
			all = append(all, g.Scope())
		}
	}
	return all
}

// BudgetOf returns the current budget of a scope, or the zero Budget if it has none.
func (a *Access) BudgetOf(scope budget.Scope) budget.Budget {
	switch scope.Kind {
	case budget.UserScope:
		if u := a.roster.findRestricted(scope.ID); u != nil {
			return u.Ceiling.Limit()
		}
		return budget.Budget{}
	case budget.GroupScope:
		return a.groupBudget(scope.ID)
	}
	if r := keys.Get(a.state.View(), scope.ID); r != nil {
		return r.Rec.Limit()
	}
	return budget.Budget{}
}

// groupBudget returns the budget of the group whose id is written in a scope.
func (a *Access) groupBudget(id string) budget.Budget {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return budget.Budget{}
	}
	if g := a.roster.groupOf(&User{Group: n}); g != nil {
		return g.Ceiling.Limit()
	}
	return budget.Budget{}
}

// AccessVersion changes with every change of a key, a user or a group. Scopes and budgets that were
// read stay valid until then. A caller that keeps such a value must read the version before it.
func (a *Access) AccessVersion() uint64 { return a.version.Load() }

// WatchAccess returns a channel that is closed by the next change of AccessVersion. Call it before
// reading, so that no change is missed.
func (a *Access) WatchAccess() <-chan struct{} { return *a.changed.Load() }
