package money

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// ErrInsufficient says that the account's available balance is too small.
var ErrInsufficient = errors.New("the balance is insufficient")

// EntryKind says what a ledger entry did.
type EntryKind string

// Kinds of ledger entries. A hold is opened by one Begin and closed by one Settle or Release.
const (
	Credit  EntryKind = "credit"  // Amount was paid in
	Adjust  EntryKind = "adjust"  // Amount, which may be negative, corrects the credits
	Begin   EntryKind = "begin"   // Amount is held
	Extend  EntryKind = "extend"  // Amount more is held
	Settle  EntryKind = "settle"  // Amount was spent, and Held is no longer held
	Release EntryKind = "release" // nothing was spent, and Held is no longer held

	// Progress is a posting without an entry. It records the amount at which the hold is settled if
	// the process crashes.
	Progress EntryKind = "progress"
	// Grant and Return are postings without an entry. They add to the posting's allowance and take from it.
	Grant  EntryKind = "grant"
	Return EntryKind = "return"
)

// Entry is one entry of the ledger. Entries are appended and never changed.
type Entry struct {
	Sequence uint64
	Previous uint64 // previous entry of the same account
	Account  string
	Kind     EntryKind
	Amount   int64
	Held     int64
	// Hold is the sequence number of the Begin. A hold that is opened and closed in one commit has
	// one entry for both, and Hold is that entry's own sequence number.
	Hold    uint64
	Request string
	Model   string
	Reason  string
	At      time.Time

	receipt *Receipt // of a Settle or Release
	joins   bool     // it is of the same Post as the entry before it in its page
}

// endsHold reports whether e closes a hold.
func (e *Entry) endsHold() bool { return e.Kind == Settle || e.Kind == Release }

// needsCredit reports whether e needs available credits. A settlement does not, because it may
// leave a debt.
func (e *Entry) needsCredit() bool {
	return e.Amount > 0 && (e.Kind == Begin || e.Kind == Extend) || e.Amount < 0 && e.Kind == Adjust
}

// Posting describes an entry to make on one account.
type Posting struct {
	Kind   EntryKind
	Amount int64
	// Hold is the hold that the posting changes. A Settle or Release with 0 opens and closes a hold
	// of Held at once.
	Hold   uint64
	Held   int64
	Reason string
	// Once, if not empty, is the idempotency key of a Credit or Adjust. See Payment.
	Once string
	// By is the actor of a Credit or Adjust, or nil for that of the command.
	By *state.Actor
	// Receipt is required for Begin, Settle and Release. Account, hold, amounts, end reason and
	// times are filled in, in a copy.
	Receipt *Receipt
	// Began is the time at which the request began, or zero for now.
	Began time.Time
	// Limits, if set, returns the budgets that a Begin or Extend must stay within, besides the credits. It is called
	// when the posting is decided. Without it the caller has seen to the budgets.
	Limits func() []Limit
	// Allowance, if set, is the allowance of this process to which the posting gives Move or from which it takes -Move.
	// What a Begin or an Extend takes there needs no other credits.
	Allowance *AllowanceName
	Move      int64
	// Parts and Least bound a Grant. It gives at most what is left divided by Parts, and is refused if that is less
	// than Least.
	Parts, Least int64
}

// Posted is the result of a Posting: the sequence number of its entry, or an error if nothing was
// entered.
type Posted struct {
	Sequence uint64
	Err      error
	// Moved is the amount that the posting has given to its allowance, or has taken from it if it is negative.
	Moved int64
	// Spends holds what the scopes of a Settle's receipt have spent after all postings: first the key,
	// then Receipt.Scopes. The records are shared and must not be modified.
	Spends []*KeySpend
}

// CommitPostings runs Post as a command of its own. The error is about the commit as a whole. A posting that was
// refused by itself has its error in the result.
func CommitPostings(
	ctx context.Context,
	s *state.State,
	account string,
	postings []Posting,
) (Account, []Posted, error) {
	var posted []Posted
	a, err := state.Do(ctx, s, func(tx *state.Tx) (a Account, err error) {
		a, posted, err = Post(tx, account, postings)
		return a, err
	})
	if err != nil {
		return Account{}, nil, err
	}
	return a, posted, nil
}

