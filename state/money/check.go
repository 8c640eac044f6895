package money

import (
	"context"
	"errors"
	"fmt"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Totals holds the sums of a whole ledger, in micro-dollars.
type Totals struct {
	Entries  int
	Folded   int64 // entries that checkpoints replace
	Accounts int
	Open     int // holds of requests in flight
	Credits  int64
	Spent    int64
	Held     int64
}

// maxReported is the number of errors that CheckLedger reports. The first few are enough for a
// search.
const maxReported = 20

// CheckLedger reads the whole ledger and compares it with the accounts and holds. It checks that
// every sum is exact, that nothing was held or taken out that an account did not have, that every
// hold was opened once and closed at most once, and that every entry is on one page. A settlement
// may leave a debt. It is for operators and tests. Nothing may change the state meanwhile.
func CheckLedger(ctx context.Context, s *state.State) (Totals, error) {
	b := auditor{accounts: map[string]*Account{}, open: map[uint64]*Hold{}, folded: foldedThrough(s.View())}
	if err := s.Range(ctx, journal.Folded, nil, nil, 0, func(rec journal.Record) error {
		c, err := decodeCheckpoint(rec)
		if err == nil {
			b.addCheckpoint(&c)
		}
		return err
	}); err != nil {
		return b.totals, err
	}
	if err := ReadLedger(ctx, s, 0, func(e Entry) error { b.addEntry(&e); return nil }); err != nil {
		return b.totals, err
	}
	for _, a := range ListAccounts(s.View()) {
		b.checkAccount(&a)
	}
	for _, h := range ListHolds(s.View(), "") {
		b.checkHold(&h)
	}
	b.checkAllowances(s.View())
	b.reportMissing()
	return b.totals, errors.Join(b.wrong...)
}

// auditor recalculates accounts and holds from checkpoints and entries.
type auditor struct {
	totals   Totals
	accounts map[string]*Account
	open     map[uint64]*Hold
	folded   uint64
	last     uint64 // last entry that was read
	wrong    []error
}

// report adds an error.
func (b *auditor) report(format string, args ...any) {
	if len(b.wrong) < maxReported {
		b.wrong = append(b.wrong, fmt.Errorf("%w: "+format, append([]any{journal.ErrCorrupt}, args...)...))
	}
}

// addCheckpoint starts an account with the sums of its folded entries.
func (b *auditor) addCheckpoint(c *Checkpoint) {
	b.totals.Folded += c.Entries
	a := &Account{ID: c.Account, Credits: c.Credits, Spent: c.Spent, Held: c.Held, Last: c.Last}
	b.accounts[c.Account] = a
	held := int64(0)
	for id, amount := range c.Open {
		held += amount
		b.open[id] = &Hold{ID: id, Account: c.Account, Amount: amount}
	}
	if held != c.Held || c.Last > b.folded || a.Spent < 0 {
		b.report("the checkpoint of account %s does not add up: %+v, folded through %d", c.Account, *c, b.folded)
	}
}

// addEntry applies one entry of the ledger.
func (b *auditor) addEntry(e *Entry) {
	b.totals.Entries++
	if e.Sequence <= b.folded {
		b.report("entry %d was folded and is still there", e.Sequence)
	}
	if e.Sequence <= b.last {
		b.report("entry %d is on two pages", e.Sequence)
	}
	b.last = e.Sequence
	a := b.accounts[e.Account]
	if a == nil {
		a = &Account{ID: e.Account}
		b.accounts[e.Account] = a
	}
	if e.Previous != a.Last {
		b.report("entry %d follows %d, not %d", e.Sequence, e.Previous, a.Last)
	}
	a.Last = e.Sequence
	switch e.Kind {
	case Credit, Adjust:
		a.Credits += e.Amount
	case Begin:
		a.Held += e.Amount
		b.open[e.Sequence] = &Hold{ID: e.Sequence, Account: e.Account, Amount: e.Amount}
	case Extend:
		b.extendHold(a, e)
	case Settle, Release:
		b.endHold(a, e)
	default:
		b.report("entry %d is a %q", e.Sequence, e.Kind)
	}
	if a.Spent < 0 || a.Held < 0 || e.needsCredit() && !a.canHold(0) {
		b.report("account %s is overdrawn by entry %d: credits %d, spent %d, held %d", a.ID, e.Sequence, a.Credits,
			a.Spent, a.Held)
	}
}

// extendHold adds to a hold that must be open.
func (b *auditor) extendHold(a *Account, e *Entry) {
	h := b.open[e.Hold]
	if h == nil || h.Account != e.Account {
		b.report("entry %d extends hold %d, which is not open", e.Sequence, e.Hold)
		return
	}
	h.Amount += e.Amount
	a.Held += e.Amount
}

// endHold closes a hold that must be open with exactly this amount.
func (b *auditor) endHold(a *Account, e *Entry) {
	a.Spent += e.Amount
	if e.Hold == e.Sequence {
		return // begun by the same entry
	}
	h := b.open[e.Hold]
	if h == nil || h.Account != e.Account || h.Amount != e.Held {
		b.report("entry %d ends hold %d of %d, which is not open so", e.Sequence, e.Hold, e.Held)
		return
	}
	a.Held -= h.Amount
	delete(b.open, e.Hold)
}

// checkAccount compares the stored account with the recalculated one.
func (b *auditor) checkAccount(have *Account) {
	b.totals.Accounts++
	b.totals.Credits += have.Credits
	b.totals.Spent += have.Spent
	b.totals.Held += have.Held
	want := b.accounts[have.ID]
	if want == nil {
		want = &Account{}
	}
	if have.Credits != want.Credits || have.Spent != want.Spent || have.Held != want.Held || have.Last != want.Last {
		b.report("account %s is %+v, its entries add up to %+v", have.ID, *have, *want)
	}
	delete(b.accounts, have.ID)
}

// checkAllowances compares the sums of allowances that accounts have with the allowances.
func (b *auditor) checkAllowances(v state.View) {
	sums := map[string]int64{}
	for _, a := range ListAllowances(v, "") {
		if sums[a.Account] += a.Amount; a.Amount <= 0 {
			b.report("an allowance of account %s is %d", a.Account, a.Amount)
		}
	}
	for _, a := range ListAccounts(v) {
		if a.Granted != sums[a.ID] {
			b.report("account %s has granted %d, its allowances add up to %d", a.ID, a.Granted, sums[a.ID])
		}
		delete(sums, a.ID)
	}
	for account := range sums {
		b.report("account %s is missing, and has allowances", account)
	}
}

// checkHold compares the stored hold with the recalculated one.
func (b *auditor) checkHold(have *Hold) {
	b.totals.Open++
	want := b.open[have.ID]
	if want == nil || want.Account != have.Account || want.Amount != have.Amount {
		b.report("hold %d of %d on account %s is not in the ledger so", have.ID, have.Amount, have.Account)
	}
	delete(b.open, have.ID)
}

// reportMissing reports accounts and holds that are in the ledger but not in the tables.
func (b *auditor) reportMissing() {
	for id := range b.accounts {
		b.report("account %s is missing", id)
	}
	for id := range b.open {
		b.report("hold %d is missing", id)
	}
}
