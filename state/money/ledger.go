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

// ErrInsufficient: the account does not have what is asked of it.
var ErrInsufficient = errors.New("the balance is insufficient")

// EntryKind says what a ledger entry did.
type EntryKind string

// Kinds of ledger entries. A hold has one Begin and one of Settle and Release.
const (
	Credit  EntryKind = "credit"  // Amount was put in
	Adjust  EntryKind = "adjust"  // Amount, which may be negative, corrects the credits
	Begin   EntryKind = "begin"   // Amount is held
	Extend  EntryKind = "extend"  // Amount more is held
	Settle  EntryKind = "settle"  // Amount was spent, Held is no longer held
	Release EntryKind = "release" // nothing was spent, Held is no longer held

	// Progress is a posting that makes no entry: it notes what its hold would be
	// settled at after a crash.
	Progress EntryKind = "progress"
)

// Entry is one entry of the ledger. Entries are appended and never changed.
type Entry struct {
	Sequence uint64
	Previous uint64 // of the same account
	Account  string
	Kind     EntryKind
	Amount   int64
	Held     int64
	// Hold is the Begin's sequence. A hold that begins and ends in one commit
	// has one entry for both, whose Hold is its own sequence.
	Hold    uint64
	Request string
	Model   string
	Reason  string
	At      time.Time

	receipt *Receipt // of a Settle or Release
}

// ends reports whether e is the terminal entry of a hold.
func (e *Entry) ends() bool { return e.Kind == Settle || e.Kind == Release }

// takes reports whether e needs credits that nothing else has taken. A settlement does
// not: it may leave a debt.
func (e *Entry) takes() bool {
	return e.Amount > 0 && (e.Kind == Begin || e.Kind == Extend) || e.Amount < 0 && e.Kind == Adjust
}

// Posting is what is to be entered on one account.
type Posting struct {
	Kind   EntryKind
	Amount int64
	// Hold is which hold it is about. A Settle or Release with 0 is about one
	// that begins with it, of Held.
	Hold   uint64
	Held   int64
	Reason string
	// Once makes a Credit or Adjust happen once: see Payment. "": each time.
	Once string
	// Receipt goes with Begin, Settle and Release. Account, hold, amounts, end
	// reason and times are filled in, in a copy.
	Receipt *Receipt
	// Began is when the request did, if it was not now.
	Began time.Time
}

// Posted is what became of a Posting: the sequence of its entry, or the error
// for which it left no trace.
type Posted struct {
	Sequence uint64
	Err      error
	// Spends are what the scopes of a Settle's receipt have spent when all postings were
	// entered: its key first, then Receipt.Scopes. They are shared and must not be changed.
	Spends []*KeySpend
}

// CommitPostings enters postings on an account, in order, each of them or not, and
// returns the account as it is then. It is the one way in which money moves.
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

// Post is State.Post inside a command.
func Post(tx *state.Tx, account string, postings []Posting) (Account, []Posted, error) {
	if err := checkAccount(account); err != nil {
		return Account{}, nil, err
	}
	m := state.MemoryOf[*ledgerMemory](tx)
	p := poster{tx: tx, memory: m, account: FindAccount(tx.View(), account), tally: tally{day: dayOf(tx.Now())}}
	p.page.begin(m.pages.freeFor(entryRoom*len(postings)+pageRoom), m.names)
	before := p.account.Last
	tx.Grow(opsPerPosting*len(postings) + opsPerPost)
	posted := make([]Posted, len(postings))
	for i := range postings {
		posted[i].Sequence, posted[i].Err = p.post(&postings[i])
		if posted[i].Err == nil {
			posted[i].Spends = p.tally.spent(&postings[i])
		}
		if p.broken != nil {
			return Account{}, nil, p.broken
		}
	}
	if p.account.Last == before {
		return p.account, posted, nil
	}
	tx.Op(journal.Op{
		Kind: journal.Put, New: true, Table: journal.Ledger,
		Key: m.sequenceKey(p.account.Last), Value: m.pages.keep(p.page.end()),
	})
	if err := p.tally.keep(tx); err != nil {
		return Account{}, nil, err
	}
	p.account.Changed = tx.Now()
	return p.account, posted, accounts.Put(tx, p.account)
}

// What a Post comes to, mostly: where its receipt is found for each settlement; the
// page, the account, what its key has spent and what was used, once for all.
const (
	opsPerPosting = 1
	opsPerPost    = 4
)

// poster enters postings: checks first, so that a refused one leaves no trace.
type poster struct {
	tx      *state.Tx
	memory  *ledgerMemory
	account Account
	page    pageWriter
	tally   tally
	broken  error // a record could not be written: nothing of the command counts
}

func (p *poster) post(what *Posting) (uint64, error) {
	if what.Amount > budget.MaxCredits || what.Amount < -budget.MaxCredits || (what.Amount < 0 && what.Kind != Adjust) {
		return 0, fmt.Errorf("%w: %s of %d", state.ErrInvalid, what.Kind, what.Amount)
	}
	switch what.Kind {
	case Credit, Adjust:
		return p.credit(what)
	case Begin:
		return p.begin(what)
	case Extend, Progress:
		return p.change(what)
	case Settle, Release:
		return p.end(what)
	}
	return 0, fmt.Errorf("%w: posting of kind %q", state.ErrInvalid, what.Kind)
}