// Post enters postings on an account in order and returns the account afterwards. A posting that is
// refused has its error in Posted and changes nothing; the others are entered. An error of Post
// itself means that nothing was entered. It is the only function that moves money.
func Post(tx *state.Tx, account string, postings []Posting) (Account, []Posted, error) {
	if err := checkAccount(account); err != nil {
		return Account{}, nil, err
	}
	m := state.MemoryOf[*ledgerMemory](tx)
	p := poster{tx: tx, memory: m, account: FindAccount(tx.View(), account), tally: tally{day: dayOf(tx.Now())}}
	p.page.start(m.pages.freeFor(entryRoom*len(postings)+pageRoom), m.names)
	m.index.start(account)
	before := p.account
	tx.Grow(opsPerPost)
	posted := make([]Posted, len(postings))
	for i := range postings {
		p.moved = 0
		posted[i].Sequence, posted[i].Err = p.post(&postings[i])
		posted[i].Moved = p.moved
		if posted[i].Err == nil {
			posted[i].Spends = p.tally.spendsOf(&postings[i])
		}
		if p.broken != nil {
			return Account{}, nil, p.broken
		}
	}
	if err := p.flushAllowances(); err != nil {
		return Account{}, nil, err
	}
	if p.account.Last == before.Last {
		if p.account.Granted == before.Granted {
			return p.account, posted, nil
		}
		return p.account, posted, accounts.Put(tx, p.account)
	}
	tx.Op(journal.Op{
		Kind: journal.Put, New: true, Table: journal.Ledger,
		Key: m.sequenceKey(p.account.Last), Value: m.pages.keep(p.page.finish()),
	})
	m.writeIndex(tx)
	if err := p.tally.write(tx); err != nil {
		return Account{}, nil, err
	}
	p.account.Changed = tx.Now()
	return p.account, posted, accounts.Put(tx, p.account)
}

// opsPerPost is the usual number of operations of a Post: the page, its record in the index of receipts, the account,
// the spending of a key and the usage.
const opsPerPost = 5

// poster enters postings. It checks a posting before it changes anything, so that a refused one has
// no effect.
type poster struct {
	tx      *state.Tx
	memory  *ledgerMemory
	account Account
	page    pageWriter
	tally   tally
	// allowances are those that were read, as the postings have changed them, and moved is Posted.Moved.
	allowances []*Allowance
	moved      int64
	broken     error // error of writing a record, which makes the whole command fail
}

// post enters one posting and returns the sequence number of its entry.
func (p *poster) post(what *Posting) (uint64, error) {
	if what.Amount > budget.MaxCredits || what.Amount < -budget.MaxCredits || (what.Amount < 0 && what.Kind != Adjust) {
		return 0, fmt.Errorf("%w: %s of %d", state.ErrInvalid, what.Kind, what.Amount)
	}
	switch what.Kind {
	case Credit, Adjust:
		return p.addCredit(what)
	case Begin:
		return p.openHold(what)
	case Extend, Progress:
		return p.changeHold(what)
	case Settle, Release:
		return p.closeHold(what)
	case Grant:
		return p.grantAllowance(what)
	case Return:
		return p.returnAllowance(what)
	}
	return 0, fmt.Errorf("%w: posting of kind %q", state.ErrInvalid, what.Kind)
}

// addCredit books a payment and returns the sequence of its entry. A payment with an id is booked once.
func (p *poster) addCredit(what *Posting) (uint64, error) {
	if what.Once != "" {
		return p.creditOnce(what)
	}
	return p.changeCredits(what)
}

// changeCredits adds to the credits or takes from them. It takes only what is neither spent nor
// held.
func (p *poster) changeCredits(what *Posting) (uint64, error) {
	sum := p.account.Credits + what.Amount
	if sum > budget.MaxCredits {
		return 0, fmt.Errorf("%w: credits of %d", state.ErrInvalid, sum)
	}
	if what.Amount < 0 && !p.account.canHold(-what.Amount) {
		return 0, fmt.Errorf("take %d of account %s: %w", -what.Amount, p.account.ID, ErrInsufficient)
	}
	p.tx.Audit(state.AuditEvent{
		Actor: what.By, Action: "account." + string(what.Kind),
		Target: state.Target{Kind: "account", ID: p.account.ID},
		Before: state.Fields{"credits": p.account.Credits},
		After:  state.Fields{"credits": sum, "reason": what.Reason},
	})
	p.account.Credits = sum
	return p.appendEntry(Entry{Kind: what.Kind, Amount: what.Amount, Reason: what.Reason}, nil), nil
}

// openHold holds an amount if the account has it.
func (p *poster) openHold(what *Posting) (uint64, error) {
	if err := what.checkReceipt(); err != nil {
		return 0, err
	}
	need := what.Amount - p.coveredByAllowance(what)
	if !p.account.canHold(need) {
		return 0, fmt.Errorf("hold %d of account %s: %w", what.Amount, p.account.ID, ErrInsufficient)
	}
	if err := p.checkLimits(what, need); err != nil {
		return 0, err
	}
	p.moveAllowance(what.Allowance, what.Move)
	p.account.Held += what.Amount
	e := Entry{Kind: Begin, Amount: what.Amount, Request: what.Receipt.Request, Model: what.Receipt.Model}
	h := Hold{
		ID:      p.appendEntry(e, nil),
		Account: p.account.ID,
		Amount:  what.Amount,
		Began:   what.beganAt(p.tx.Now()),
		Node:    p.tx.Node(),
		Receipt: *what.Receipt,
	}
	p.putHold(h)
	return h.ID, nil
}

