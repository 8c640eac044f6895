package state

import (
	"context"
	"crypto/rand"
	"fmt"

	"stagedoor/state/journal"
)

// fact is a small thing the installation knows about itself.
type fact struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

var facts = table[fact]{
	durable: journal.Meta,
	id:      func(f *fact) string { return f.Name },
}

// Secret returns the installation's own secret of that name and makes it, size
// random bytes, the first time it is asked for. What it signs or seals is read
// again after a restart. The bytes are the caller's.
//
// Randomness is not an argument here: nobody wants such a secret twice.
func (s *State) Secret(ctx context.Context, name string, size int) ([]byte, error) {
	if err := checkID(name); err != nil || size < 16 {
		return nil, fmt.Errorf("secret %q of %d bytes: %w", name, size, ErrInvalid)
	}
	id := "secret/" + name
	value := []byte(nil)
	if r := facts.get(s.snapshot(), id); r != nil {
		value = r.rec.Value
	} else {
		fresh := make([]byte, size)
		rand.Read(fresh)
		var err error
		value, err = Do(ctx, s, func(tx *Tx) ([]byte, error) {
			if r := facts.get(tx.mem, id); r != nil {
				return r.rec.Value, nil // somebody else was first
			}
			return fresh, facts.put(tx, fact{Name: id, Value: fresh})
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
