// Package schema lists the modules of the state, so that programs and tests open all of them alike. A process that
// needs some tables only can call state.Open with their modules. Package schema decides nothing.
//
// # Usage
//
// The program and most tests call Open, which passes all modules to state.Open. Verify does the same for state.Verify
// and adds what only all modules together can say. A new module is a line here, and test/arch_test.go has the rule that
// modules do not import each other.
package schema

import (
	"context"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

// Open opens the state with all its tables; see state.Open.
func Open(store journal.Store, now func() time.Time, options ...work.Option) (*state.State, error) {
	return state.Open(store, now, identity.Module(), money.Module(), work.Module(options...))
}

// Verification is the result of Verify.
type Verification struct {
	state.Verification
	Ledger money.Totals // what the ledger adds up to
}

// Verify looks at every record of a store and at whether the ledger adds up; see state.Verify.
func Verify(ctx context.Context, store journal.Store) (result Verification, err error) {
	ledger := money.Module()
	ledger.Verify = func(ctx context.Context, v *state.Verifier) (err error) {
		result.Ledger, err = money.Verify(ctx, v)
		return err
	}
	result.Verification, err = state.Verify(ctx, store, identity.Module(), ledger, work.Module())
	return result, err
}
