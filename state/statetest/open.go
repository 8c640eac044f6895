package statetest

import (
	"errors"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// OpenDir opens the state in a directory, as a process does that has just started,
// with no regard to the room on its disk. end closes it, and the store below.
func OpenDir(dir string) (s *state.State, end func() error, err error) {
	store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		return nil, nil, err
	}
	if s, err = state.Open(store, time.Now); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return s, func() error { return errors.Join(s.Close(), store.Close()) }, nil
}
