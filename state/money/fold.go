package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Checkpoint holds the sums of an account's folded ledger entries. CheckLedger starts from it
// instead of those entries.
type Checkpoint struct {
	Account string `json:"account"`
	Entries int64  `json:"entries"` // number of folded entries
	Credits int64  `json:"credits"`
	Spent   int64  `json:"spent"`
	Held    int64  `json:"held,omitempty"`
	Last    uint64 `json:"last"` // sequence number of the last folded entry
	// Open holds the amounts of holds that folded entries have opened and not closed, by hold.
	Open map[uint64]int64 `json:"open,omitempty"`
}

// foldedName is the fact that says up to which sequence number the ledger was folded. Each fold
// checks and changes it, so that of two concurrent folds only one takes effect.
const foldedName = "ledger/folded"

// MaxFold is the number of ledger entries that one Fold takes. It may take a few more to finish a
// page.
const MaxFold = 1000

// Fold takes the oldest entries, made before a time, out of the ledger. It takes whole pages until
// there are limit entries (MaxFold if 0). In one commit their sums are added to the checkpoints of
// their accounts, and the entries and their receipts are removed. It returns the number of entries;
// if that is limit or more, there may be more to fold. Balances, open holds and the result of
// CheckLedger stay the same.
func Fold(ctx context.Context, s *state.State, before time.Time, limit int) (int, error) {
	if limit <= 0 || limit > MaxFold {
		limit = MaxFold
	}
	m := state.MemoryOf[*ledgerMemory](s)
	m.folding.Lock()
	defer m.folding.Unlock()
	// A command must not read the disk, so the entries are read before it. They cannot become
	// outdated, because entries never change and only Fold writes checkpoints.
	f := folder{mark: foldedThrough(s.View()), checkpoints: map[string]*Checkpoint{}}
	err := readPages(ctx, s, f.mark+1, 0, func(entries []Entry) error {
		last := &entries[len(entries)-1]
		if len(f.entries) >= limit || !last.At.Before(before) {
			return errStop
		}
		f.entries = append(f.entries, entries...)
		f.pages = append(f.pages, last.Sequence)
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return 0, fmt.Errorf("fold the ledger: %w", err)
	}
	if len(f.entries) == 0 {
		return 0, nil
	}
	for i := range f.entries {
		if err := f.addEntry(ctx, s, &f.entries[i]); err != nil {
			return 0, fmt.Errorf("fold the ledger: %w", err)
		}
	}
	return state.Do(ctx, s, f.write)
}

// errStop ends a Range that has read enough.
var errStop = errors.New("stop reading")

// folder collects the entries and checkpoints of one Fold.
type folder struct {
	mark        uint64 // sequence number up to which the ledger was folded before
	entries     []Entry
	pages       []uint64 // pages of these entries, each named by its last entry
	checkpoints map[string]*Checkpoint
}

// addEntry adds an entry to the checkpoint of its account.
func (f *folder) addEntry(ctx context.Context, s *state.State, e *Entry) error {
	c := f.checkpoints[e.Account]
	if c == nil {
		have, err := readCheckpoint(ctx, s, e.Account)
		if err != nil {
			return err
		}
		c = &have
		f.checkpoints[e.Account] = c
	}
	return c.addEntry(e)
}

// write is the command that stores the checkpoints and removes the entries.
func (f *folder) write(tx *state.Tx) (int, error) {
	if foldedThrough(tx.View()) != f.mark {
		return 0, nil // another call folded these
	}
	for _, account := range slices.Sorted(maps.Keys(f.checkpoints)) {
		value, err := json.Marshal(f.checkpoints[account])
		if err != nil {
			return 0, fmt.Errorf("%w: %w", state.ErrInvalid, err)
		}
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Folded, Key: []byte(account), Value: value})
	}
	for _, last := range f.pages {
		tx.Op(journal.Op{Kind: journal.Delete, Table: journal.Ledger, Key: state.SequenceKey(last)})
	}
	for post := range posts(f.entries) {
		for _, r := range indexOf(post) {
			tx.Op(journal.Op{Kind: journal.Delete, Table: r.place.table(), Key: r.key})
		}
	}
	return len(f.entries), tx.PutNumberFact(foldedName, f.pages[len(f.pages)-1])
}

// foldedThrough returns the sequence number of the last folded entry.
func foldedThrough(v state.View) uint64 { return v.NumberFact(foldedName) }

// isFolded reports whether an entry that is not in the store was folded. The store may show the
// removal shortly before the View shows the new mark, so isFolded waits for the commit by running
// an empty command.
func isFolded(ctx context.Context, s *state.State, sequence uint64) (bool, error) {
	if err := state.Run(ctx, s, func(*state.Tx) error { return nil }); err != nil {
		return false, err
	}
	return sequence <= foldedThrough(s.View()), nil
}

// readCheckpoint returns the checkpoint of an account. It is empty if no entry was folded.
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

// decodeCheckpoint returns the checkpoint in a record.
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

// addEntry adds an entry to the sums. An entry that does not follow from those before it is an
// error and is not folded, because folding it would hide that the ledger is damaged.
func (c *Checkpoint) addEntry(e *Entry) error {
	fits := e.Previous == c.Last
	switch e.Kind {
	case Credit, Adjust:
		c.Credits += e.Amount
	case Begin:
		c.addHold(e.Sequence, e.Amount)
	case Extend:
		fits = fits && c.hasHold(e.Hold)
		c.addHold(e.Hold, e.Amount)
	case Settle, Release:
		c.Spent += e.Amount
		if e.Hold != e.Sequence { // otherwise the same entry has opened it
			fits = fits && c.hasHold(e.Hold) && c.Open[e.Hold] == e.Held
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

// hasHold reports whether the hold was open at the checkpoint.
func (c *Checkpoint) hasHold(hold uint64) bool {
	_, open := c.Open[hold]
	return open
}

// addHold adds an amount to a hold.
func (c *Checkpoint) addHold(id uint64, amount int64) {
	if c.Open == nil {
		c.Open = map[uint64]int64{}
	}
	c.Open[id] += amount
	c.Held += amount
}
