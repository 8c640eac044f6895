package state

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// Tx gives a command the state as the commands before it left it, committed or not. It is valid until the
// command returns. Table.Put and Table.Remove change it, and the functions of the modules, which take it as their first
// argument.
type Tx struct {
	now    time.Time
	node   Node
	mem    *memdb.Txn
	memory []any
	tables map[string]Registration
	shared func() *journal.SharedStats // of the store

	// Of the running command. On a refusal log and batch are taken back.
	log      []change
	onCommit []func()
	batch    journal.Batch
	touched  map[record]struct{}
	actor    *Actor // nil: the gateway itself
	audit    []unaudited
	audited  map[record]int // indexes of audit

	// Of the group so far.
	batches []journal.Batch
	done    []change
	effects []func() // of OnCommit
	size    int      // bytes of operations
	broken  error    // memdb failed half-way: nothing of the group can be kept
}

// change is one row written. Without before the row is new, and without after it is removed.
type change struct {
	table         string
	before, after any
}

// record names a durable record.
type record struct {
	table journal.Table
	id    string
}

// Now returns the time at which the command is decided.
func (tx *Tx) Now() time.Time { return tx.now }

// OnCommit has effect called once the command is durable, and never if the command is refused, if its commit fails or
// if the command is decided again. A command must have no other effect outside the transaction. The writer calls effect,
// so it must not wait.
func (tx *Tx) OnCommit(effect func()) { tx.onCommit = append(tx.onCommit, effect) }

// run runs one command and keeps or takes back what it did.
func (tx *Tx) run(cmd func(*Tx) error) error {
	err := tx.try(cmd)
	switch {
	case err != nil:
		tx.undo()
	case len(tx.batch.Ops) > 0:
		tx.batches = append(tx.batches, tx.batch)
		tx.done = append(tx.done, tx.log...)
		tx.effects = append(tx.effects, tx.onCommit...)
		for _, op := range tx.batch.Ops {
			tx.size += len(op.Key) + len(op.Value)
		}
	}
	tx.batch, tx.log, tx.onCommit = journal.Batch{}, tx.log[:0], nil
	tx.actor, tx.audit, tx.audited = nil, nil, nil
	clear(tx.touched)
	return err
}

// try runs a command. A panic of it becomes an error, so that one command cannot end the writer,
// which all others need.
func (tx *Tx) try(cmd func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	if err := cmd(tx); err != nil || len(tx.audit) == 0 {
		return err
	}
	return tx.writeAudit()
}

// undo takes the running command's changes back, last first.
func (tx *Tx) undo() {
	for i := len(tx.log) - 1; i >= 0; i-- {
		c := tx.log[i]
		tx.mutate(change{table: c.table, before: c.after, after: c.before})
	}
}

// write changes a row in memdb, and notes the change so that it can be taken back.
func (tx *Tx) write(c change) {
	tx.mutate(c)
	tx.log = append(tx.log, c)
}

// mutate makes a change in memory. The first error of memdb is kept, and the whole group of
// commands fails with it.
func (tx *Tx) mutate(c change) {
	var err error
	if t := tx.tables[c.table].table; c.after != nil {
		err = t.insert(tx.mem, c.after)
	} else {
		err = t.remove(tx.mem, c.before)
	}
	if err != nil && tx.broken == nil {
		tx.broken = fmt.Errorf("write %s: %w", c.table, err)
	}
	tx.written(c)
}

// written calls the hook Written of the table of a change, if it has one.
func (tx *Tx) written(c change) {
	if written := tx.tables[c.table].written; written != nil {
		written(tx, c)
	}
}

// takeBack undoes what the hooks did for a group that is not committed.
func (tx *Tx) takeBack() {
	for _, c := range slices.Backward(tx.done) {
		tx.written(change{table: c.table, before: c.after, after: c.before})
	}
}

// expect makes the commit depend on the revision that a record had when the command began. Conditions are checked
// before the command's first operation, so only the first change of a record adds one.
func (tx *Tx) expect(t journal.Table, id string, rev uint64) {
	r := record{t, id}
	if _, again := tx.touched[r]; again {
		return
	}
	tx.touched[r] = struct{}{}
	tx.batch.Pre = append(tx.batch.Pre, journal.Cond{Table: t, Key: []byte(id), Rev: rev})
}

// Op adds a durable operation. Records that are not loaded into memory have no row and are changed by Op alone.
func (tx *Tx) Op(op journal.Op) { tx.batch.Ops = append(tx.batch.Ops, op) }

// Grow makes room for n operations, for commands that add many.
func (tx *Tx) Grow(n int) { tx.batch.Ops = slices.Grow(tx.batch.Ops, n) }
