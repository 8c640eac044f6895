package journal

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// change is what a commit does to a record: the value as it is kept, sealed, or
// nil for one that is removed.
type change struct {
	table  int // index in tables
	key    []byte
	sealed []byte
	order  int // among those that are collected
}

// overlay is what commits have changed and the file does not have yet. Its changes
// are never changed themselves.
type overlay struct {
	lsn uint64 // of the last commit in it; 0: there is none

	mu     sync.Mutex // reading makes indexes
	tables [len(tables)]layer
}

// layer is an overlay's part of one table. Most records that are written often are
// not read before they are in the file, so the index grows when it is asked.
type layer struct {
	changes []change // in the order in which they were made
	index   map[string]int
	indexed int // how many of them are in index
}

// get returns the newest change of a record; found is false where there is none.
func (o *overlay) get(table int, key []byte) (sealed []byte, found bool) {
	if o == nil {
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &o.tables[table]
	if len(l.changes) == 0 {
		return nil, false
	}
	if l.index == nil {
		l.index = map[string]int{}
	}
	for ; l.indexed < len(l.changes); l.indexed++ {
		l.index[string(l.changes[l.indexed].key)] = l.indexed
	}
	i, found := l.index[string(key)]
	if !found {
		return nil, false
	}
	return l.changes[i].sealed, true
}

func (o *overlay) put(c change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &o.tables[c.table]
	l.changes = append(l.changes, c)
}

// add puts everything over what o has.
func (o *overlay) add(newer *overlay) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range newer.tables {
		o.tables[i].changes = append(o.tables[i].changes, newer.tables[i].changes...)
	}
	o.lsn = newer.lsn
}

// collect returns what the layers, the newest first, change in from <= key < to of
// a table: the newest change of each record, in key order. A nil to leaves that side
// open.
func collect(table int, from, to []byte, layers ...*overlay) []change {
	var found []change
	for _, o := range slices.Backward(layers) {
		if o == nil {
			continue
		}
		o.mu.Lock()
		all := o.tables[table].changes
		o.mu.Unlock()
		if from == nil && to == nil {
			found = append(found, all...)
			continue
		}
		for _, c := range all {
			if bytes.Compare(c.key, from) >= 0 && (to == nil || bytes.Compare(c.key, to) < 0) {
				found = append(found, c)
			}
		}
	}
	for i := range found {
		found[i].order = i
	}
	slices.SortFunc(found, func(a, b change) int { return cmp.Or(bytes.Compare(a.key, b.key), a.order-b.order) })
	// Of those of one record the last one counts.
	kept := found[:0]
	for i, c := range found {
		if i+1 == len(found) || !bytes.Equal(c.key, found[i+1].key) {
			kept = append(kept, c)
		}
	}
	return kept
}

// fold puts everything into the file's tables.
func (o *overlay) fold(tx *bbolt.Tx) error {
	for i := range o.tables {
		if err := foldTable(tx, tables[i], collect(i, nil, nil, o)); err != nil {
			return err
		}
	}
	return putLSN(tx, o.lsn)
}

// foldTable puts changes, in key order, into a table of the file: bbolt is fastest so.
func foldTable(tx *bbolt.Tx, t Table, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	bucket := tx.Bucket([]byte(t))
	if slices.Contains(appended, t) {
		bucket.FillPercent = brim
	}
	for _, c := range changes {
		var err error
		if c.sealed == nil {
			err = bucket.Delete(c.key)
		} else {
			err = bucket.Put(c.key, c.sealed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prefixEnd is the first key behind all that begin with prefix; nil: there is none.
func prefixEnd(prefix []byte) []byte {
	end := clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
