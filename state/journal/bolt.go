package journal

import (
	"cmp"
	"context"
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

	"stagedoor/state/journal/redo"
)

// FileName is the store's file in its directory.
const FileName = "stagedoor.db"

// Options of OpenBolt. The zero value is what a server wants.
type Options struct {
	// Timeout limits the wait for another process to close the file; 0: 5 s.
	Timeout time.Duration
	// LowWater is the number of bytes that must be free on the disk for a Commit to be
	// tried; 0: 256 MiB; negative: no guard. It keeps a filling disk from
	// poisoning the store: refused writes are accepted again when there is room.
	LowWater int64

	readOnly bool // see ReadBolt
	bare     bool // without a redo log: of a file that has no name yet

	// For tests of faults: where free space is read, and how files are opened.
	freeSpace func(dir string) (int64, error)
	openFile  func(name string, flag int, mode os.FileMode) (*os.File, error)

	// For tests: see redo.Size and checkpointAfter.
	redoSize, checkpointAfter int64
}

const defaultTimeout = 5 * time.Second

// DefaultLowWater is the LowWater of a server. Whatever else grows in the directory must leave more than that free.
const DefaultLowWater = 256 << 20

// filled returns o with the defaults for what is not set.
func (o Options) filled() Options {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.LowWater = cmp.Or(o.LowWater, DefaultLowWater)
	if o.freeSpace == nil {
		o.freeSpace = FreeSpace
	}
	if o.openFile == nil {
		o.openFile = os.OpenFile
	}
	o.checkpointAfter = cmp.Or(o.checkpointAfter, checkpointAfter)
	return o
}

// Bolt is a Store in one file of bbolt, with a redo log before it while it is in use.
type Bolt struct {
	db        *bbolt.DB
	dir       string
	readOnly  bool
	bare      bool
	lowWater  int64
	cutBack   bool // see Stats
	freeSpace func(dir string) (int64, error)
	commits   atomic.Uint64
	lsn       atomic.Uint64
	txid      atomic.Uint64 // of bbolt's last commit
	poison    atomic.Pointer[error]

	redoOptions     redo.Options
	checkpointAfter int64

	// writing is held during a commit and guards these.
	writing sync.Mutex
	log     *redo.Log // nil until the file is open
	running *checkpoint
	// inherited means that the log is still that of the last process, because the file had no room for what it
	// holds. Nothing is written to the log before the file has taken it over.
	inherited bool

	// What is durable and not in bbolt's file: newest grows with every commit, older
	// (nil: there is none) is on its way into the file and does not change. newest
	// changes only while writing is held. A reader begins its transaction of bbolt
	// under the lock, too, so that both show the same moment.
	layers        sync.RWMutex
	newest, older *overlay

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
	idKey     = []byte("id")     // 16 random bytes: redo.ID
)

// schemaVersion is the version of the tables and the form of their records. A file of
// another version is refused.
const schemaVersion = 11

