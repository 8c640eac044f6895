package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// table ties a table of memdb to the durable one that it indexes. Records of
// type R are written as JSON under their id.
type table[R any] struct {
	durable journal.Table
	id      func(*R) string
	// encode writes a record that changes with every request; nil: encoding/json.
	// What it writes encoding/json reads.
	encode func(*R) []byte
	// expires is when a record may be swept; nil: its records stay. The zero
	// time is never.
	expires func(*R) time.Time
	// more are the indexes beside the one by id. Each costs 500 bytes and 10 µs
	// a row; memdb does not enforce that one is unique, so whoever writes looks
	// first.
	more map[string]*memdb.IndexSchema
}

// row is what memdb holds. It is never changed after it was inserted.
type row[R any] struct {
	rec R
	rev uint64 // the durable record's revision
}

const (
	byID     = "id"
	byExpiry = "expires"
)

func (t *table[R]) name() string { return string(t.durable) }

func (t *table[R]) durableTable() journal.Table { return t.durable }

func (t *table[R]) schema() *memdb.TableSchema {
	indexes := map[string]*memdb.IndexSchema{
		byID: {Name: byID, Unique: true, Indexer: index[R](func(r *R) []byte { return terminated(t.id(r)) })},
	}
	if t.expires != nil {
		indexes[byExpiry] = &memdb.IndexSchema{Name: byExpiry, AllowMissing: true, Indexer: index[R](func(r *R) []byte {
			if at := t.expires(r); !at.IsZero() {
				return minute(at)
			}
			return nil
		})}
	}
	for name, schema := range t.more {
		indexes[name] = schema
	}
	return &memdb.TableSchema{Name: t.name(), Indexes: indexes}
}

// load puts a durable record into the transaction of Open.
func (t *table[R]) load(txn *memdb.Txn, rec journal.Record) error {
	r, err := t.decode(rec)
	if err != nil {
		return err
	}
	return txn.Insert(t.name(), r)
}

// decode makes a row of a durable record.
func (t *table[R]) decode(rec journal.Record) (any, error) {
	r := &row[R]{rev: rec.Rev}
	if err := json.Unmarshal(rec.Value, &r.rec); err != nil {
		return nil, &journal.CorruptError{Table: t.durable, Key: bytes.Clone(rec.Key), Reason: fmt.Sprintf("is not what it should be (%v)", err)}
	}
	if t.id(&r.rec) != string(rec.Key) {
		return nil, &journal.CorruptError{Table: t.durable, Key: bytes.Clone(rec.Key), Reason: "has another record's id"}
	}
	return r, nil
}

func (t *table[R]) get(txn *memdb.Txn, id string) *row[R] {
	return t.first(txn, byID, terminated(id))
}

// first finds by an index. memdb's error means that there is no such table or
// index, which schema() settles at start.
func (t *table[R]) first(txn *memdb.Txn, index string, key []byte) *row[R] {
	raw, err := txn.First(t.name(), index, key)
	if err != nil || raw == nil {
		return nil
	}
	return raw.(*row[R])
}

// from iterates over an index beginning at key, in order, until yield says stop.
func (t *table[R]) from(txn *memdb.Txn, index string, key []byte, yield func(*row[R]) bool) {
	it, err := txn.LowerBound(t.name(), index, key)
	if err != nil {
		return
	}
	for raw := it.Next(); raw != nil; raw = it.Next() {
		if !yield(raw.(*row[R])) {
			return
		}
	}
}

// under returns the rows whose index keys begin with prefix, in order, as they
// are now: what the caller changes meanwhile does not matter.
func (t *table[R]) under(txn *memdb.Txn, index string, prefix []byte) []*row[R] {
	it, err := txn.Get(t.name(), index, prefix)
	if err != nil {
		return nil
	}
	var found []*row[R]
	for raw := it.Next(); raw != nil; raw = it.Next() {
		found = append(found, raw.(*row[R]))
	}
	return found
}

// last is the row with the greatest id.
func (t *table[R]) last(txn *memdb.Txn) *row[R] {
	raw, err := txn.Last(t.name(), byID)
	if err != nil || raw == nil {
		return nil
	}
	return raw.(*row[R])
}

// expired returns at most limit rows whose time has come, first ones first. They
// are found by minute and then looked at.
func (t *table[R]) expired(txn *memdb.Txn, now time.Time, limit int) []*row[R] {
	var found []*row[R]
	if limit <= 0 {
		return nil
	}
	t.from(txn, byExpiry, nil, func(r *row[R]) bool {
		at := t.expires(&r.rec)
		if !now.Before(at) {
			found = append(found, r)
		}
		return len(found) < limit && at.Unix()/60 <= now.Unix()/60
	})
	return found
}

