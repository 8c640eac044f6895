package work_test

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
	sound    = fixture.Sound
	hash     = fixture.Hash

	sameAfterReload = fixture.SameAfterReload
	newResponse     = fixture.NewResponse
)

const (
	me    = fixture.Me
	other = fixture.Other
)
