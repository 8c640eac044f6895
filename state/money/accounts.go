package money

import (
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// Account holds the sums of one account's ledger, in micro-dollars. A hold is
// granted only if Spent and Held together stay within Credits. A settlement above its
// hold may take Spent beyond them: then the account is in debt, Available is negative
// and no hold is granted before the debt is paid.
type Account struct {
	ID      string    `json:"id"`               // as Key.User
	Credits int64     `json:"credits"`          // all that was ever put in, less adjustments
	Spent   int64     `json:"spent"`            // settled
	Held    int64     `json:"held"`             // kept for requests under way, as far as journaled
	Last    uint64    `json:"last"`             // sequence of its last ledger entry
	Changed time.Time `json:"changed,omitzero"` // when that was
}

// Available returns the amount that can still be held. It is negative while the account is in debt.
func (a *Account) Available() int64 { return a.Credits - a.Spent - a.Held }

// Unfunded reports whether the account belongs to a key without a user. Such an account has no credits. The budget of
// its key bounds it, and nothing else does.
func (a *Account) Unfunded() bool { return state.IsKeyAccount(a.ID) }

// takes reports whether amount can be held, or taken out of the credits.
func (a *Account) takes(amount int64) bool { return a.Unfunded() || amount <= a.Available() }

// owes reports whether amount more can be charged. The bound is far above what any
// request costs and keeps all sums from overflowing.
func (a *Account) owes(amount int64) bool { return amount <= maxSpent-a.Spent }

// maxSpent bounds what an account can ever have spent.
const maxSpent = 1000 * budget.MaxCredits

var accounts = state.Table[Account]{
	Name:   journal.Balance,
	ID:     func(a *Account) string { return a.ID },
	Encode: (*Account).encode,
}

func (a *Account) encode() []byte {
	o := newJSONObject(256)
	o.text("id", a.ID)
	o.number("credits", a.Credits)
	o.number("spent", a.Spent)
	o.number("held", a.Held)
	o.number("last", int64(a.Last))
	if !a.Changed.IsZero() {
		o.time("changed", a.Changed)
	}
	return o.end()
}

const maxAccount = 128

func checkAccount(id string) error {
	if id == "" || len(id) > maxAccount {
		return fmt.Errorf("%w: an account name of %d bytes", state.ErrInvalid, len(id))
	}
	for _, c := range []byte(id) {
		if c < ' ' || c == 0x7f {
			return fmt.Errorf("%w: account %q", state.ErrInvalid, id)
		}
	}
	return nil
}

// FindAccount returns an account. An account on which no money has moved is empty.
func FindAccount(v state.View, id string) Account {
	if r := accounts.Get(v, id); r != nil {
		return r.Rec
	}
	return Account{ID: id}
}

// ListAccounts lists the accounts on which money has moved, by name.
func ListAccounts(v state.View) []Account { return accounts.List(v, state.ByID, nil) }

// lastEntry returns the sequence number of the last ledger entry, which is the last entry of its account.
func lastEntry(v state.View) uint64 {
	last := uint64(0)
	for a := range accounts.All(v) {
		last = max(last, a.Last)
	}
	return last
}
