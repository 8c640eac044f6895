// Package ondisk opens the state in a directory for tests that end the process which writes it. It is apart from
// package statetest so that the tests inside package state can import that one.
package ondisk

import (
	"errors"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

// Open opens the state in dir as a new process does, without regard to the space on the disk. closeAll closes the state
// and then its store.
func Open(dir string) (s *state.State, closeAll func() error, err error) {
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		return nil, nil, err
	}
	if s, err = schema.Open(store, time.Now); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return s, func() error { return errors.Join(s.Close(), store.Close()) }, nil
}
