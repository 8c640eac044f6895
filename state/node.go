package state

import (
	"context"
	"fmt"

	"stagedoor/state/journal"
)

// Node names a process in one epoch of a shared store. Records of work in progress have the Node that does the work, so
// that the others leave it alone for as long as that process can change the state. It is empty on a store that one
// process writes, and in records whose work any process may take over.
type Node string

// NodeNamed returns the Node of a process by its name and its epoch, as journal.Members have them.
func NodeNamed(name string, epoch uint64) Node { return Node(fmt.Sprintf("%s/%d", name, epoch)) }

// nodeOf returns the name of this node, or "" if there can be no other one.
func nodeOf(log journal.Shared) Node {
	if log.Members() == nil {
		return ""
	}
	name, epoch, _ := log.Members().Self()
	return NodeNamed(name, epoch)
}

// Node returns the Node of this process.
func (s *State) Node() Node { return s.node }

// Node returns the Node of the process that decides the command.
func (tx *Tx) Node() Node { return tx.node }

// Several reports whether other processes may change the state while this one does. Decisions that need all of the
// state must then be made by a command, and not on figures that this process has counted.
func (s *State) Several() bool {
	if s.log.Members() == nil {
		return false
	}
	_, _, several := s.log.Members().Self()
	return several
}

// MayGrant reports whether this process may use its money.Allowance now. That requires that all processes know of
// allowances, and that none can have expelled this one yet, because the allowances of an expelled process are taken
// back.
func (s *State) MayGrant() bool {
	shared := s.log.Stats().Shared
	return shared == nil || shared.Lease > 0 && shared.Format >= journal.Allowance.Format()
}

// Ended returns a function that reports whether the work of a Node may be taken over, because the process cannot change
// the state any more. Where Several is false that is true of every Node, so such a process takes work over only once,
// before it begins work of its own. Otherwise it is true only of the Nodes that named finds in the records now, and of
// the empty one. A Node in a record has joined before, so it has ended for good if the store, which the call asks next,
// does not have it. Of a Node that is not in a record yet the store's answer says nothing, as that may join just after
// it. Therefore an answer does not become wrong later, and the state has all changes of the processes that it is true
// of.
func (s *State) Ended(ctx context.Context, named ...func(View) []Node) (func(Node) bool, error) {
	if !s.Several() {
		return func(Node) bool { return true }, nil
	}
	ended := map[Node]bool{"": true}
	for _, find := range named {
		for _, n := range find(s.View()) {
			ended[n] = true
		}
	}
	epochs, err := s.log.Members().Epochs(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	delete(ended, s.node)
	for name, epoch := range epochs {
		delete(ended, NodeNamed(name, epoch))
	}
	if err := Run(ctx, s, func(*Tx) error { return nil }); err != nil { // is decided at the end of the log
		return nil, err
	}
	return func(n Node) bool { return ended[n] }, nil
}
