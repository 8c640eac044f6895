package state

import (
	"context"
	"fmt"
)

// adminToken is the name of the fact that is the hash of the administration token that a command made.
const adminToken = "admin-token"

// AdminToken returns the hash of the token that SetAdminToken kept, if there is one.
func (s *State) AdminToken() (Hash, bool) {
	value, _ := s.View().Fact(adminToken)
	if len(value) != len(Hash{}) {
		return Hash{}, false
	}
	return Hash(value), true
}

// SetAdminToken replaces the administration token.
func (s *State) SetAdminToken(ctx context.Context, h Hash) error {
	return Run(ctx, s, func(tx *Tx) error {
		if h == (Hash{}) {
			return fmt.Errorf("%w: an empty administration token", ErrInvalid)
		}
		return tx.PutFact(adminToken, h[:])
	})
}

// RemoveAdminToken removes the administration token, if there is one.
func (s *State) RemoveAdminToken(ctx context.Context) error {
	return Run(ctx, s, func(tx *Tx) error {
		tx.RemoveFact(adminToken)
		return nil
	})
}
