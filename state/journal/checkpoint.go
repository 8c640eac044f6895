package journal

import (
	"errors"
	"fmt"

	"github.com/sourcegraph/conc"

	"stagedoor/state/journal/redo"
)

// checkpointAfter is the size of the redo log at which its changes are copied into
// bbolt's file, concurrently with further commits.
const checkpointAfter = 4 << 20

// checkpoint is the changes of many commits on their way into bbolt's file.
type checkpoint struct {
	work conc.WaitGroup
	done chan struct{} // closed when it has an outcome
	err  error         // set then
}

// ended reports whether the checkpoint has an outcome. No checkpoint (nil) counts as ended.
func (c *checkpoint) ended() bool {
	if c == nil {
		return true
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// outcome waits until the checkpoint has ended and returns its error. It may be called on nil.
func (c *checkpoint) outcome() error {
	if c == nil {
		return nil
	}
	c.work.Wait()
	return c.err
}

// makeLogRoom makes room for a frame in the redo log, and starts a checkpoint if the log holds enough for one. The
// caller holds writing.
func (b *Bolt) makeLogRoom(frame []byte) error {
	full := b.inherited || !b.log.Fits(frame)
	if !full && b.log.Used() < b.checkpointAfter {
		return nil
	}
	if !b.running.ended() && !full {
		return nil
	}
	err := b.freeze()
	if !full && errors.Is(err, ErrReadOnly) {
		return nil // there is room in the log still; the next commit tries again
	}
	return err
}

// freeze starts a checkpoint of all changes that are not in bbolt's file, and switches to the other
// file of the redo log, so that commits go on meanwhile. A file of the log can be overwritten only
// when the file of bbolt has its changes, so an earlier checkpoint must have succeeded first:
// freeze waits for it, and repeats one that failed, as it does on a full disk. The caller holds
// writing.
func (b *Bolt) freeze() error {
	if err := b.running.outcome(); err != nil {
		b.running = b.start(b.older)
		if err := b.running.outcome(); err != nil {
			return err
		}
	}
	if b.inherited {
		if err := redo.Remove(b.dir); err != nil {
			return err
		}
		b.inherited = false
	}
	if b.newest.lsn == 0 {
		return nil
	}
	b.layers.Lock()
	b.older, b.newest = b.newest, &overlay{}
	b.layers.Unlock()
	b.running = b.start(b.older)
	return b.log.Switch()
}

// flush puts all that is durable into bbolt's file. The caller holds writing.
func (b *Bolt) flush() error {
	if err := b.freeze(); err != nil {
		return err
	}
	return b.running.outcome()
}

// start runs a checkpoint concurrently with commits. The holder of writing waits for
// it before starting another, and Close before closing the file.
func (b *Bolt) start(o *overlay) *checkpoint {
	c := &checkpoint{done: make(chan struct{})}
	c.work.Go(func() {
		defer close(c.done)
		if c.err = b.fold(o); c.err != nil {
			return
		}
		b.layers.Lock()
		b.older = nil
		b.layers.Unlock()
	})
	return c
}

// fold puts an overlay into bbolt's file. The redo log still has all of it, so a full
// disk is nothing but a reason to try again.
func (b *Bolt) fold(o *overlay) error {
	err := b.update(o.fold)
	if err != nil && !errors.Is(err, ErrReadOnly) {
		return b.poisoned(err)
	}
	return err
}

// poisoned stops the store for good.
func (b *Bolt) poisoned(err error) error {
	if !errors.Is(err, ErrPoisoned) {
		err = fmt.Errorf("%w: %w", ErrPoisoned, err)
	}
	b.poison.CompareAndSwap(nil, &err)
	return err
}
