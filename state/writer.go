package state

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"stagedoor/state/journal"
)

const (
	// maxQueue bounds the commands that wait; Do waits for a place.
	maxQueue = 4096
	// A group ends at either limit. There is no timer: while one group is
	// written the next one gathers.
	maxGroup      = 1024
	maxGroupBytes = 4 << 20
	// maxDecisions bounds how often a group is decided while the store returns
	// journal.ErrDecideAgain. Beyond it the commands fail, and nothing has changed.
	maxDecisions = 16
)

// Do runs cmd and returns what it returned, once that is durable.
//
// cmd decides and does nothing else: it does no I/O, does not wait and reads no clock but tx.Now. It runs on the
// goroutine of the writer, so every other command waits for it. It may run more than once, and only what it did last
// counts: it may assign to variables of its caller, but it must not read back what it assigned there, and anything else
// that it does outside the transaction belongs into tx.OnCommit. If it returns an error or panics, nothing of it is
// kept. The error is returned as it is, and a panic as *PanicError.
//
// An error of ctx means that cmd has not run and will not. Once it runs Do waits
// for the outcome, so that nobody is left not knowing.
func Do[T any](ctx context.Context, s *State, cmd func(*Tx) (T, error)) (T, error) {
	var result T
	err := s.do(ctx, func(tx *Tx) (err error) {
		result, err = cmd(tx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return result, nil
}

// Submit is Do for those who must not wait. It returns at once; done is called
// with what Do would return, in the place of the writer, so it must not wait
// either. While too many commands wait it is ErrBusy and done is not called.
func Submit(s *State, cmd func(*Tx) error, done func(error)) error {
	// Close may wait for somebody who waits for a place in the queue, which only the
	// writer makes; and it may be the writer who is here, in a done.
	if !s.sending.TryRLock() {
		return errClosed
	}
	defer s.sending.RUnlock()
	if err := s.refusal(); err != nil {
		return err
	}
	select {
	case s.queue <- &request{cmd: cmd, answer: done}:
		return nil
	default:
		return ErrBusy
	}
}

// request is a command that waits for its turn and then for its commit.
type request struct {
	cmd   func(*Tx) error
	phase atomic.Int32
	err   error
	// One of them tells that err is set.
	done   chan struct{} // by being closed
	answer func(error)
}

func (r *request) end() {
	if r.answer != nil {
		r.answer(r.err)
		return
	}
	close(r.done)
}

// Phases of a request. Leaving waiting is a race that the writer or the caller
// wins.
const (
	waiting int32 = iota
	taken
	abandoned
)

func (s *State) do(ctx context.Context, cmd func(*Tx) error) error {
	r := &request{cmd: cmd, done: make(chan struct{})}
	if err := s.enqueue(ctx, r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		if r.phase.CompareAndSwap(waiting, abandoned) {
			return context.Cause(ctx)
		}
		<-r.done
		return r.err
	}
}

func (s *State) enqueue(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Held shared while sending, so that Close closes the queue when nobody
	// sends. The writer goes on reading meanwhile.
	s.sending.RLock()
	defer s.sending.RUnlock()
	if err := s.refusal(); err != nil {
		return err
	}
	select {
	case s.queue <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refusal is why no command is taken, or nil. The caller holds sending.
func (s *State) refusal() error {
	if s.closed {
		return errClosed
	}
	return s.Err()
}

var errClosed = fmt.Errorf("%w: closed", ErrUnavailable)

// write is the goroutine of the writer. It ends when the queue is closed and
// empty.
func (s *State) write() {
	defer close(s.stopped)
	for r := range s.queue {
		s.group(r)
	}
	s.lastMark()
}

// group runs the first command and those that wait behind it, commits what they
// did and answers them.
func (s *State) group(first *request) {
	ledger := s.ledger
	tx := s.newTx()
	var ran []*request
	for r := first; r != nil; r = s.next(len(ran), tx.size) {
		if r.phase.CompareAndSwap(waiting, taken) {
			ran = append(ran, r)
			s.decide(tx, r)
		}
	}
	err := s.commit(tx)
	for n := 1; errors.Is(err, journal.ErrDecideAgain) && n < maxDecisions; n++ {
		s.ledger = ledger
		tx = s.newTx()
		for _, r := range ran {
			s.decide(tx, r)
		}
		err = s.commit(tx)
	}
	s.groups.Add(1)
	s.commands.Add(uint64(len(ran)))
	for _, r := range ran {
		if err != nil {
			r.err = err
		}
		r.end()
	}
}

// decide runs the command of a request.
func (s *State) decide(tx *Tx, r *request) {
	if r.err = s.Err(); r.err == nil {
		tx.now = s.now()
		r.err = tx.run(r.cmd)
	}
}

func (s *State) newTx() *Tx {
	return &Tx{mem: s.mem.Txn(true), ledger: &s.ledger, store: s.store, webhooks: s.webhooks.Load(),
		outbox: &s.outbox, hooks: s.hooks, touched: map[record]struct{}{},
		paper: &s.paper, folio: &s.folio, names: s.names}
}

func (s *State) next(n, size int) *request {
	if n >= maxGroup || size >= maxGroupBytes {
		return nil
	}
	select {
	case r := <-s.queue: // nil once the queue is closed
		return r
	default:
		return nil
	}
}

// commit makes a group durable, then visible, or leaves no trace of it.
func (s *State) commit(tx *Tx) error {
	defer s.paper.clear()
	defer s.folio.clear()
	defer tx.mem.Abort() // does nothing after a Commit; otherwise readers keep what they have
	if tx.broken != nil {
		tx.takeBack()
		return fmt.Errorf("%w: %w", ErrUnavailable, tx.broken)
	}
	if len(tx.batches) == 0 {
		return nil
	}
	_ = tx.run((*Tx).markTime) // a mark that cannot be written is no reason to refuse the rest
	// Not a caller's context: the group belongs to all of them.
	_, err := s.store.Commit(context.Background(), tx.batches)
	if err == nil {
		s.publish(tx)
		return nil
	}
	err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	if !harmless(err) {
		s.fail(err)
	}
	tx.takeBack()
	return err
}

// harmless tells whether a failed commit certainly changed nothing. After any
// other memdb may be behind the disk, and only a restart reads it again. A
// conflict is of the other kind: this process is the only writer, so the disk
// is not what memdb was loaded from.
func harmless(err error) bool {
	return errors.Is(err, journal.ErrReadOnly) || errors.Is(err, journal.ErrDecideAgain)
}

// publish makes what is durable visible.
func (s *State) publish(tx *Tx) {
	tx.mem.Commit()
	era := s.keyEra.Load()
	for _, c := range tx.done {
		if committed := s.hooks[c.table].committed; committed != nil {
			committed(s, c)
		}
	}
	for _, effect := range tx.effects {
		effect()
	}
	if s.keyEra.Load() != era {
		next := make(chan struct{})
		close(*s.access.Swap(&next))
	}
}

func weight(raw any) int64 {
	if raw == nil {
		return 0
	}
	return 1
}

func (s *State) fail(err error) {
	s.failOnce.Do(func() {
		s.failure.Store(&err)
		close(s.failed)
	})
}
