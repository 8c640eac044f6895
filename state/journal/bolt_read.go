package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// Load implements Store.
func (b *Bolt) Load(ctx context.Context, tables []Table, fn func(Table, Record) error) (LSN, error) {
	release, err := b.use(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	var lsn LSN
	err = b.read(tables, nil, nil, func(tx *bbolt.Tx, news [][]change, at uint64) error {
		lsn = LSN(at)
		for i, t := range tables {
			each := func(rec Record) error { return fn(t, rec) }
			if err := scan(ctx, tx, t, news[i], nil, nil, 0, each); err != nil {
				return err
			}
		}
		return nil
	})
	return lsn, err
}

// Get implements Store.
func (b *Bolt) Get(ctx context.Context, table Table, key []byte) (rec Record, err error) {
	if err := CheckKey(table, key); err != nil {
		return Record{}, err
	}
	release, err := b.use(ctx)
	if err != nil {
		return Record{}, err
	}
	defer release()
	found := func(v []byte) error {
		if v == nil {
			return fmt.Errorf("%w: %s/%q", ErrNotFound, table, key)
		}
		rev, payload, err := unseal(table, key, v)
		rec = Record{Key: clone(key), Value: clone(payload), Rev: rev}
		return err
	}
	if v, ok := b.recent(table.index(), key); ok {
		err = found(v)
	} else {
		err = b.view(table, func(tx *bbolt.Tx) error { return found(valueOf(tx, table, key)) })
	}
	if err != nil {
		return Record{}, err
	}
	return rec, nil
}

// recent returns the sealed value of a record (nil: it was removed) that bbolt's file
// may not have yet. One that was never there is not found.
func (b *Bolt) recent(t int, key []byte) (sealed []byte, found bool) {
	b.layers.RLock()
	defer b.layers.RUnlock()
	if sealed, found = b.newest.get(t, key); !found {
		sealed, found = b.older.get(t, key)
	}
	return sealed, found
}

// Range implements Store.
func (b *Bolt) Range(ctx context.Context, table Table, from, to []byte, limit int, fn func(Record) error) error {
	release, err := b.use(ctx)
	if err != nil {
		return err
	}
	defer release()
	return b.read([]Table{table}, from, to, func(tx *bbolt.Tx, news [][]change, _ uint64) error {
		return scan(ctx, tx, table, news[0], from, to, limit, fn)
	})
}

// read runs fn on what the store holds at one moment: a transaction of bbolt, what
// is to be laid over from <= key < to of each table, and the last commit in both.
func (b *Bolt) read(of []Table, from, to []byte, fn func(tx *bbolt.Tx, news [][]change, lsn uint64) error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for _, t := range of {
		if !t.Known() {
			return fmt.Errorf("%w: no table %q", ErrInvalid, string(t))
		}
	}
	var news [][]change
	var lsn uint64
	tx, err := b.begin(func(newest, older *overlay) {
		for _, t := range of {
			news = append(news, collect(t.index(), from, to, newest, older))
		}
		if lsn = newest.lsn; lsn == 0 && older != nil {
			lsn = older.lsn
		}
	})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(tx, news, max(lsn, ownLSN(tx)))
}

// begin starts a transaction that reads, and shows fn what is to be laid over it.
func (b *Bolt) begin(fn func(newest, older *overlay)) (*bbolt.Tx, error) {
	b.layers.RLock()
	defer b.layers.RUnlock()
	fn(b.newest, b.older)
	return b.db.Begin(false)
}

// scan is the one loop over records: those of the file and, in their places, those
// that are laid over them. It recovers a fault of the file but not a panic of fn, which
// is the caller's.
func scan(ctx context.Context, tx *bbolt.Tx, t Table, news []change, from, to []byte, limit int, fn func(Record) error) error {
	advance := fileRecords(tx, t, from, to)
	old, err := advance()
	for n, steps := 0, 0; limit <= 0 || n < limit; steps++ {
		if err == nil && steps%256 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rec := old
		if len(news) > 0 && (old.Key == nil || bytes.Compare(news[0].key, old.Key) <= 0) {
			replaced := bytes.Equal(news[0].key, old.Key)
			rec, err = news[0].record(t)
			news = news[1:]
			if err == nil && replaced {
				old, err = advance()
			}
			if err != nil || rec.Rev == 0 {
				continue // damaged, or removed
			}
		} else if old.Key != nil {
			old, err = advance()
		} else {
			return nil
		}
		if fnErr := fn(rec); fnErr != nil {
			return fnErr
		}
		n++
	}
	return nil
}

// record returns the record after a change, without a revision if it was removed.
func (c *change) record(t Table) (Record, error) {
	if c.sealed == nil {
		return Record{}, nil
	}
	rev, payload, err := unseal(t, c.key, c.sealed)
	return Record{Key: c.key, Value: payload, Rev: rev}, err
}

// fileRecords returns what returns the file's records one by one; without a key:
// there is no more.
func fileRecords(tx *bbolt.Tx, t Table, from, to []byte) func() (Record, error) {
	bucket := tx.Bucket([]byte(t))
	if bucket == nil { // a damaged file
		return func() (Record, error) { return Record{}, nil }
	}
	c := bucket.Cursor()
	next := func() ([]byte, []byte) { return c.Seek(from) }
	if len(from) == 0 {
		next = c.First
	}
	return func() (Record, error) {
		rec, err := step(t, next)
		if err != nil || rec.Key == nil || (to != nil && bytes.Compare(rec.Key, to) >= 0) {
			next = func() ([]byte, []byte) { return nil, nil }
			return Record{}, err
		}
		next = c.Next
		return rec, nil
	}
}

func step(t Table, next func() ([]byte, []byte)) (rec Record, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &CorruptError{Table: t, Reason: fmt.Sprintf("cannot be read (%v)", r)}
		}
	}()
	k, v := next()
	if k == nil {
		return Record{}, nil
	}
	rev, payload, err := unseal(t, k, v)
	return Record{Key: k, Value: payload, Rev: rev}, err
}

// view runs a read transaction of the file whose function only reads.
func (b *Bolt) view(where Table, fn func(*bbolt.Tx) error) error {
	return guarded(where, func() error { return b.db.View(fn) })
}

// guarded runs what only reads: what it panics with is the file's fault.
func guarded(where Table, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &CorruptError{Table: where, Reason: fmt.Sprintf("cannot be read (%v)", r)}
		}
	}()
	return fn()
}

func ownLSN(tx *bbolt.Tx) uint64 {
	if v := tx.Bucket(own).Get(lsnKey); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func putLSN(tx *bbolt.Tx, lsn uint64) error {
	return tx.Bucket(own).Put(lsnKey, binary.BigEndian.AppendUint64(nil, lsn))
}

func valueOf(tx *bbolt.Tx, t Table, key []byte) []byte {
	bucket := tx.Bucket([]byte(t))
	if bucket == nil {
		return nil
	}
	return bucket.Get(key)
}
