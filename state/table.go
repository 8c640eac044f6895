package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// Table ties a table of memdb to the durable one that it indexes. Records of type R are written as JSON under their
// id. Declare it as a variable of the package that owns it, and register it in that package's Module. Reads take a
// View and never wait; what they return is shared and must not be changed. Writes are part of the command whose
// transaction they take.
type Table[R any] struct {
	Name journal.Table
	ID   func(*R) string
	// Encode writes a record that changes with every request. encoding/json must read what it writes, and writes the
	// records of a table without it.
	Encode func(*R) []byte
	// Expires returns the time from which a record may be swept, or the zero time for a record that stays. The records
	// of a table without it stay.
	Expires func(*R) time.Time
	// Audit, if set, has changes of the records recorded in the audit log.
	Audit *Audit[R]
	// Indexes are those beside the one by id. Each costs 500 bytes and 10 µs a row.
	Indexes map[string]Index[R]
	// Grouped has rows take 320 bytes less in memory. Such a table has neither Expires nor Indexes, and it is read by
	// Get, All, Changed and Uncommitted only.
	Grouped bool
	// Compact, if set, makes a record of a Grouped table smaller when it is loaded. It may take over equal parts of the
	// record before, which may be nil, because commands modify no part of a record in place.
	Compact func(r, before *R)
}

// Index finds rows by a key that is made of their records.
type Index[R any] struct {
	// Key returns the key of a record, or nil for a record that is not in the index. memdb appends to the keys of an
	// index that is not unique, so those must be made for it.
	Key func(*R) []byte
	// Unique says that no two records have one key. memdb does not enforce it, so a command looks before it writes.
	Unique bool
}

// Row is a record in memory. It is never changed after it was inserted.
type Row[R any] struct {
	Rec R
	rev uint64 // the durable record's revision
}

// Record returns the record, and false for a nil row.
func (r *Row[R]) Record() (rec R, found bool) {
	if r == nil {
		return rec, false
	}
	return r.Rec, true
}

// ByID is the name of the index that every table has.
const ByID = "id"

const byExpiry = "expires"

func (t *Table[R]) name() string { return string(t.Name) }

func (t *Table[R]) durableTable() journal.Table { return t.Name }

func (t *Table[R]) audited() bool { return t.Audit != nil }

// schema returns the indexes of the table in memory: by id, by the minute of expiry, and the
// table's own ones.
func (t *Table[R]) schema() *memdb.TableSchema {
	indexes := map[string]*memdb.IndexSchema{
		ByID: {Name: ByID, Unique: true, Indexer: indexer[R](func(r *R) []byte { return TextKey(t.ID(r)) })},
	}
	if t.Grouped {
		indexes = groupIndexes[R]()
	}
	if t.Expires != nil {
		indexes[byExpiry] = &memdb.IndexSchema{
			Name: byExpiry, AllowMissing: true,
			Indexer: indexer[R](func(r *R) []byte {
				if at := t.Expires(r); !at.IsZero() {
					return MinuteKey(at)
				}
				return nil
			}),
		}
	}
	for name, index := range t.Indexes {
		indexes[name] = &memdb.IndexSchema{
			Name: name, Unique: index.Unique, AllowMissing: true, Indexer: indexer[R](index.Key),
		}
	}
	return &memdb.TableSchema{Name: t.name(), Indexes: indexes}
}

// decode makes a row of a durable record. The error is a *journal.CorruptError if the record is not the JSON of an R,
// or if it has another id than its key.
func (t *Table[R]) decode(rec journal.Record) (any, error) {
	r := &Row[R]{rev: rec.Rev}
	if err := json.Unmarshal(rec.Value, &r.Rec); err != nil {
		return nil, &journal.CorruptError{
			Table: t.Name, Key: bytes.Clone(rec.Key), Reason: fmt.Sprintf("is not what it should be (%v)", err),
		}
	}
	if t.ID(&r.Rec) != string(rec.Key) {
		return nil, &journal.CorruptError{Table: t.Name, Key: bytes.Clone(rec.Key), Reason: "has another record's id"}
	}
	return r, nil
}

// row returns the row with an id, or nil.
func (t *Table[R]) row(txn *memdb.Txn, id string) (any, error) {
	if t.Grouped {
		r, err := t.grouped(txn, id)
		if r == nil {
			return nil, err // without the type of a row
		}
		return r, nil
	}
	return txn.First(t.name(), ByID, TextKey(id))
}

// insert adds a row to memdb or replaces the one with its id.
func (t *Table[R]) insert(txn *memdb.Txn, row any) error {
	if t.Grouped {
		return t.insertGrouped(txn, row.(*Row[R]))
	}
	return txn.Insert(t.name(), row)
}

