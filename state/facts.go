package state

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"strings"
	"time"

	"stagedoor/state/journal"
)

// fact is a small thing that the installation knows about itself. Facts are the only table of this package, because
// every module has some and none of them is worth a table of its own.
type fact struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// facts holds single values under names, such as the numbers of the audit log and the installation's sealing secret.
var facts = Table[fact]{
	Name: journal.Meta,
	ID:   func(f *fact) string { return f.Name },
}

// Fact returns the value of a fact. It is shared and must not be changed.
func (v View) Fact(name string) (value []byte, found bool) {
	f, found := facts.Get(v, name).Record()
	return f.Value, found
}

// Facts returns the facts whose names begin with prefix, in the order of their names.
func (v View) Facts(prefix string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		facts.From(v, ByID, TextKey(prefix), func(r *Row[fact]) bool {
			return strings.HasPrefix(r.Rec.Name, prefix) && yield(r.Rec.Name, r.Rec.Value)
		})
	}
}

// NumberFact returns the value of a fact that PutNumberFact has kept, or 0.
func (v View) NumberFact(name string) uint64 {
	if value, _ := v.Fact(name); len(value) == 8 {
		return SequenceOf(value)
	}
	return 0
}

// PutFact keeps a fact. It replaces a fact of the same name. A fact is for a single value that has no table: it is held
// in memory as long as the state is open.
func (tx *Tx) PutFact(name string, value []byte) error {
	return facts.Put(tx, fact{Name: name, Value: value})
}

// PutNumberFact keeps a number as a fact.
func (tx *Tx) PutNumberFact(name string, n uint64) error { return tx.PutFact(name, SequenceKey(n)) }

// TimeFact returns the value of a fact that PutTimeFact has kept. A damaged one is the zero time.
func (v View) TimeFact(name string) (at time.Time, found bool) {
	value, found := v.Fact(name)
	if len(value) != 8 {
		return time.Time{}, found
	}
	return time.Unix(0, int64(SequenceOf(value))).UTC(), found
}

// PutTimeFact keeps a time as a fact.
func (tx *Tx) PutTimeFact(name string, at time.Time) error {
	return tx.PutNumberFact(name, uint64(at.UnixNano()))
}

// RemoveFact removes a fact, if it is there.
func (tx *Tx) RemoveFact(name string) {
	if r := facts.Get(tx.View(), name); r != nil {
		facts.Remove(tx, r)
	}
}

// Secret returns the installation's own secret of that name, of size bytes. The first call makes it from random bytes,
// and later ones return the same bytes, also after a restart. The bytes are the caller's.
func (s *State) Secret(ctx context.Context, name string, size int) ([]byte, error) {
	if err := CheckID(name); err != nil || size < 16 {
		return nil, fmt.Errorf("secret %q of %d bytes: %w", name, size, ErrInvalid)
	}
	id := "secret/" + name
	value, found := s.View().Fact(id)
	if !found {
		fresh := make([]byte, size)
		rand.Read(fresh)
		var err error
		value, err = Do(ctx, s, func(tx *Tx) ([]byte, error) {
			if value, found := tx.View().Fact(id); found {
				return value, nil // another caller was first
			}
			return fresh, tx.PutFact(id, fresh)
		})
		if err != nil {
			return nil, fmt.Errorf("make secret %q: %w", name, err)
		}
	}
	if len(value) != size {
		return nil, fmt.Errorf("secret %q has %d bytes, not %d: %w", name, len(value), size, ErrInvalid)
	}
	return append([]byte(nil), value...), nil
}
