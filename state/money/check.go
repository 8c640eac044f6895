package money

import (
	"context"
	"errors"
	"fmt"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Totals holds the sums of a whole ledger.
type Totals struct {
	Entries  int
	Folded   int64 // entries that checkpoints stand for
	Accounts int
	Open     int // holds under way
	Credits  int64
	Spent    int64
	Held     int64
}

// errBooks collects what does not balance; the first few are enough to look.
const maxBookErrors = 20

// CheckLedger reads the whole ledger and compares it with the accounts and holds
// that commands decide on: every sum exact, nothing held or taken out that an account
// did not have, every hold begun once and ended at most once, every entry on one page.
// A settlement may leave a debt. It is for an operator and for tests; nothing may change
// meanwhile.
func CheckLedger(ctx context.Context, s *state.State) (Totals, error) {
	b := auditor{accounts: map[string]*Account{}, open: map[uint64]*Hold{}, folded: foldedThrough(s.View())}
	if err := s.Range(ctx, journal.Folded, nil, nil, 0, func(rec journal.Record) error {
		c, err := decodeCheckpoint(rec)
		if err == nil {
			b.checkpoint(&c)
		}
		return err
	}); err != nil {
		return b.books, err
	}
	if err := ReadLedger(ctx, s, 0, func(e Entry) error { b.entry(&e); return nil }); err != nil {
		return b.books, err
	}
	for _, a := range ListAccounts(s.View()) {
		b.account(&a)
	}
	for _, h := range ListHolds(s.View(), "") {
		b.hold(&h)
	}
	b.close()
	return b.books, errors.Join(b.wrong...)
}

type auditor struct {
	books    Totals
	accounts map[string]*Account
	open     map[uint64]*Hold
	folded   uint64
	last     uint64 // entry that was looked at
	wrong    []error
}

func (b *auditor) find(format string, args ...any) {
	if len(b.wrong) < maxBookErrors {
		b.wrong = append(b.wrong, fmt.Errorf("%w: "+format, append([]any{journal.ErrCorrupt}, args...)...))
	}
}

// checkpoint is where an account's entries go on from.
func (b *auditor) checkpoint(c *Checkpoint) {
	b.books.Folded += c.Entries
	a := &Account{ID: c.Account, Credits: c.Credits, Spent: c.Spent, Held: c.Held, Last: c.Last}
	b.accounts[c.Account] = a
	held := int64(0)
	for id, amount := range c.Open {
		held += amount
		b.open[id] = &Hold{ID: id, Account: c.Account, Amount: amount}
	}
	if held != c.Held || c.Last > b.folded || a.Spent < 0 {
		b.find("the checkpoint of account %s does not add up: %+v, folded through %d", c.Account, *c, b.folded)
	}
}

func (b *auditor) entry(e *Entry) {
	b.books.Entries++
	if e.Sequence <= b.folded {
		b.find("entry %d was folded and is still there", e.Sequence)
	}
	if e.Sequence <= b.last {
		b.find("entry %d is on two pages", e.Sequence)
	}
	b.last = e.Sequence
	a := b.accounts[e.Account]
	if a == nil {
		a = &Account{ID: e.Account}
		b.accounts[e.Account] = a
	}
	if e.Previous != a.Last {
		b.find("entry %d follows %d, not %d", e.Sequence, e.Previous, a.Last)
	}
	a.Last = e.Sequence
	switch e.Kind {
	case Credit, Adjust:
		a.Credits += e.Amount
	case Begin:
		a.Held += e.Amount
		b.open[e.Sequence] = &Hold{ID: e.Sequence, Account: e.Account, Amount: e.Amount}
	case Extend:
		b.extend(a, e)
	case Settle, Release:
		b.end(a, e)
	default:
		b.find("entry %d is a %q", e.Sequence, e.Kind)
	}
	if a.Spent < 0 || a.Held < 0 || e.takes() && !a.takes(0) {
		b.find(
			"account %s is overdrawn by entry %d: credits %d, spent %d, held %d",
			a.ID,
			e.Sequence,
			a.Credits,
			a.Spent,
			a.Held,
		)
	}
}

func (b *auditor) extend(a *Account, e *Entry) {
	h := b.open[e.Hold]
	if h == nil || h.Account != e.Account {
		b.find("entry %d extends hold %d, which is not open", e.Sequence, e.Hold)
		return
	}
	h.Amount += e.Amount
	a.Held += e.Amount
}

func (b *auditor) end(a *Account, e *Entry) {
	a.Spent += e.Amount
	if e.Hold == e.Sequence {
		return // begun by the same entry
	}
	h := b.open[e.Hold]
	if h == nil || h.Account != e.Account || h.Amount != e.Held {
		b.find("entry %d ends hold %d of %d, which is not open so", e.Sequence, e.Hold, e.Held)
		return
	}
	a.Held -= h.Amount
	delete(b.open, e.Hold)
}

func (b *auditor) account(have *Account) {
	b.books.Accounts++
	b.books.Credits += have.Credits
	b.books.Spent += have.Spent
	b.books.Held += have.Held
	want := b.accounts[have.ID]
	if want == nil {
		want = &Account{}
	}
	if have.Credits != want.Credits || have.Spent != want.Spent || have.Held != want.Held || have.Last != want.Last {
		b.find("account %s is %+v, its entries add up to %+v", have.ID, *have, *want)
	}
	delete(b.accounts, have.ID)
}

func (b *auditor) hold(have *Hold) {
	b.books.Open++
	want := b.open[have.ID]
	if want == nil || want.Account != have.Account || want.Amount != have.Amount {
		b.find("hold %d of %d on account %s is not in the ledger so", have.ID, have.Amount, have.Account)
	}
	delete(b.open, have.ID)
}

// close names what the ledger has and the tables have not.
func (b *auditor) close() {
	for id := range b.accounts {
		b.find("account %s is missing", id)
	}
	for id := range b.open {
		b.find("hold %d is missing", id)
	}
}