// remove takes the row with the id of row out of memdb.
func (t *Table[R]) remove(txn *memdb.Txn, row any) error {
	if t.Grouped {
		return t.removeGrouped(txn, row.(*Row[R]))
	}
	return txn.Delete(t.name(), row)
}

// load adds rows to a table that is being loaded. They are in the order of their ids and behind those of earlier calls.
func (t *Table[R]) load(txn *memdb.Txn, rows []any) error {
	if t.Grouped {
		return t.loadGrouped(txn, rows)
	}
	for _, r := range rows {
		if err := txn.Insert(t.name(), r); err != nil {
			return err
		}
	}
	return nil
}

// Get returns the row with an id, or nil.
func (t *Table[R]) Get(v View, id string) *Row[R] {
	raw, _ := t.row(v.txn, id) // the error can be ignored as in First
	r, _ := raw.(*Row[R])
	return r
}

// First returns the first row that an index has under a key, or nil. A unique index takes whole keys, any other one
// prefixes. All reads here ignore memdb's error, because it can only mean that there is no such table or index, which
// would have been found when the state was opened.
func (t *Table[R]) First(v View, index string, key []byte) *Row[R] {
	raw, err := v.txn.First(t.name(), index, key)
	if err != nil || raw == nil {
		return nil
	}
	return raw.(*Row[R])
}

// From calls yield with the rows of an index from a key on, in order, until it returns false.
func (t *Table[R]) From(v View, index string, key []byte, yield func(*Row[R]) bool) {
	it, err := v.txn.LowerBound(t.name(), index, key)
	if err == nil {
		iterate(it, yield)
	}
}

// Back calls yield with the rows of an index from a key on backwards until it returns false.
func (t *Table[R]) Back(v View, index string, key []byte, yield func(*Row[R]) bool) {
	it, err := v.txn.ReverseLowerBound(t.name(), index, key)
	if err == nil {
		iterate(it, yield)
	}
}

// iterate calls yield for each row until it returns false.
func iterate[R any](it memdb.ResultIterator, yield func(*Row[R]) bool) {
	for raw := it.Next(); raw != nil; raw = it.Next() {
		if !yield(raw.(*Row[R])) {
			return
		}
	}
}

// All returns the records of the table in the order of their ids.
func (t *Table[R]) All(v View) iter.Seq[*R] {
	return func(yield func(*R) bool) {
		each := func(r *Row[R]) bool { return yield(&r.Rec) }
		if t.Grouped {
			t.eachGrouped(v.txn, each)
			return
		}
		t.From(v, ByID, nil, each)
	}
}

// Under returns the rows whose keys in an index begin with prefix, in order, as they are now. Changes that the caller
// makes meanwhile do not matter.
func (t *Table[R]) Under(v View, index string, prefix []byte) []*Row[R] {
	it, err := v.txn.Get(t.name(), index, prefix)
	if err != nil {
		return nil
	}
	var found []*Row[R]
	iterate(it, func(r *Row[R]) bool {
		found = append(found, r)
		return true
	})
	return found
}

// List returns the records whose keys in an index begin with prefix, in order.
func (t *Table[R]) List(v View, index string, prefix []byte) []R {
	var found []R
	for _, r := range t.Under(v, index, prefix) {
		found = append(found, r.Rec)
	}
	return found
}

// Last returns the row with the greatest id, or nil.
func (t *Table[R]) Last(v View) *Row[R] {
	raw, err := v.txn.Last(t.name(), ByID)
	if err != nil || raw == nil {
		return nil
	}
	return raw.(*Row[R])
}

// Watch returns a channel that is closed when the row with an id may have changed since the view was taken. The row
// need not exist yet.
func (t *Table[R]) Watch(v View, id string) <-chan struct{} {
	changed, _, err := v.txn.FirstWatch(t.name(), ByID, TextKey(id))
	if err != nil {
		return nil
	}
	return changed
}

// WatchUnder returns a channel that is closed when a row whose key in an index begins with prefix may have changed,
// come or left since the view was taken.
func (t *Table[R]) WatchUnder(v View, index string, prefix []byte) <-chan struct{} {
	it, err := v.txn.Get(t.name(), index, prefix)
	if err != nil {
		return nil
	}
	return it.WatchCh()
}

// Changed returns the records before and after each change that earlier commands of this commit group have made. The
// commands of a group are committed together, so no View outside the group shows these changes yet. The record before
// is nil if the change created it, and the record after is nil if the change removed it.
func (t *Table[R]) Changed(tx *Tx) iter.Seq2[*R, *R] { return t.changes(tx.done) }

