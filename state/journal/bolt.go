package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// FileName is the store's file in its directory.
const FileName = "stagedoor.db"

// Options of OpenBolt. The zero value is what a server wants.
type Options struct {
	// Timeout is how long to wait for another process to let go of the file;
	// 0: 5 s.
	Timeout time.Duration
	// LowWater is how many bytes must be free on the disk for a Commit to be
	// tried; 0: 256 MiB; negative: no guard. It keeps a filling disk from
	// poisoning the store: refused writes are accepted again when there is room.
	LowWater int64

	readOnly bool // see ReadBolt

	// For tests of faults: where free space is read, and how the file is opened.
	freeSpace func(dir string) (int64, error)
	openFile  func(name string, flag int, mode os.FileMode) (*os.File, error)
}

const (
	defaultTimeout  = 5 * time.Second
	defaultLowWater = 256 << 20
)

// filled is o with the defaults.
func (o Options) filled() Options {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.LowWater == 0 {
		o.LowWater = defaultLowWater
	}
	if o.freeSpace == nil {
		o.freeSpace = freeSpace
	}
	if o.openFile == nil {
		o.openFile = os.OpenFile
	}
	return o
}

// Bolt is a Store in one file of bbolt.
type Bolt struct {
	db        *bbolt.DB
	dir       string
	readOnly  bool
	lowWater  int64
	cutBack   bool // see Stats
	freeSpace func(dir string) (int64, error)
	commits   atomic.Uint64
	lsn       atomic.Uint64
	poison    atomic.Pointer[error]

	writing sync.Mutex
	txid    uint64 // of bbolt's last commit; guarded by writing

	// mu is held shared by everything that uses db and exclusively by Close.
	mu     sync.RWMutex
	closed bool
}

// own is the bucket of what the store knows about itself; no Table.
var own = []byte("store")

// Keys in own.
var (
	schemaKey = []byte("schema") // one byte: the layout's version
	lsnKey    = []byte("lsn")    // 8 bytes
	cleanKey  = []byte("clean")  // there if the last process closed the store
)

// schemaVersion counts what an older program would not understand; see
// laterTables.
const schemaVersion = 6

