package state

import (
	"slices"
	"strings"

	"github.com/hashicorp/go-memdb"
)

// A tree of memdb takes about 320 bytes for each entry, which is as much as a record of a key, and there may be a
// hundred thousand keys. A table that is Grouped has one entry for up to groupSize rows, so that a row takes 8 bytes
// besides its record. A change copies one list of pointers.

// groupSize is the most rows in a group. Larger groups would save little more and cost more with each change.
const groupSize = 64

// group has the rows whose ids are at least from and less than that of the next group, in the order of their ids. It is
// never changed after it was inserted.
type group[R any] struct {
	from string // "" for the first group of the table
	rows []*Row[R]
}

// newGroup returns a group as it is inserted.
func newGroup[R any](from string, rows []*Row[R]) *Row[group[R]] {
	return &Row[group[R]]{Rec: group[R]{from, rows}}
}

// groupIndexes returns the index of the groups by from.
func groupIndexes[R any]() map[string]*memdb.IndexSchema {
	return map[string]*memdb.IndexSchema{ByID: {
		Name: ByID, Unique: true, Indexer: indexer[group[R]](func(g *group[R]) []byte { return TextKey(g.from) }),
	}}
}

// groupFor returns the group that a row with an id is in, or would be in. In an empty table that is a group without
// rows, which was not inserted yet.
func (t *Table[R]) groupFor(txn *memdb.Txn, id string) (g group[R], err error) {
	it, err := txn.ReverseLowerBound(t.name(), ByID, TextKey(id))
	if err != nil {
		return g, err
	}
	if raw := it.Next(); raw != nil { // else the table is empty
		g = raw.(*Row[group[R]]).Rec
	}
	return g, nil
}

// position returns the index that a row with an id has in the group, or would have.
func (t *Table[R]) position(g group[R], id string) (at int, found bool) {
	return slices.BinarySearchFunc(g.rows, id, func(r *Row[R], id string) int {
		return strings.Compare(t.ID(&r.Rec), id)
	})
}

// grouped returns the row with an id, or nil.
func (t *Table[R]) grouped(txn *memdb.Txn, id string) (*Row[R], error) {
	g, err := t.groupFor(txn, id)
	if err != nil {
		return nil, err
	}
	if at, found := t.position(g, id); found {
		return g.rows[at], nil
	}
	return nil, nil
}

// insertGrouped adds a row or replaces the one with its id.
func (t *Table[R]) insertGrouped(txn *memdb.Txn, r *Row[R]) error {
	id := t.ID(&r.Rec)
	g, err := t.groupFor(txn, id)
	if err != nil {
		return err
	}
	at, found := t.position(g, id)
	if found {
		rows := slices.Clone(g.rows)
		rows[at] = r
		return txn.Insert(t.name(), newGroup(g.from, rows))
	}
	rows := slices.Insert(slices.Clip(g.rows), at, r) // copies, because there is no room
	if len(rows) <= groupSize {
		return txn.Insert(t.name(), newGroup(g.from, rows))
	}
	half := len(rows) / 2
	if at == len(rows)-1 {
		half = at // ids that are in the order of their creation leave full groups behind
	}
	if err := txn.Insert(t.name(), newGroup(t.ID(&rows[half].Rec), slices.Clone(rows[half:]))); err != nil {
		return err
	}
	return txn.Insert(t.name(), newGroup(g.from, slices.Clone(rows[:half])))
}

// removeGrouped removes the row with the id of r.
func (t *Table[R]) removeGrouped(txn *memdb.Txn, r *Row[R]) error {
	id := t.ID(&r.Rec)
	g, err := t.groupFor(txn, id)
	if err != nil {
		return err
	}
	at, found := t.position(g, id)
	switch {
	case !found:
		return memdb.ErrNotFound
	case len(g.rows) == 1 && g.from != "":
		return txn.Delete(t.name(), newGroup[R](g.from, nil))
	}
	rows := slices.Concat(g.rows[:at], g.rows[at+1:])
	return txn.Insert(t.name(), newGroup(g.from, rows))
}

// loadGrouped is load for a Grouped table. All groups but the last one of each call are full.
func (t *Table[R]) loadGrouped(txn *memdb.Txn, rows []any) error {
	last, err := txn.Last(t.name(), ByID)
	var before *R
	if last != nil {
		loaded := last.(*Row[group[R]]).Rec.rows
		before = &loaded[len(loaded)-1].Rec
	}
	for part := range slices.Chunk(rows, groupSize) {
		g := newGroup("", make([]*Row[R], len(part)))
		for i, r := range part {
			g.Rec.rows[i] = r.(*Row[R])
			if t.Compact != nil {
				t.Compact(&g.Rec.rows[i].Rec, before)
				before = &g.Rec.rows[i].Rec
			}
		}
		if last != nil {
			g.Rec.from = t.ID(&g.Rec.rows[0].Rec)
		}
		if err == nil {
			err = txn.Insert(t.name(), g)
		}
		last = g
	}
	return err
}

// eachGrouped calls yield for each row in the order of their ids until it returns false.
func (t *Table[R]) eachGrouped(txn *memdb.Txn, yield func(*Row[R]) bool) {
	it, err := txn.LowerBound(t.name(), ByID, []byte(nil))
	if err != nil {
		return
	}
	iterate(it, func(g *Row[group[R]]) bool {
		for _, r := range g.Rec.rows {
			if !yield(r) {
				return false
			}
		}
		return true
	})
}