func (p *poster) credit(what *Posting) (uint64, error) {
	if what.Once != "" {
		return p.once(what)
	}
	return p.move(what)
}

func (p *poster) move(what *Posting) (uint64, error) {
	sum := p.account.Credits + what.Amount
	if sum > budget.MaxCredits {
		return 0, fmt.Errorf("%w: credits of %d", state.ErrInvalid, sum)
	}
	if what.Amount < 0 && !p.account.takes(-what.Amount) {
		return 0, fmt.Errorf("take %d of account %s: %w", -what.Amount, p.account.ID, ErrInsufficient)
	}
	p.account.Credits = sum
	return p.enter(Entry{Kind: what.Kind, Amount: what.Amount, Reason: what.Reason}, nil), nil
}

func (p *poster) begin(what *Posting) (uint64, error) {
	if err := what.checkReceipt(); err != nil {
		return 0, err
	}
	if !p.account.takes(what.Amount) {
		return 0, fmt.Errorf("hold %d of account %s: %w", what.Amount, p.account.ID, ErrInsufficient)
	}
	p.account.Held += what.Amount
	e := Entry{Kind: Begin, Amount: what.Amount, Request: what.Receipt.Request, Model: what.Receipt.Model}
	h := Hold{
		ID:      p.enter(e, nil),
		Account: p.account.ID,
		Amount:  what.Amount,
		Began:   what.since(p.tx.Now()),
		Receipt: *what.Receipt,
	}
	p.put(h)
	return h.ID, nil
}

// checkReceipt: the request must have a name that finds it.
func (w *Posting) checkReceipt() error {
	if w.Receipt == nil {
		return fmt.Errorf("%w: a %s without a receipt", state.ErrInvalid, w.Kind)
	}
	return state.CheckID(w.Receipt.Request)
}

func (w *Posting) since(now time.Time) time.Time {
	if w.Began.IsZero() {
		return now
	}
	return w.Began
}

func (p *poster) change(what *Posting) (uint64, error) {
	r := holdOf(p.tx.View(), p.account.ID, what.Hold)
	if r == nil {
		return 0, fmt.Errorf("hold %d: %w", what.Hold, state.ErrFinished)
	}
	h := r.Rec
	if what.Kind == Progress {
		h.Progress = min(max(h.Progress, what.Amount), h.Amount)
		p.put(h)
		return h.ID, nil
	}
	if !p.account.takes(what.Amount) {
		return 0, fmt.Errorf("extend hold %d by %d: %w", what.Hold, what.Amount, ErrInsufficient)
	}
	p.account.Held += what.Amount
	h.Amount += what.Amount
	p.put(h)
	return p.enter(Entry{Kind: Extend, Amount: what.Amount, Hold: h.ID, Request: h.Receipt.Request}, nil), nil
}

// end is the one terminal entry of a hold.
func (p *poster) end(what *Posting) (uint64, error) {
	if err := what.checkReceipt(); err != nil {
		return 0, err
	}
	spent := what.Amount
	if what.Kind == Release {
		spent = 0
	}
	h := Hold{Account: p.account.ID, Amount: what.Held, Began: what.since(p.tx.Now())}
	var r *state.Row[Hold]
	if what.Hold != 0 {
		if r = holdOf(p.tx.View(), p.account.ID, what.Hold); r == nil {
			return 0, fmt.Errorf("hold %d: %w", what.Hold, state.ErrFinished)
		}
		h = r.Rec
		p.account.Held -= h.Amount
	}
	if !p.account.owes(spent) {
		if r != nil {
			p.account.Held += h.Amount
		}
		return 0, fmt.Errorf("%w: a settlement of %d on account %s", state.ErrInvalid, spent, p.account.ID)
	}
	p.account.Spent += spent
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
	sequence := p.enter(e, &receipt)
	if r != nil {
		holds.Remove(p.tx, r)
	} else {
		h.ID = sequence
	}
	receipt.Hold = h.ID
	p.indexReceipt(&receipt, sequence)
	p.tally.add(p.tx, &receipt)
	return sequence, nil
}

// enter appends an entry to the ledger, with the receipt of a terminal one. It is
// linked to the one before it of the same account, so that an account's history
// needs no index.
func (p *poster) enter(e Entry, r *Receipt) uint64 {
	p.memory.next++
	e.Sequence = p.memory.next
	e.Previous, e.Account, e.At = p.account.Last, p.account.ID, p.tx.Now()
	p.account.Last = e.Sequence
	if e.Hold == 0 {
		e.Hold = e.ownHold()
	}
	p.page.add(&e, r)
	return e.Sequence
}

func (p *poster) put(h Hold) {
	if err := holds.Put(p.tx, h); err != nil {
		p.broken = err
	}
}

// History returns up to limit entries of an account, newest first: those before
// the sequence number before, or (0) the newest. It ends with the oldest entry
// that was not folded.
func History(ctx context.Context, s *state.State, account string, before uint64, limit int) ([]Entry, error) {
	var found []Entry
	entries := entryReader{state: s}
	at := FindAccount(s.View(), account).Last
	for at != 0 && len(found) < limit {
		if at <= foldedThrough(s.View()) {
			break
		}
		e, err := entries.kept(ctx, at)
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
