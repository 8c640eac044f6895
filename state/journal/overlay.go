package journal

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// change holds the new value of a record in a commit: sealed, as it is kept, or nil
// for a record that is removed.
type change struct {
	key    []byte
	sealed []byte
	order  int // among those that are collected
}

// overlay holds the changes of commits that the file does not have yet. A change in it
// is never modified.
type overlay struct {
	lsn uint64 // of the last commit in it; 0: there is none

	mu     sync.Mutex // reading makes indexes
	tables [len(tables)]layer
}

// layer is an overlay's part of one table. Most records are written and then not read before they
// are in the file, so the index of their keys is made only by reads, as far as it has not been
// made.
type layer struct {
	commits [][]change        // in the order in which they were made
	index   map[string][]byte // of the sealed values, as far as it is made
	indexed place
}

// place is a position behind some changes of one of the commits.
type place struct{ commit, change int }

// get returns the newest change of a record. A record that was removed is found and has no value.
// If found is false, the next older overlay or the file has to be asked. It may be called on nil.
func (o *overlay) get(table int, key []byte) (sealed []byte, found bool) {
	if o == nil {
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &o.tables[table]
	if l.empty() {
		return nil, false
	}
	l.grow()
	sealed, found = l.index[string(key)]
	return sealed, found
}

// empty reports whether there are no changes. There may be room for some.
func (l *layer) empty() bool {
	return len(l.commits) == 0 || len(l.commits) == 1 && len(l.commits[0]) == 0
}

// grow brings the index up to the last change.
func (l *layer) grow() {
	if l.index == nil {
		l.index = map[string][]byte{}
	}
	for at := &l.indexed; at.commit < len(l.commits); {
		commit := l.commits[at.commit]
		for ; at.change < len(commit); at.change++ {
			l.index[string(commit[at.change].key)] = commit[at.change].sealed
		}
		if at.commit == len(l.commits)-1 {
			return // more may come
		}
		*at = place{commit: at.commit + 1}
	}
}

// put adds a change to the last commit. The caller must be the only user of o.
func (o *overlay) put(table int, c change) {
	l := &o.tables[table]
	if len(l.commits) == 0 {
		l.commits = make([][]change, 1)
	}
	last := &l.commits[len(l.commits)-1]
	*last = append(*last, c)
}

// expect makes room for n changes of a table in an empty overlay.
func (o *overlay) expect(table, n int) {
	o.tables[table].commits = [][]change{make([]change, 0, n)}
}

// add puts everything over what o has.
func (o *overlay) add(newer *overlay) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range newer.tables {
		o.tables[i].commits = append(o.tables[i].commits, newer.tables[i].commits...)
	}
	o.lsn = newer.lsn
}

// commitsOf returns the changes of a table so far.
func (o *overlay) commitsOf(table int) [][]change {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tables[table].commits
}

// collect returns what the layers, the newest first, change in from <= key < to of
// a table: the newest change of each record, in key order. A nil to leaves that side
// open.
func collect(table int, from, to []byte, layers ...*overlay) []change {
	var commits [][]change
	n := 0
	for _, o := range slices.Backward(layers) {
		commits = append(commits, o.commitsOf(table)...)
	}
	for _, c := range commits {
		n += len(c)
	}
	if n == 0 {
		return nil
	}
	var found []change
	if from == nil && to == nil {
		found = make([]change, 0, n) // else mostly a few of thousands
	}
	sorted := true
	for _, commit := range commits {
		for _, c := range commit {
			if bytes.Compare(c.key, from) < 0 || to != nil && bytes.Compare(c.key, to) >= 0 {
				continue
			}
			c.order = len(found)
			sorted = sorted && (len(found) == 0 || bytes.Compare(found[len(found)-1].key, c.key) < 0)
			found = append(found, c)
		}
	}
	if sorted {
		return found
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

// PrefixEnd returns the first key after all that begin with prefix, or nil if there is none, as the end of a range.
func PrefixEnd(prefix []byte) []byte {
	end := clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
