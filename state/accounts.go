package state

import (
	"fmt"
	"strings"
	"time"

	"stagedoor/state/journal"
)

// MaxCredits bounds what an account can hold, in micro-dollars: a billion
// dollars. Since spent and held never exceed it, no sum of theirs overflows.
const MaxCredits = 1_000_000_000_000_000

// Account is what the ledger of one account adds up to, in micro-dollars. A hold is
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

// Available is what can still be held. It is negative while the account is in debt.
func (a *Account) Available() int64 { return a.Credits - a.Spent - a.Held }

// Unfunded reports whether the account belongs to a key without a user. Such an account
// has no credits; the budget of its key bounds it, and nothing else does.
func (a *Account) Unfunded() bool { return strings.HasPrefix(a.ID, keyAccount) }

// keyAccount begins the names of the accounts of keys without a user. No username does.
const keyAccount = "key:"

// AccountOf returns the name of the account that holds the receipts of a key: its user's,
// or the key's own if it has no user.
func AccountOf(k *Key) string {
	if k.User != "" {
		return k.User
	}
	return keyAccount + k.ID
}

// Charged returns the name of the account that the requests of the key are charged to. It
// is empty for a key that has neither a user nor a budget: nothing bounds what it spends,
// so nothing is held for it.
func (k *Key) Charged() string {
	if k.User == "" && k.Budget == 0 {
		return ""
	}
	return AccountOf(k)
}

// takes reports whether amount can be held, or taken out of the credits.
func (a *Account) takes(amount int64) bool { return a.Unfunded() || amount <= a.Available() }

// owes reports whether amount more can be charged. The bound is far above what any
// request costs and keeps all sums from overflowing.
func (a *Account) owes(amount int64) bool { return amount <= maxSpent-a.Spent }

// maxSpent bounds what an account can ever have spent.
const maxSpent = 1000 * MaxCredits

var accounts = Table[Account]{
	Name:   journal.Balance,
	ID:     func(a *Account) string { return a.ID },
	Encode: (*Account).encode,
}

func (a *Account) encode() []byte {
	o := newObject(256)
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
		return fmt.Errorf("%w: an account name of %d bytes", ErrInvalid, len(id))
	}
	for _, c := range []byte(id) {
		if c < ' ' || c == 0x7f {
			return fmt.Errorf("%w: account %q", ErrInvalid, id)
		}
	}
	return nil
}

// Account returns an account; one that no money has moved on is empty.
func (s *State) Account(id string) Account { return accountOf(s.View(), id) }

// Accounts lists the accounts that money has moved on, by name.
func (s *State) Accounts() []Account {
	return accounts.List(s.View(), ByID, nil)
}

func accountOf(v View, id string) Account {
	if r := accounts.Get(v, id); r != nil {
		return r.Rec
	}
	return Account{ID: id}
}

// lastEntry is the sequence of the last ledger entry: every entry is the last
// one of its account when it is written.
func lastEntry(v View) uint64 {
	last := uint64(0)
	for a := range accounts.All(v) {
		last = max(last, a.Last)
	}
	return last
}