// checkReceipt returns an error unless the receipt names the request, because receipts are found by
// it.
func (w *Posting) checkReceipt() error {
	if w.Receipt == nil {
		return fmt.Errorf("%w: a %s without a receipt", state.ErrInvalid, w.Kind)
	}
	return state.CheckID(w.Receipt.Request)
}

// beganAt returns when the request began.
func (w *Posting) beganAt(now time.Time) time.Time {
	if w.Began.IsZero() {
		return now
	}
	return w.Began
}

// changeHold extends an open hold or records its progress.
func (p *poster) changeHold(what *Posting) (uint64, error) {
	r := holdOf(p.tx.View(), p.account.ID, what.Hold)
	if r == nil {
		return 0, fmt.Errorf("hold %d: %w", what.Hold, state.ErrFinished)
	}
	h := r.Rec
	if what.Kind == Progress {
		h.Progress = min(max(h.Progress, what.Amount), h.Amount)
		p.putHold(h)
		return h.ID, nil
	}
	need := what.Amount - p.coveredByAllowance(what)
	if !p.account.canHold(need) {
		return 0, fmt.Errorf("extend hold %d by %d: %w", what.Hold, what.Amount, ErrInsufficient)
	}
	if err := p.checkLimits(what, need); err != nil {
		return 0, err
	}
	p.moveAllowance(what.Allowance, what.Move)
	p.account.Held += what.Amount
	h.Amount += what.Amount
	p.putHold(h)
	return p.appendEntry(Entry{Kind: Extend, Amount: what.Amount, Hold: h.ID, Request: h.Receipt.Request}, nil), nil
}

// closeHold makes the one entry that closes a hold, with its receipt.
func (p *poster) closeHold(what *Posting) (uint64, error) {
	if err := what.checkReceipt(); err != nil {
		return 0, err
	}
	spent := what.Amount
	if what.Kind == Release {
		spent = 0
	}
	h := Hold{Account: p.account.ID, Amount: what.Held, Began: what.beganAt(p.tx.Now())}
	var r *state.Row[Hold]
	if what.Hold != 0 {
		if r = holdOf(p.tx.View(), p.account.ID, what.Hold); r == nil {
			return 0, fmt.Errorf("hold %d: %w", what.Hold, state.ErrFinished)
		}
		h = r.Rec
		p.account.Held -= h.Amount
	}
	if !p.account.canCharge(spent) {
		if r != nil {
			p.account.Held += h.Amount
		}
		return 0, fmt.Errorf("%w: a settlement of %d on account %s", state.ErrInvalid, spent, p.account.ID)
	}
	p.account.Spent += spent
	p.moveAllowance(what.Allowance, what.Move)
	receipt := *what.Receipt
	receipt.Account, receipt.Held, receipt.Charged = p.account.ID, h.Amount, spent
	receipt.Reason, receipt.Began, receipt.Ended = what.Reason, h.Began, p.tx.Now()
	e := Entry{
		Kind:    what.Kind,
		Amount:  spent,
		Held:    h.Amount,
		Hold:    h.ID,
		Request: receipt.Request,
		Model:   receipt.Model,
		Reason:  what.Reason,
	}
	sequence := p.appendEntry(e, &receipt)
	if r != nil {
		holds.Remove(p.tx, r)
	} else {
		h.ID = sequence
	}
	receipt.Hold = h.ID
	p.memory.index.add(receipt.Request, sequence)
	p.tally.add(p.tx, &receipt)
	return sequence, nil
}

// appendEntry appends an entry to the ledger, with the receipt if it closes a hold. Each entry
// refers to the previous one of its account, so an account's history needs no index.
func (p *poster) appendEntry(e Entry, r *Receipt) uint64 {
	p.memory.next++
	e.Sequence = p.memory.next
	e.Previous, e.Account, e.At = p.account.Last, p.account.ID, p.tx.Now()
	p.account.Last = e.Sequence
	if e.Hold == 0 {
		e.Hold = e.ownHold()
	}
	e.joins = p.page.count > 0
	p.page.add(&e, r)
	return e.Sequence
}

// putHold stores a hold. A failure makes the whole posting fail at its end, as a failure of the other tables does.
func (p *poster) putHold(h Hold) {
	if err := holds.Put(p.tx, h); err != nil {
		p.broken = err
	}
}

// History returns up to limit entries of an account, newest first. It starts below the sequence number before, or at
// the newest entry if before is 0, and ends at the oldest entry that was not folded. It follows the chain of entries of
// the account, so its cost grows with the entries that it returns and skips, and not with those of other accounts.
func History(ctx context.Context, s *state.State, account string, before uint64, limit int) ([]Entry, error) {
	var found []Entry
	entries := entryReader{state: s}
	at := FindAccount(s.View(), account).Last
	for at != 0 && len(found) < limit {
		if at <= foldedThrough(s.View()) {
			break
		}
		e, err := entries.entryUnlessFolded(ctx, at)
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if before == 0 || at < before {
			found = append(found, *e)
		}
		at = e.Previous
	}
	return found, nil
}
