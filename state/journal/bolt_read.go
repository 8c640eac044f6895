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

// read runs fn on what the store holds at one moment. fn gets a read transaction of bbolt's file,
// for each table the changes in from <= key < to that the file does not have yet (scan merges
// both), and the number of the last commit.
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

// begin starts a read transaction of the file and passes fn the overlays that belong to it. Both
// happen under one lock, since otherwise a checkpoint could end in between, and a change would be
// in neither.
func (b *Bolt) begin(fn func(newest, older *overlay)) (*bbolt.Tx, error) {
	b.layers.RLock()
	defer b.layers.RUnlock()
	fn(b.newest, b.older)
	return b.db.Begin(false)
}

// scan is the only loop over records. It merges two sorted sequences: the records of the file, and
// the newer changes, which replace, remove or come between them. It recovers from a fault of the
// file but not from a panic of fn, which is an error of the caller.
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

// fileRecords returns an iterator over the records of the file with from <= key < to. Each call
// returns the next record, and one without a key after the last.
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

// step moves a cursor with next and decodes the record there. bbolt panics on a damaged page, which
// becomes a CorruptError here.
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

// view runs fn in a read transaction of bbolt's file. It does not see the overlays.
func (b *Bolt) view(where Table, fn func(*bbolt.Tx) error) error {
	return guarded(where, func() error { return b.db.View(fn) })
}

// guarded runs fn, which must only read, and returns a panic of it as a CorruptError: bbolt panics
// on damaged pages, and a page that the disk cannot deliver is a memory fault, because the file is
// mapped.
func guarded(where Table, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &CorruptError{Table: where, Reason: fmt.Sprintf("cannot be read (%v)", r)}
		}
	}()
	return fn()
}

// ownLSN returns the number of the last commit in the file. Those after it are in the redo log.
func ownLSN(tx *bbolt.Tx) uint64 {
	if v := tx.Bucket(own).Get(lsnKey); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// putLSN notes the number of the last commit in the transaction that puts the commits into the
// file, so that both are durable together.
func putLSN(tx *bbolt.Tx, lsn uint64) error {
	return tx.Bucket(own).Put(lsnKey, binary.BigEndian.AppendUint64(nil, lsn))
}

// valueOf returns a sealed value of the file, or nil. A table is missing only in a damaged file.
func valueOf(tx *bbolt.Tx, t Table, key []byte) []byte {
	bucket := tx.Bucket([]byte(t))
	if bucket == nil {
		return nil
	}
	return bucket.Get(key)
}
