package identity_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

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
	newKey   = fixture.NewKey
	addUser  = fixture.AddUser
	hash     = fixture.Hash

	sameAfterReload = fixture.SameAfterReload
)
