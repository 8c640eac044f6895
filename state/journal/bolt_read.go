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
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var lsn LSN
	err = b.db.View(func(tx *bbolt.Tx) error {
		lsn = LSN(ownLSN(tx))
		for _, t := range tables {
			each := func(rec Record) error { return fn(t, rec) }
			if err := scan(ctx, tx, t, nil, nil, 0, each); err != nil {
				return err
			}
		}
		return nil
	})
	return lsn, err
}

// Get implements Store.
func (b *Bolt) Get(ctx context.Context, table Table, key []byte) (rec Record, err error) {
	if err := checkKey(table, key); err != nil {
		return Record{}, err
	}
	release, err := b.use(ctx)
	if err != nil {
		return Record{}, err
	}
	defer release()
	err = b.view(table, func(tx *bbolt.Tx) error {
		v := valueOf(tx, table, key)
		if v == nil {
			return fmt.Errorf("%w: %s/%q", ErrNotFound, table, key)
		}
		rev, payload, err := unseal(table, key, v)
		rec = Record{Key: clone(key), Value: clone(payload), Rev: rev}
		return err
	})
	if err != nil {
		return Record{}, err
	}
	return rec, nil
}

// Range implements Store.
func (b *Bolt) Range(ctx context.Context, table Table, from, to []byte, limit int, fn func(Record) error) error {
	release, err := b.use(ctx)
	if err != nil {
		return err
	}
	defer release()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return b.db.View(func(tx *bbolt.Tx) error { return scan(ctx, tx, table, from, to, limit, fn) })
}

// Changes implements Store: the lock on the file lets nobody else write.
func (b *Bolt) Changes(ctx context.Context, _ LSN, _ func(Change) error) (LSN, error) {
	release, err := b.use(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	return LSN(b.lsn.Load()), nil
}

// scan is the one loop over records. A fault of the file is told apart from a
// panic of fn, which is the caller's.
func scan(ctx context.Context, tx *bbolt.Tx, t Table, from, to []byte, limit int, fn func(Record) error) error {
	if !t.known() {
		return fmt.Errorf("%w: no table %q", ErrInvalid, string(t))
	}
	bucket := tx.Bucket([]byte(t))
	if bucket == nil {
		return nil // an older store that is only read
	}
	c := bucket.Cursor()
	next := func() ([]byte, []byte) { return c.Seek(from) }
	if len(from) == 0 {
		next = c.First
	}
	for n := 0; limit <= 0 || n < limit; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec, err := step(t, next)
		if err != nil {
			return err
		}
		if rec.Key == nil || (to != nil && bytes.Compare(rec.Key, to) >= 0) {
			return nil
		}
		if err := fn(rec); err != nil {
			return err
		}
		next = c.Next
	}
	return nil
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

// view runs a read transaction whose function only reads: what it panics with is
// the file's fault.
func (b *Bolt) view(where Table, fn func(*bbolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &CorruptError{Table: where, Reason: fmt.Sprintf("cannot be read (%v)", r)}
		}
	}()
	return b.db.View(fn)
}

func ownLSN(tx *bbolt.Tx) uint64 {
	if v := tx.Bucket(own).Get(lsnKey); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func valueOf(tx *bbolt.Tx, t Table, key []byte) []byte {
	bucket := tx.Bucket([]byte(t))
	if bucket == nil {
		return nil
	}
	return bucket.Get(key)
}
