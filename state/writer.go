package state

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"stagedoor/state/journal"
)

const (
	// maxQueue bounds the commands that wait; Do waits for a place.
	maxQueue = 4096
	// A group ends at either limit. There is no timer: while one group is written the next one gathers, and the
	// goroutines that can run meanwhile are let run before a group is committed.
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
// An error of ctx means that cmd has not run and will not. Once it runs Do waits for the outcome, so that every caller
// learns it.
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

// Run is Do for a command without a result.
func Run(ctx context.Context, s *State, cmd func(*Tx) error) error { return s.do(ctx, cmd) }

// Submit is Do for a caller that must not wait. It returns at once. The writer calls done with the error that Do would
// return, so done must not wait either. While too many commands wait the error is ErrBusy and done is not called.
func Submit(s *State, cmd func(*Tx) error, done func(error)) error {
	// Close may wait for a caller that waits for a place in the queue, which only the writer makes, and it may be the
	// writer that calls Submit, in a done.
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
	actor *Actor // of the caller's context
	phase atomic.Int32
	err   error
	// err is set when done is closed or answer is called, of which a request has one.
	done   chan struct{}
	answer func(error)
}

// end reports the outcome to the caller, through a callback or a channel.
func (r *request) end() {
	if r.answer != nil {
		r.answer(r.err)
		return
	}
	close(r.done)
}

// Phases of a request. Either the writer or the caller ends the phase waiting.
const (
	waiting int32 = iota
	taken
	abandoned
)

// do queues a command and waits for its outcome. If ctx ends while the command is still in the
// queue, the command is abandoned and has no effect. Once the writer has begun it, do waits on,
// because the caller must learn whether it took effect.
func (s *State) do(ctx context.Context, cmd func(*Tx) error) error {
	r := &request{cmd: cmd, actor: actorIn(ctx), done: make(chan struct{})}
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

// enqueue puts a request into the queue. It waits while the queue is full.
func (s *State) enqueue(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The lock is held shared while sending, so that Close closes the queue while no caller sends. The writer goes on
	// reading meanwhile.
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

// refusal returns the reason why no command is taken, or nil. The caller holds sending.
func (s *State) refusal() error {
	if s.closed {
		return errClosed
	}
	if err := s.stalled.Load(); err != nil {
		return *err
	}
	return s.Err()
}

var errClosed = fmt.Errorf("%w: closed", ErrUnavailable)

// write is the goroutine of the writer. It runs commands in groups, and applies what other nodes have appended as soon
// as the store gives a hint of it. It ends when the queue is closed and empty.
func (s *State) write() {
	defer close(s.stopped)
	changed := s.log.Changed()
	for {
		select {
		case r, open := <-s.queue:
			if !open {
				s.lastMark()
				return
			}
			s.group(r)
		case <-changed:
			s.keepUp()
		}
	}
}

// group runs the first command and those that wait behind it, commits what they did and answers them. Where another
// node was first, it applies what that node did and decides the same commands again.
func (s *State) group(first *request) {
	stop := s.refuseBehind()
	tx := s.newTx()
	ran := s.take(tx, nil, first)
	err := s.commit(tx, false)
	for n := 1; errors.Is(err, journal.ErrDecideAgain) && n < maxDecisions; n++ {
		turn, failed := s.catchUp(err)
		if err = failed; err != nil {
			break
		}
		s.again.Add(1)
		tx = s.newTx()
		for _, r := range ran {
			s.decide(tx, r)
		}
		if turn { // no other node can append, so what has arrived meanwhile is decided at the end of the log, too
			ran = s.take(tx, ran, s.next(len(ran), tx.size))
		}
		err = s.commit(tx, true)
	}
	stop()
	for _, m := range s.modules {
		if m.AfterGroup != nil {
			m.AfterGroup()
		}
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

// patience bounds the wait of commands behind a group that waits for a shared store.
const patience = 2 * time.Second

var errStalled = fmt.Errorf("%w: %w: an earlier change waits for it", ErrUnavailable, journal.ErrUnreachable)

// refuseBehind refuses the commands that wait, and those that come, from patience on until the caller calls stop. A
// group whose append was sent waits until it is known whether the store has it, which may take as long as the store is
// away. The commands behind it were not sent, so that they can be refused in time.
func (s *State) refuseBehind() (stop func()) {
	if s.log.Members() == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	timer := time.AfterFunc(patience, func() {
		defer close(ended)
		s.stalled.Store(&errStalled)
		defer s.stalled.Store(nil)
		for {
			select {
			case r, open := <-s.queue:
				if !open {
					return
				}
				if r.phase.CompareAndSwap(waiting, taken) {
					r.err = errStalled
					r.end()
				}
			case <-done:
				return
			}
		}
	})
	return func() {
		if !timer.Stop() {
			close(done)
			<-ended
		}
	}
}

// take decides r and the commands that wait behind it, and returns the group with them.
func (s *State) take(tx *Tx, group []*request, r *request) []*request {
	for ; r != nil; r = s.nextAfterYield(len(group), tx.size) {
		if r.phase.CompareAndSwap(waiting, taken) {
			group = append(group, r)
			s.decide(tx, r)
		}
	}
	return group
}

// decide runs the command of a request.
func (s *State) decide(tx *Tx, r *request) {
	if r.err = s.Err(); r.err == nil {
		tx.now, tx.actor = s.now(), r.actor
		r.err = tx.run(r.cmd)
	}
}

// newTx returns a transaction for a group that is to be decided, for the first time or again.
func (s *State) newTx() *Tx {
	for _, m := range s.modules {
		if m.BeforeDecision != nil {
			m.BeforeDecision()
		}
	}
	return &Tx{
		mem: s.mem.Txn(true), memory: s.memory, tables: s.tables, touched: map[record]struct{}{}, node: s.node,
		shared: func() *journal.SharedStats { return s.log.Stats().Shared },
	}
}

// next returns the next request in the queue for a group that has n requests of size bytes so far.
// It does not wait: it returns nil if the queue is empty or the group is large enough.
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

// nextAfterYield is next, but lets goroutines that are about to send a command run first. A commit costs about the same
// for one command as for many.
func (s *State) nextAfterYield(n, size int) *request {
	if r := s.next(n, size); r != nil {
		return r
	}
	runtime.Gosched()
	return s.next(n, size)
}

// commit makes a group durable, then visible, or leaves no trace of it. atEnd says that the group was decided at a
// position that was the end of the log after its last command had come.
func (s *State) commit(tx *Tx, atEnd bool) error {
	defer tx.mem.Abort() // does nothing after a Commit; otherwise readers keep what they have
	if tx.broken != nil {
		tx.takeBack()
		_ = s.certify(true) // ends the turn, if there is one
		return fmt.Errorf("%w: %w", ErrUnavailable, tx.broken)
	}
	if len(tx.batches) == 0 {
		return s.certify(atEnd)
	}
	_ = tx.run((*Tx).markTime) // a mark that cannot be written is no reason to refuse the rest
	// This is not a caller's context, because the group belongs to all of them.
	at, err := s.log.Append(s.appending, s.at, tx.now, tx.batches)
	if err == nil {
		s.at = at
		s.publish(tx)
		return nil
	}
	tx.takeBack()
	return s.stopAfter(err)
}

// stopAfter returns err, if there is one, as ErrUnavailable. It stops the state unless the error certainly left nothing
// changed. After any other failure memdb may be behind the disk, which only a restart reads again. A conflict is such a
// failure: the store does not hold what memdb was loaded from.
func (s *State) stopAfter(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	for _, harmless := range []error{journal.ErrReadOnly, journal.ErrDecideAgain, journal.ErrUnreachable} {
		if errors.Is(err, harmless) {
			return err
		}
	}
	s.fail(err)
	return err
}

// publish makes what is durable visible.
func (s *State) publish(tx *Tx) {
	tx.mem.Commit()
	s.published.Add(1)
	for _, c := range tx.done {
		if committed := s.tables[c.table].committed; committed != nil {
			committed(s, c)
		}
	}
	for _, effect := range tx.effects {
		effect()
	}
}

// fail stops the state for good. Later errors only follow from the first, which is kept.
func (s *State) fail(err error) {
	s.failOnce.Do(func() {
		s.failure.Store(&err)
		close(s.failed)
	})
}
