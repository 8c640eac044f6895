package identity

import (
	"context"
	"fmt"

	"stagedoor/state"
)

// adminToken is the name of the fact that is the hash of the administration token that a command made.
const adminToken = "admin-token"

// FindAdminToken returns the hash of the token that SetAdminToken kept, if there is one.
func FindAdminToken(v state.View) (state.Hash, bool) {
	value, _ := v.Fact(adminToken)
	if len(value) != len(state.Hash{}) {
		return state.Hash{}, false
	}
	return state.Hash(value), true
}

// SetAdminToken replaces the administration token.
func SetAdminToken(ctx context.Context, s *state.State, h state.Hash) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		if h == (state.Hash{}) {
			return fmt.Errorf("%w: an empty administration token", state.ErrInvalid)
		}
		return tx.PutFact(adminToken, h[:])
	})
}

// RemoveAdminToken removes the administration token, if there is one.
func RemoveAdminToken(ctx context.Context, s *state.State) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		tx.RemoveFact(adminToken)
		return nil
	})
}
