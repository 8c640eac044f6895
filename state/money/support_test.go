package money_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"stagedoor/state"
	"stagedoor/state/statetest/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx      = context.Background()
	start    = fixture.Start
	newClock = fixture.NewClock
	seeded   = fixture.Seeded
	open     = fixture.Open
	newState = fixture.NewState
	try      = fixture.Try
	must     = fixture.Must
	sound    = fixture.Sound
)

// hash returns a hash that differs for each n.
func hash(n int) state.Hash { return state.HashSecret(fmt.Sprint("secret ", n)) }