// Commit implements Store.
func (b *Bolt) Commit(ctx context.Context, batches []Batch) (LSN, error) {
	if err := Check(batches); err != nil {
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
	b.writing.Lock()
	defer b.writing.Unlock()
	if p := b.poison.Load(); p != nil {
		return 0, *p // since use
	}
	lsn := b.lsn.Load()
	err = b.commit(batches, lsn+1)
	switch {
	case err == nil && !writes(batches):
		return LSN(lsn), nil
	case err == nil:
		b.lsn.Store(lsn + 1)
		b.commits.Add(1)
		return LSN(lsn + 1), nil
	case errors.Is(err, ErrConflict), errors.Is(err, ErrReadOnly):
		return 0, err
	}
	return 0, b.poisoned(err)
}

// commit decides the batches and makes what they come to durable. The caller holds
// writing.
func (b *Bolt) commit(batches []Batch, lsn uint64) error {
	var d *draft
	err := guarded("file", func() error {
		var s snapshot
		tx, err := b.begin(func(newest, older *overlay) { s.newest, s.older = newest, older })
		if err != nil {
			return err
		}
		defer tx.Rollback()
		s.tx = tx
		d, err = newDraft(s, batches)
		return err
	})
	if err != nil || !writes(batches) {
		return err
	}
	d.own.lsn = lsn
	if b.bare || b.readOnly {
		return b.update(d.own.fold)
	}
	if err := b.makeLogRoom(d.frame); err != nil {
		return err
	}
	err = b.log.Append(lsn, d.frame)
	if errors.Is(err, redo.ErrNoSpace) && slices.ContainsFunc(noRoom, func(e error) bool { return errors.Is(err, e) }) {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	b.layers.Lock()
	b.newest.add(&d.own)
	b.layers.Unlock()
	return nil
}

// update runs one write transaction of bbolt.
func (b *Bolt) update(fn func(*bbolt.Tx) error) (err error) {
	if b.readOnly {
		return fmt.Errorf("%w: it was opened only to be read", ErrReadOnly)
	}
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
		b.txid.Store(txid)
	case b.onlyFull(err):
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return err
}

// use keeps the store open until release is called. The error is ErrClosed, the one that has poisoned the store, or
// that of ctx.
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
		return nil // the write itself will fail if the disk is full
	}
	return b.enough(free)
}

// enough returns nil if the disk has enough free bytes for commits to be tried, and an error that wraps ErrReadOnly
// otherwise.
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

// onlyFull reports whether a transaction failed for lack of space and certainly changed nothing.
// That is so if both meta pages are as the commit before left them: the pages that were written are
// then part of no tree. Nothing is lost and nothing in doubt, so the store is not poisoned. No
// other write transaction is open.
func (b *Bolt) onlyFull(err error) bool {
	full := slices.ContainsFunc(noRoom, func(e error) bool { return errors.Is(err, e) })
	// For a file that cannot grow, bbolt's error does not wrap the system's. Its words for a file that cannot be
	// synced are different.
	if !full && !strings.HasPrefix(err.Error(), "file resize error: ") {
		return false
	}
	m, readErr := b.metas()
	return readErr == nil && !m.torn() && m.last() == b.txid.Load()
}

// noRoom are the system's errors for a full disk: no space, no quota, a file as large as this
// process may make it. Too many open files are among them, because creating the redo log fails with
// that error.
var noRoom = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE}

// Backup implements Store. The copy is a store of its own: put it into an empty
// directory as FileName. The redo log goes into the file first. Use BackupFile for a
// store that is read-only or has no room for that.
func (b *Bolt) Backup(ctx context.Context, w io.Writer) error {
	release, err := b.use(ctx)
	if err != nil {
		return err
	}
	defer release()
	b.writing.Lock()
	err = b.flush()
	b.writing.Unlock()
	if err != nil {
		return err
	}
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
	paths := []string{b.db.Path()}
	if !b.bare {
		paths = append(paths, redo.Paths(b.dir)...)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			s.Size += info.Size()
		}
	}
	pages := b.db.Stats()
	s.Free = int64(pages.FreePageN+pages.PendingPageN) * int64(b.db.Info().PageSize)
	if info, err := os.Stat(b.db.Path()); err == nil {
		// bbolt makes its file longer than it needs.
		_ = b.view("file", func(tx *bbolt.Tx) error { s.Free += info.Size() - tx.Size(); return nil })
	}
	return s
}

// Close implements Store. Unless the store is poisoned, Close puts all commits into the
// file and removes the redo log. It leaves a mark in the file that spares the next process
// the check.
func (b *Bolt) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	b.writing.Lock()
	defer b.writing.Unlock()
	if b.readOnly || b.poison.Load() != nil {
		_ = b.running.outcome() // that of a store that failed
		return errors.Join(b.log.Close(false), b.db.Close())
	}
	err := b.flush()
	if err == nil {
		err = b.update(func(tx *bbolt.Tx) error { return tx.Bucket(own).Put(cleanKey, []byte{1}) })
	}
	err = errors.Join(err, b.log.Close(err == nil))
	return errors.Join(err, b.db.Close())
}
