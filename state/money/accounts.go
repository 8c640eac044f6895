package money

import (
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// Account holds the sums of one account's ledger, in micro-dollars. A hold is granted only if Spent
// and Held together stay within Credits. A settlement may exceed its hold, because the cost is
// known only afterwards. Spent may then exceed Credits: the account is in debt, Available is
// negative, and no hold is granted until a payment covers the debt.
type Account struct {
	ID      string    `json:"id"`                // as Key.User
	Credits int64     `json:"credits"`           // sum of all payments and adjustments
	Spent   int64     `json:"spent"`             // sum of all settlements
	Held    int64     `json:"held"`              // held for requests in flight, as far as it is in the journal
	Granted int64     `json:"granted,omitempty"` // the sum of its allowances
	Last    uint64    `json:"last"`              // sequence of its last ledger entry
	Changed time.Time `json:"changed,omitzero"`  // time of that entry
}

// Available returns what is neither spent nor held. It is negative while the account is in debt. Allowances are part of
// it, because processes return them when they are asked.
func (a *Account) Available() int64 { return a.Credits - a.Spent - a.Held }

// Unfunded reports whether the account belongs to a key without a user. Such an account has no
// credits, and only the budget of its key limits its spending.
func (a *Account) Unfunded() bool { return state.IsKeyAccount(a.ID) }

// canHold reports whether amount can be held, or taken out of the credits.
func (a *Account) canHold(amount int64) bool { return a.Unfunded() || amount <= a.free() }

// free returns what can be held without an allowance.
func (a *Account) free() int64 {
	if a.Unfunded() {
		return budget.MaxCredits
	}
	return a.Available() - a.Granted
}

// canCharge reports whether amount can be charged. The limit is far above the cost of any request
// and keeps all sums from overflowing.
func (a *Account) canCharge(amount int64) bool { return amount <= maxSpent-a.Spent }

// maxSpent is the highest sum that an account can have spent.
const maxSpent = 1000 * budget.MaxCredits

// accounts holds the balance of each account that money has moved on. It is written with nearly every settlement, so it
// has an encoding of its own. It is not audited: the ledger has each change.
var accounts = state.Table[Account]{
	Name:   journal.Balance,
	ID:     func(a *Account) string { return a.ID },
	Encode: (*Account).encode,
}

// encode returns the JSON of the record, see jsonObject.
func (a *Account) encode() []byte {
	o := newJSONObject(256)
	o.text("id", a.ID)
	o.number("credits", a.Credits)
	o.number("spent", a.Spent)
	o.number("held", a.Held)
	o.number("granted", a.Granted)
	o.number("last", int64(a.Last))
	if !a.Changed.IsZero() {
		o.time("changed", a.Changed)
	}
	return o.end()
}

const maxAccount = 128

// checkAccount returns an error unless id can be the name of an account.
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

// FindAccount returns an account. An account without payments or charges is empty.
func FindAccount(v state.View, id string) Account {
	if r := accounts.Get(v, id); r != nil {
		return r.Rec
	}
	return Account{ID: id}
}

// ListAccounts returns the accounts with payments or charges, by name.
func ListAccounts(v state.View) []Account { return accounts.List(v, state.ByID, nil) }

// lastEntry returns the highest sequence number of the ledger.
func lastEntry(v state.View) uint64 {
	last := uint64(0)
	for a := range accounts.All(v) {
		last = max(last, a.Last)
	}
	return last
}
