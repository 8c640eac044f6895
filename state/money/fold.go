package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Checkpoint is what the folded ledger entries of an account add up to: what an
// auditor begins with in place of them.
type Checkpoint struct {
	Account string `json:"account"`
	Entries int64  `json:"entries"` // how many there were
	Credits int64  `json:"credits"`
	Spent   int64  `json:"spent"`
	Held    int64  `json:"held,omitempty"`
	Last    uint64 `json:"last"` // sequence of the last of them
	// Open are the holds that folded entries began and none of them ended, by
	// the sequence of their begin: what is held for each.
	Open map[uint64]int64 `json:"open,omitempty"`
}

// foldedName is the fact that says up to which sequence number the ledger was
// folded. Every fold changes it, so of two processes that fold one counts.
const foldedName = "ledger/folded"

// MaxFold is how many ledger entries one Fold takes at most, but for the rest of the
// page that reaches it.
const MaxFold = 1000

// Fold takes the oldest entries out of the ledger, page by page until there are
// limit (MaxFold if 0), as far as they were entered before a time: their sums go to
// the checkpoints of their accounts and they are removed, with the receipts of the
// requests that they ended, in one commit. It returns how many; if that is limit or
// beyond there may be more. Balances, open holds and what CheckLedger proves stay as
// they are.
func Fold(ctx context.Context, s *state.State, before time.Time, limit int) (int, error) {
	if limit <= 0 || limit > MaxFold {
		limit = MaxFold
	}
	m := state.MemoryOf[*ledgerMemory](s)
	m.folding.Lock()
	defer m.folding.Unlock()
	// A command does not read the disk, so this is before it. Entries never
	// change, and only Fold writes checkpoints.
	f := folder{mark: foldedThrough(s.View()), checkpoints: map[string]*Checkpoint{}}
	err := readPages(ctx, s, f.mark+1, 0, func(entries []Entry) error {
		last := &entries[len(entries)-1]
		if len(f.entries) >= limit || !last.At.Before(before) {
			return errEnough
		}
		f.entries = append(f.entries, entries...)
		f.pages = append(f.pages, last.Sequence)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return 0, fmt.Errorf("fold the ledger: %w", err)
	}
	if len(f.entries) == 0 {
		return 0, nil
	}
	for i := range f.entries {
		if err := f.add(ctx, s, &f.entries[i]); err != nil {
			return 0, fmt.Errorf("fold the ledger: %w", err)
		}
	}
	return state.Do(ctx, s, f.write)
}

// errEnough ends a reading that has what it wants.
var errEnough = errors.New("enough")

// folder is one fold.
type folder struct {
	mark        uint64 // where it begins
	entries     []Entry
	pages       []uint64 // of these, by their last entries
	checkpoints map[string]*Checkpoint
}

func (f *folder) add(ctx context.Context, s *state.State, e *Entry) error {
	c := f.checkpoints[e.Account]
	if c == nil {
		have, err := readCheckpoint(ctx, s, e.Account)
		if err != nil {
			return err
		}
		c = &have
		f.checkpoints[e.Account] = c
	}
	return c.add(e)
}

// write is the command.
func (f *folder) write(tx *state.Tx) (int, error) {
	if foldedThrough(tx.View()) != f.mark {
		return 0, nil // another call folded these
	}
	for _, account := range sortedKeys(f.checkpoints) {
		value, err := json.Marshal(f.checkpoints[account])
		if err != nil {
			return 0, fmt.Errorf("%w: %w", state.ErrInvalid, err)
		}
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Folded, Key: []byte(account), Value: value})
	}
	for _, last := range f.pages {
		tx.Op(journal.Op{Kind: journal.Delete, Table: journal.Ledger, Key: state.SequenceKey(last)})
	}
	for i := range f.entries {
		if e := &f.entries[i]; e.ends() {
			key := receiptKey(e.Request, e.Account, e.Sequence)
			tx.Op(journal.Op{Kind: journal.Delete, Table: receiptTable(key), Key: key})
		}
	}
	return len(f.entries), tx.PutNumberFact(foldedName, f.pages[len(f.pages)-1])
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// foldedThrough returns the sequence number of the last entry that was folded.
func foldedThrough(v state.View) uint64 { return v.NumberFact(foldedName) }

// isFolded reports whether an entry that is not in the store was folded. What
// is gone from there already may be shown as there for the rest of its commit, so
// that is waited for.
func isFolded(ctx context.Context, s *state.State, sequence uint64) (bool, error) {
	if err := state.Run(ctx, s, func(*state.Tx) error { return nil }); err != nil {
		return false, err
	}
	return sequence <= foldedThrough(s.View()), nil
}

// readCheckpoint reads an account's; one of which nothing was folded has an empty one.
func readCheckpoint(ctx context.Context, s *state.State, account string) (Checkpoint, error) {
	rec, err := s.Get(ctx, journal.Folded, []byte(account))
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return Checkpoint{Account: account}, nil
	case err != nil:
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	return decodeCheckpoint(rec)
}

func decodeCheckpoint(rec journal.Record) (Checkpoint, error) {
	var c Checkpoint
	if json.Unmarshal(rec.Value, &c) != nil || c.Account != string(rec.Key) {
		return Checkpoint{}, &journal.CorruptError{
			Table:  journal.Folded,
			Key:    slices.Clone(rec.Key),
			Reason: "is not a checkpoint",
		}
	}
	return c, nil
}

// add counts an entry. One that does not fit those before it is not folded: that
// would hide what is wrong with the ledger.
func (c *Checkpoint) add(e *Entry) error {
	fits := e.Previous == c.Last
	switch e.Kind {
	case Credit, Adjust:
		c.Credits += e.Amount
	case Begin:
		c.hold(e.Sequence, e.Amount)
	case Extend:
		fits = fits && c.has(e.Hold)
		c.hold(e.Hold, e.Amount)
	case Settle, Release:
		c.Spent += e.Amount
		if e.Hold != e.Sequence { // else it began by the same entry
			fits = fits && c.has(e.Hold) && c.Open[e.Hold] == e.Held
			c.Held -= e.Held
			delete(c.Open, e.Hold)
		}
	default:
		fits = false
	}
	if !fits {
		return &journal.CorruptError{
			Table:  journal.Ledger,
			Key:    state.SequenceKey(e.Sequence),
			Reason: fmt.Sprintf("(entry %d) does not follow from those before it", e.Sequence),
		}
	}
	c.Last = e.Sequence
	c.Entries++
	return nil
}

func (c *Checkpoint) has(hold uint64) bool {
	_, open := c.Open[hold]
	return open
}

func (c *Checkpoint) hold(id uint64, amount int64) {
	if c.Open == nil {
		c.Open = map[uint64]int64{}
	}
	c.Open[id] += amount
	c.Held += amount
}