// sweep removes at most limit expired rows and tells how many.
func (t *table[R]) sweep(tx *Tx, limit int) int {
	doomed := t.expired(tx.mem, tx.now, limit)
	for _, r := range doomed {
		t.remove(tx, r)
	}
	return len(doomed)
}

// put writes rec as part of the running command.
func (t *table[R]) put(tx *Tx, rec R) error {
	id := t.id(&rec)
	value, err := t.marshal(&rec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	after := &row[R]{rec: rec, rev: 1}
	change := change{table: t.name(), after: after}
	rev := uint64(0)
	if before := t.get(tx.mem, id); before != nil {
		change.before = before
		rev = before.rev
		after.rev = rev + 1
	}
	tx.write(change)
	tx.expect(t.durable, id, rev)
	tx.op(journal.Op{Kind: journal.Put, Table: t.durable, Key: []byte(id), Value: value})
	return nil
}

func (t *table[R]) marshal(rec *R) ([]byte, error) {
	if t.encode != nil {
		return t.encode(rec), nil
	}
	return json.Marshal(rec)
}

// remove deletes a row as part of the running command.
func (t *table[R]) remove(tx *Tx, r *row[R]) {
	id := t.id(&r.rec)
	tx.write(change{table: t.name(), before: r})
	tx.expect(t.durable, id, r.rev)
	tx.op(journal.Op{Kind: journal.Delete, Table: t.durable, Key: []byte(id)})
}

// index is an indexer of memdb without its reflection. A nil key leaves the row
// out of the index, if that allows missing ones. memdb appends to the keys of
// indexes that are not unique, so those must be made for it.
type index[R any] func(*R) []byte

func (f index[R]) FromObject(raw any) (bool, []byte, error) {
	r, ok := raw.(*row[R])
	if !ok {
		return false, nil, fmt.Errorf("a %T in a table of %T", raw, r)
	}
	key := f(&r.rec)
	return key != nil, key, nil
}

// FromArgs takes the finished key.
func (f index[R]) FromArgs(args ...any) ([]byte, error) {
	if len(args) == 1 {
		if key, ok := args[0].([]byte); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("an index wants one key, not %v", args)
}

// terminated is a string as index key. The NUL keeps one id from being the
// beginning of another.
func terminated(s string) []byte {
	key := make([]byte, len(s)+1)
	copy(key, s)
	return key
}

// number is a numeric id as durable key: of one length, so that it sorts.
func number(id int64) string {
	var digits [19]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = '0' + byte(id%10)
		id /= 10
	}
	return string(digits[:])
}

// numbers are numeric ids as index key.
func numbers(ids ...int64) []byte {
	key := make([]byte, 0, 8*len(ids)+maxID) // room for what memdb appends
	for _, id := range ids {
		key = binary.BigEndian.AppendUint64(key, uint64(id))
	}
	return key
}

// hashIndex is a unique index by the first half of a hash: enough to find the
// row, so that how long the search took tells nothing of the other half, which
// the finder compares in constant time.
func hashIndex[R any](of func(*R) *Hash) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: byHash, Unique: true, Indexer: index[R](func(r *R) []byte { return of(r)[:indexed] })}
}

const indexed = len(Hash{}) / 2

// byHash finds the row with a hash, by a hashIndex over the same field.
func (t *table[R]) byHash(txn *memdb.Txn, h Hash, of func(*R) *Hash) *row[R] {
	r := t.first(txn, byHash, h[:indexed])
	if r == nil || !of(&r.rec).Equal(h) {
		return nil
	}
	return r
}

// takes refuses a record whose hash another one has already.
func (t *table[R]) takes(txn *memdb.Txn, rec *R, of func(*R) *Hash) error {
	if *of(rec) == (Hash{}) {
		return fmt.Errorf("%w: a record in %s has no hash", ErrInvalid, t.name())
	}
	other := t.first(txn, byHash, of(rec)[:indexed])
	if other != nil && t.id(&other.rec) != t.id(rec) {
		return fmt.Errorf("a hash in %s: %w", t.name(), ErrExists)
	}
	return nil
}

// minute is a time as index key: coarse, because it only finds what to look at.
func minute(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(t.Unix(), 0))/60)
}