// Uncommitted returns the changes that Changed returns, followed by those of the running command itself.
func (t *Table[R]) Uncommitted(tx *Tx) iter.Seq2[*R, *R] { return t.changes(tx.done, tx.log) }

// changes yields the records of this table before and after each change in lists. One of the two is
// nil if the change created or removed the record.
func (t *Table[R]) changes(lists ...[]change) iter.Seq2[*R, *R] {
	return func(yield func(before, after *R) bool) {
		for _, list := range lists {
			for _, c := range list {
				if c.table == t.name() && !yield(recordIn[R](c.before), recordIn[R](c.after)) {
					return
				}
			}
		}
	}
}

// Expired returns at most limit rows that have expired, in the order of the minutes in which they did. The index knows
// only the minute, so the exact time of each row is compared as well.
func (t *Table[R]) Expired(v View, limit int) []*Row[R] {
	var found []*Row[R]
	if limit <= 0 {
		return nil
	}
	t.From(v, byExpiry, nil, func(r *Row[R]) bool {
		at := t.Expires(&r.Rec)
		if !v.now.Before(at) {
			found = append(found, r)
		}
		return len(found) < limit && at.Unix()/60 <= v.now.Unix()/60
	})
	return found
}

// hasExpired reports whether a row may be swept at a time.
func (t *Table[R]) hasExpired(r *Row[R], now time.Time) bool {
	if t.Expires == nil {
		return false
	}
	at := t.Expires(&r.Rec)
	return !at.IsZero() && !now.Before(at)
}

// sweep removes at most limit expired rows and returns how many.
func (t *Table[R]) sweep(tx *Tx, limit int) int {
	expired := t.Expired(tx.View(), limit)
	for _, r := range expired {
		t.Remove(tx, r)
	}
	return len(expired)
}

// Put writes a record as part of the running command. The error is that the record has no JSON form, or ErrUnavailable
// while another node is of an older version that does not know the table.
func (t *Table[R]) Put(tx *Tx, rec R) error {
	if f := t.Name.Format(); f > 1 {
		if shared := tx.shared(); shared != nil && shared.Format < f {
			return fmt.Errorf("%w: not all nodes are of a version that knows %s", ErrUnavailable, t.name())
		}
	}
	id := t.ID(&rec)
	value, err := t.marshal(&rec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	after := &Row[R]{Rec: rec, rev: 1}
	change := change{table: t.name(), after: after}
	rev := uint64(0)
	if before := t.Get(tx.View(), id); before != nil {
		change.before = before
		rev = before.rev
		after.rev = rev + 1
	}
	tx.write(change)
	if t.Audit != nil {
		tx.auditRow(t, record{t.Name, id}, change)
	}
	tx.expect(t.Name, id, rev)
	tx.Op(journal.Op{Kind: journal.Put, Table: t.Name, Key: []byte(id), Value: value})
	return nil
}

// marshal returns a record as it is stored.
func (t *Table[R]) marshal(rec *R) ([]byte, error) {
	if t.Encode != nil {
		return t.Encode(rec), nil
	}
	return json.Marshal(rec)
}

// Remove deletes a row as part of the running command. The removal of an expired row is not audited.
func (t *Table[R]) Remove(tx *Tx, r *Row[R]) {
	id := t.ID(&r.Rec)
	change := change{table: t.name(), before: r}
	tx.write(change)
	if t.Audit != nil && !t.hasExpired(r, tx.now) { // an expired record has no effect, so its removal is no change
		tx.auditRow(t, record{t.Name, id}, change)
	}
	tx.expect(t.Name, id, r.rev)
	tx.Op(journal.Op{Kind: journal.Delete, Table: t.Name, Key: []byte(id)})
}

// Unload takes a row out of memory as part of the running command. Its record stays in the durable store.
func (t *Table[R]) Unload(tx *Tx, r *Row[R]) { tx.write(change{table: t.name(), before: r}) }

// indexer is an indexer of memdb without its reflection. A nil key leaves the row out of the index.
type indexer[R any] func(*R) []byte

// FromObject implements memdb.SingleIndexer.
func (f indexer[R]) FromObject(raw any) (bool, []byte, error) {
	r, ok := raw.(*Row[R])
	if !ok {
		return false, nil, fmt.Errorf("a %T in a table of %T", raw, r)
	}
	key := f(&r.Rec)
	return key != nil, key, nil
}

// FromArgs implements memdb.Indexer. It takes the finished key.
func (f indexer[R]) FromArgs(args ...any) ([]byte, error) {
	if len(args) == 1 {
		if key, ok := args[0].([]byte); ok {
			return key, nil
		}
	}
	return nil, fmt.Errorf("an index needs one key, not %v", args)
}