// Commit implements Store.
func (b *Bolt) Commit(ctx context.Context, batches []Batch) (LSN, error) {
	if err := check(batches); err != nil {
		return 0, err
	}
	release, err := b.use(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	if writes(batches) {
		if err := b.room(); err != nil {
			return 0, err
		}
	}
	var lsn uint64
	err = b.update(func(tx *bbolt.Tx) error {
		if err := newWriter(tx, batches).apply(batches); err != nil {
			return err
		}
		if !writes(batches) {
			return errNothing
		}
		bucket := tx.Bucket(own)
		lsn = b.lsn.Load() + 1
		return bucket.Put(lsnKey, binary.BigEndian.AppendUint64(nil, lsn))
	})
	switch {
	case err == nil:
		b.lsn.Store(lsn)
		b.commits.Add(1)
		return LSN(lsn), nil
	case errors.Is(err, errNothing):
		return LSN(b.lsn.Load()), nil
	case errors.Is(err, ErrConflict):
		return 0, err
	case errors.Is(err, ErrPoisoned), errors.Is(err, ErrReadOnly):
		return 0, err
	}
	poisoned := fmt.Errorf("%w: %w", ErrPoisoned, err)
	b.poison.CompareAndSwap(nil, &poisoned)
	return 0, poisoned
}

// errNothing ends a transaction that only checked conditions.
var errNothing = errors.New("nothing to write")

// update runs one write transaction. Those of the same moment wait here for each
// other, so poison is looked at again inside.
func (b *Bolt) update(fn func(*bbolt.Tx) error) (err error) {
	if b.readOnly {
		return fmt.Errorf("%w: it was opened only to be read", ErrReadOnly)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &CorruptError{Table: "file", Reason: fmt.Sprintf("cannot be written (%v)", r)}
		}
	}()
	var txid uint64
	err = b.db.Update(func(tx *bbolt.Tx) error {
		if p := b.poison.Load(); p != nil {
			return *p
		}
		txid = uint64(tx.ID())
		return fn(tx)
	})
	switch {
	case err == nil:
		b.txid = txid
	case b.onlyFull(err):
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

// use takes part in the store until release is called.
func (b *Bolt) use(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.RLock()
	if b.closed {
		b.mu.RUnlock()
		return nil, ErrClosed
	}
	// A poisoned store is not read either: a meta page whose fsync failed is in
	// the page cache, and so would show what a crash takes back.
	if p := b.poison.Load(); p != nil {
		b.mu.RUnlock()
		return nil, *p
	}
	return b.mu.RUnlock, nil
}

// room refuses to write on a nearly full disk. One statfs costs a thousandth of
// the commit it precedes, so nothing is remembered between calls.
func (b *Bolt) room() error {
	if b.lowWater < 0 {
		return nil
	}
	free, err := b.freeSpace(b.dir)
	if err != nil {
		return nil // where nobody can say, the write itself will
	}
	return b.enough(free)
}

// enough is nil if commits are tried with so many free bytes.
func (b *Bolt) enough(free int64) error {
	if free >= b.lowWater {
		return nil
	}
	return fmt.Errorf("%w: too little disk space (%d bytes free, %d needed)", ErrReadOnly, free, b.lowWater)
}

// metas reads the two pages by which commits come into force, from the file.
func (b *Bolt) metas() (metas, error) {
	file, err := os.Open(b.db.Path())
	if err != nil {
		return metas{}, err
	}
	defer file.Close()
	return readMetas(file, b.db.Info().PageSize)
}

// onlyFull tells whether a commit failed for want of space and certainly changed
// nothing: the pages it wrote are part of no tree, and both meta pages are as the
// commit before left them. Then nothing is lost and nothing in doubt, and there
// may be room for the next one. The caller holds writing.
func (b *Bolt) onlyFull(err error) bool {
	full := slices.ContainsFunc(noRoom, func(e error) bool { return errors.Is(err, e) })
	// bbolt tells of a file that cannot grow without the system's error; of one
	// that cannot be synced in other words.
	if !full && !strings.HasPrefix(err.Error(), "file resize error: ") {
		return false
	}
	m, readErr := b.metas()
	return readErr == nil && !m.torn() && m.last() == b.txid
}

// noRoom are the system's words for a full disk: no space, no quota, a file as
// large as this process may make it.
var noRoom = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// Backup implements Store. The copy is a store of its own: put it into an empty
// directory as FileName.
func (b *Bolt) Backup(ctx context.Context, w io.Writer) error {
	release, err := b.use(ctx)
	if err != nil {
		return err
	}
	defer release()
	return b.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(untilDone{ctx, w})
		return err
	})
}

// untilDone is a Writer that fails when ctx is done.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

func (u untilDone) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// Stats implements Store.
func (b *Bolt) Stats() Stats {
	s := Stats{LSN: LSN(b.lsn.Load()), Commits: b.commits.Load(), DiskFree: -1}
	s.CutBack = b.cutBack
	if p := b.poison.Load(); p != nil {
		s.Poisoned = *p
	}
	if free, err := b.freeSpace(b.dir); err == nil {
		s.DiskFree = free
		s.Full = b.enough(free)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return s
	}
	if info, err := os.Stat(b.db.Path()); err == nil {
		s.Size = info.Size()
	}
	pages := b.db.Stats()
	s.Free = int64(pages.FreePageN+pages.PendingPageN) * int64(b.db.Info().PageSize)
	return s
}

// Close implements Store. It leaves the mark that spares the next process the
// check, unless the store is poisoned.
func (b *Bolt) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	var err error
	if b.poison.Load() == nil && !b.readOnly {
		err = b.update(func(tx *bbolt.Tx) error { return tx.Bucket(own).Put(cleanKey, []byte{1}) })
	}
	return errors.Join(err, b.db.Close())
}
