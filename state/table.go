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

const byID = "id"

func (t *table[R]) name() string { return string(t.durable) }

func (t *table[R]) durableTable() journal.Table { return t.durable }

func (t *table[R]) schema() *memdb.TableSchema {
	indexes := map[string]*memdb.IndexSchema{
		byID: {Name: byID, Unique: true, Indexer: index[R](func(r *R) []byte { return terminated(t.id(r)) })},
	}
	for name, schema := range t.more {
		indexes[name] = schema
	}
	return &memdb.TableSchema{Name: t.name(), Indexes: indexes}
}

// load puts a durable record into the transaction of Open.
func (t *table[R]) load(txn *memdb.Txn, rec journal.Record) error {
	r := &row[R]{rev: rec.Rev}
	if err := json.Unmarshal(rec.Value, &r.rec); err != nil {
		return &journal.CorruptError{Table: t.durable, Key: bytes.Clone(rec.Key), Reason: fmt.Sprintf("is not what it should be (%v)", err)}
	}
	if t.id(&r.rec) != string(rec.Key) {
		return &journal.CorruptError{Table: t.durable, Key: bytes.Clone(rec.Key), Reason: "has another record's id"}
	}
	return txn.Insert(t.name(), r)
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

// put writes rec as part of the running command.
func (t *table[R]) put(tx *Tx, rec R) error {
	id := t.id(&rec)
	value, err := json.Marshal(&rec)
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

// remove deletes a row as part of the running command.
func (t *table[R]) remove(tx *Tx, r *row[R]) {
	id := t.id(&r.rec)
	tx.write(change{table: t.name(), before: r})
	tx.expect(t.durable, id, r.rev)
	tx.op(journal.Op{Kind: journal.Delete, Table: t.durable, Key: []byte(id)})
}

// index is an indexer of memdb without its reflection. A nil key leaves the row
// out of the index.
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
func terminated(s string) []byte { return append([]byte(s), 0) }

// minute is a time as index key: coarse, because it only finds what to look at.
func minute(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(t.Unix(), 0))/60)
}
