package journal

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// appended are the tables whose keys nearly always follow all those before them:
// their pages are filled to the brim, since nothing will come between, and what
// follows the last key is new.
var appended = []Table{Ledger, Receipt}

const brim = 0.95

// writer applies the batches of one commit. What it looked up for one operation
// serves the next ones: a commit is many operations on few tables.
type writer struct {
	tx      *bbolt.Tx
	buckets []bucket
	room    []byte // for sealed values
}

// bucket is a table in a commit.
type bucket struct {
	*bbolt.Bucket
	table Table
	// last is a key that none in the table lies behind, of an appended one; nil: not
	// known.
	last []byte
}

func newWriter(tx *bbolt.Tx, batches []Batch) *writer {
	size := 0
	for _, b := range batches {
		for i := range b.Ops {
			if op := &b.Ops[i]; op.Kind == Put {
				size += sealHeader + len(op.Value)
			}
		}
	}
	return &writer{tx: tx, room: make([]byte, 0, size)}
}

func (w *writer) bucket(t Table) *bucket {
	for i := range w.buckets {
		if w.buckets[i].table == t {
			return &w.buckets[i]
		}
	}
	b := bucket{Bucket: w.tx.Bucket([]byte(t)), table: t}
	if slices.Contains(appended, t) {
		b.FillPercent = brim
		// Before any operation: bbolt never finds the last key of a bucket whose
		// last page was emptied in the same transaction.
		last, _ := b.Cursor().Last()
		b.last = clone(last)
	}
	w.buckets = append(w.buckets, b)
	return &w.buckets[len(w.buckets)-1]
}

func (w *writer) apply(batches []Batch) error {
	for i, batch := range batches {
		for _, c := range batch.Pre {
			have, err := w.bucket(c.Table).revision(c.Key)
			if err != nil {
				return err
			}
			if have != c.Rev {
				return &ConflictError{Batch: i, Cond: c, Have: have}
			}
		}
		for j := range batch.Ops {
			if err := w.op(&batch.Ops[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) op(op *Op) error {
	b := w.bucket(op.Table)
	switch op.Kind {
	case Put:
		rev, err := b.before(op.Key)
		if err != nil {
			return err
		}
		return b.Put(op.Key, w.seal(op, rev+1))
	case Delete:
		return b.Delete(op.Key)
	case DeletePrefix:
		return b.deletePrefix(op.Key)
	}
	return fmt.Errorf("%w: operation %d", ErrInvalid, op.Kind)
}

// seal seals a value into what newWriter made room for.
func (w *writer) seal(op *Op, rev uint64) []byte {
	n := len(w.room)
	w.room = appendSealed(w.room, op.Table, op.Key, rev, op.Value)
	return w.room[n:len(w.room):len(w.room)]
}

// before is the revision that a record has before it is written.
func (b *bucket) before(key []byte) (uint64, error) {
	if b.last != nil && bytes.Compare(key, b.last) > 0 {
		b.last = key
		return 0, nil
	}
	return b.revision(key)
}

// revision is the one that a record has; 0: there is none.
func (b *bucket) revision(key []byte) (uint64, error) {
	v := b.Get(key)
	if v == nil {
		return 0, nil
	}
	rev, _, err := unseal(b.table, key, v)
	return rev, err
}

// deletePrefix collects before it deletes: a cursor of bbolt may skip a record
// after its page was rebalanced.
func (b *bucket) deletePrefix(prefix []byte) error {
	var keys [][]byte
	c := b.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, clone(k))
	}
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
