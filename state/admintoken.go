package state

import (
	"context"
	"fmt"
)

// adminToken is the name of the fact that is the hash of the token of
// administration that was made by command.
const adminToken = "admin-token"

// AdminToken is the hash of the token that SetAdminToken kept; false: none was
// made.
func (s *State) AdminToken() (Hash, bool) {
	r := facts.get(s.snapshot(), adminToken)
	if r == nil || len(r.rec.Value) != len(Hash{}) {
		return Hash{}, false
	}
	return Hash(r.rec.Value), true
}

// SetAdminToken replaces the token of administration.
func (s *State) SetAdminToken(ctx context.Context, h Hash) error {
	return s.do(ctx, func(tx *Tx) error {
		if h == (Hash{}) {
			return fmt.Errorf("%w: an empty token of administration", ErrInvalid)
		}
		return facts.put(tx, fact{Name: adminToken, Value: h[:]})
	})
}

// RemoveAdminToken forgets the token of administration; none is no error.
func (s *State) RemoveAdminToken(ctx context.Context) error {
	return s.do(ctx, func(tx *Tx) error {
		if r := facts.get(tx.mem, adminToken); r != nil {
			facts.remove(tx, r)
		}
		return nil
	})
}
