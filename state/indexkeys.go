package state

import (
	"encoding/binary"
	"fmt"
	"time"
)

// TextKey returns a text as a key of an index. It ends with a NUL, which keeps one text from being the beginning of
// another.
func TextKey(s string) []byte {
	key := make([]byte, len(s)+1)
	copy(key, s)
	return key
}

// NumberID returns a numeric id as a durable key. All have one length, so that they sort.
func NumberID(id int64) string {
	var digits [19]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = '0' + byte(id%10)
		id /= 10
	}
	return string(digits[:])
}

// NumberKey returns numeric ids as a key of an index.
func NumberKey(ids ...int64) []byte {
	key := make([]byte, 0, 8*len(ids)+MaxID) // room for what memdb appends
	for _, id := range ids {
		key = binary.BigEndian.AppendUint64(key, uint64(id))
	}
	return key
}

// MinuteKey returns a time as a key of an index. It is coarse, because it only finds the rows to be looked at.
func MinuteKey(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(t.Unix(), 0))/60)
}

// SequenceKey returns a sequence number as a durable key. The keys are in the order of the numbers.
func SequenceKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// SequenceOf returns the number of a key that SequenceKey made.
func SequenceOf(key []byte) uint64 { return binary.BigEndian.Uint64(key) }

// ByHash is the name of an index by HashIndex.
const ByHash = "hash"

// HashIndex returns a unique index by the first half of a hash. That is enough to find the row, and the time that the
// search takes says nothing of the other half, which FindHash compares in constant time.
func HashIndex[R any](of func(*R) *Hash) Index[R] {
	return Index[R]{Unique: true, Key: func(r *R) []byte { return of(r)[:indexed] }}
}

const indexed = len(Hash{}) / 2

// FindHash returns the row with a hash, or nil. The table has a HashIndex over the same field under ByHash.
func (t *Table[R]) FindHash(v View, h Hash, of func(*R) *Hash) *Row[R] {
	r := t.First(v, ByHash, h[:indexed])
	if r == nil || !of(&r.Rec).Equal(h) {
		return nil
	}
	return r
}

// CheckHash refuses a record without a hash (ErrInvalid), and one with the hash of another record (ErrExists).
func (t *Table[R]) CheckHash(v View, rec *R, of func(*R) *Hash) error {
	if *of(rec) == (Hash{}) {
		return fmt.Errorf("%w: a record in %s has no hash", ErrInvalid, t.name())
	}
	other := t.First(v, ByHash, of(rec)[:indexed])
	if other != nil && t.ID(&other.Rec) != t.ID(rec) {
		return fmt.Errorf("a hash in %s: %w", t.name(), ErrExists)
	}
	return nil
}
