package identity

import (
	"context"
	"fmt"

	"stagedoor/state"
)

// adminToken is the name under which the hash of the admin token created by command is stored.
const adminToken = "admin-token"

// FindAdminToken returns the hash that SetAdminToken has stored, if any.
func FindAdminToken(v state.View) (state.Hash, bool) {
	value, _ := v.Fact(adminToken)
	if len(value) != len(state.Hash{}) {
		return state.Hash{}, false
	}
	return state.Hash(value), true
}

// SetAdminToken replaces the hash of the admin token. The zero hash is state.ErrInvalid: it would be stored for a token
// that was never made.
func SetAdminToken(ctx context.Context, s *state.State, h state.Hash) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		if h == (state.Hash{}) {
			return fmt.Errorf("%w: an empty admin token", state.ErrInvalid)
		}
		tx.Audit(adminTokenEvent("admin_token.create"))
		return tx.PutFact(adminToken, h[:])
	})
}

func adminTokenEvent(action string) state.AuditEvent {
	return state.AuditEvent{Action: action, Target: state.Target{Kind: "admin_token"}}
}

// RemoveAdminToken removes the admin token if there is one. The change is audited only if there was one.
func RemoveAdminToken(ctx context.Context, s *state.State) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		if _, found := FindAdminToken(tx.View()); found {
			tx.Audit(adminTokenEvent("admin_token.remove"))
			tx.RemoveFact(adminToken)
		}
		return nil
	})
}
