package state

import (
	"errors"

	"stagedoor/state/journal"
)

// This file keeps the tables in memory up to date with what other nodes append to a shared log. All of it belongs to
// the writer. On a store with one writer nothing is ever found.

// asShared returns a store as one that other nodes may write.
func asShared(store journal.Store) journal.Shared {
	if shared, ok := store.(journal.Shared); ok {
		return shared
	}
	return journal.Alone(store)
}

// certify returns nil if the decisions of a group that writes nothing, its refusals above all, were made at the end of
// the log, and a *journal.BehindError otherwise. It is enough that the log ended there at some moment after the last
// command of the group had come, because the commands may count as earlier than a later entry. atEnd says that this is
// known already.
func (s *State) certify(atEnd bool) error {
	if atEnd {
		_, err := s.log.Append(s.appending, s.at, s.now(), nil) // ends the turn, if there is one
		return s.stopAfter(err)
	}
	head, err := s.log.Head(s.appending)
	if err == nil && head.LSN > s.at.LSN {
		err = &journal.BehindError{More: true}
	}
	return s.stopAfter(err)
}

// catchUp applies what other nodes have appended, after the log refused a group for it. If the group is to be appended,
// catchUp also waits for this node's turn, so that a node with slow commits is not refused for ever.
func (s *State) catchUp(refused error) (turn bool, err error) {
	behind, ok := errors.AsType[*journal.BehindError](refused)
	if !ok {
		return false, nil // no other node was first: the store wants another decision
	}
	err = s.apply(behind.Entries)
	if err == nil && behind.More {
		err = s.tail()
	}
	if err == nil && len(behind.Entries) > 0 {
		var entries []journal.Entry
		if entries, turn, err = s.log.Turn(s.appending, s.at); err == nil {
			err = s.apply(entries)
		}
	}
	return turn, s.stopAfter(err)
}

// keepUp applies what other nodes have appended while no command of this one waits.
func (s *State) keepUp() {
	if s.Err() == nil {
		_ = s.stopAfter(s.tail()) // what cannot be read now is read with the next hint
	}
}

// maxApplied bounds the entries that become visible together, and so the time that commands wait for them.
const maxApplied = 256

// tail applies the entries up to the end of the log.
func (s *State) tail() error {
	var entries []journal.Entry
	err := s.log.Tail(s.appending, s.at, func(e journal.Entry) error {
		if entries = append(entries, e); len(entries) < maxApplied {
			return nil
		}
		full := entries
		entries = nil
		return s.apply(full)
	})
	if err != nil {
		return err // what was read beyond the last full part is read again
	}
	return s.apply(entries)
}

// apply makes entries of other nodes visible as if this node had committed them. Nothing of them is decided here, so
// nodes do not diverge. An entry that cannot be decoded is an error, with which this node stops.
func (s *State) apply(entries []journal.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	tx := s.newTx()
	defer tx.mem.Abort()
	for _, e := range entries {
		tx.now = e.At
		for _, c := range e.Changes {
			if err := tx.follow(c); err != nil {
				tx.done = tx.log
				tx.takeBack()
				return err
			}
		}
	}
	tx.done = tx.log
	if tx.broken != nil {
		tx.takeBack()
		return tx.broken
	}
	s.publish(tx)
	last := &entries[len(entries)-1]
	s.at = last.Position
	// Expiry and the order of times are the same on all nodes.
	s.clock.notBefore(last.At)
	return nil
}

// follow changes the row of a record as another node left it.
func (tx *Tx) follow(c journal.Change) error {
	r, found := tx.tables[string(c.Table)]
	if !found {
		return &journal.CorruptError{Table: "log", Reason: "has a change of the unknown table " + string(c.Table)}
	}
	next := change{table: r.table.name()}
	var err error
	if next.before, err = r.table.row(tx.mem, string(c.Key)); err != nil {
		return err
	}
	if !c.Deleted {
		if next.after, err = r.table.decode(c.Record); err != nil {
			return err
		}
	}
	if next.before != nil || next.after != nil {
		tx.write(next)
	}
	return nil
}
