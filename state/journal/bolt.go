package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
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

// OpenBolt opens the store in dir, making both if need be. A file that the last
// process did not close is checked page by page first; a damaged one is refused.
func OpenBolt(dir string, o Options) (*Bolt, error) {
	o = o.filled()
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if err := create(path, o); err != nil {
		return nil, fmt.Errorf("make store in %s: %w", dir, err)
	}
	b, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("open store in %s: %w", dir, err)
	}
	return b, nil
}

func open(path string, o Options) (*Bolt, error) {
	db, err := openFile(path, o)
	if err != nil {
		return nil, err
	}
	b := &Bolt{db: db, dir: filepath.Dir(path), lowWater: o.LowWater, freeSpace: o.freeSpace}
	if err := b.prepare(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return b, nil
}

// create makes the file if there is none: under another name first, so that a
// file under its own name is never an unfinished one. bbolt would take an empty
// file for a new store, and so hide that everything in it was lost. Link, unlike
// Rename, does not replace the file of a process that started at the same time.
func create(path string, o Options) error {
	if info, err := os.Stat(path); err == nil {
		if info.Size() == 0 {
			return &CorruptError{Table: "file", Reason: "is empty"}
		}
		return nil
	}
	o.openFile = os.OpenFile
	err := arrive(path, os.Link, func(tmp *os.File) error {
		b, err := open(tmp.Name(), o)
		if err != nil {
			return err
		}
		return b.Close()
	})
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}

func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(filepath.Clean(dir)))
}

// openFile opens the file and takes its lock. While it waited for the lock
// another file may have taken the name (Compact): what is then written to this
// one would be lost, so it is opened again.
func openFile(path string, o Options) (*bbolt.DB, error) {
	const most = 3
	for try := 1; ; try++ {
		db, file, err := openOnce(path, o)
		if err != nil {
			return nil, err
		}
		named, err := os.Stat(path)
		if err == nil {
			var have os.FileInfo
			if have, err = file.Stat(); err == nil && os.SameFile(named, have) {
				return db, nil
			}
		}
		if err = errors.Join(err, db.Close()); err != nil {
			return nil, err
		}
		if try == most {
			return nil, fmt.Errorf("%w: its file is replaced again and again", ErrLocked)
		}
	}
}

// openOnce opens what the path names. bbolt reads a damaged file with panics and
// memory faults; here they become errors.
func openOnce(path string, o Options) (db *bbolt.DB, file *os.File, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, &CorruptError{Table: "file", Reason: unreadable(file, r)}
			if file != nil {
				unlock(file) // bbolt's mapping keeps the lock beyond Close
				file.Close()
			}
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:      o.Timeout,
		FreelistType: bbolt.FreelistMapType,
		ReadOnly:     o.readOnly,
		// Else its check has nothing to look at.
		PreLoadFreelist: o.readOnly,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := o.openFile(name, flag, mode)
			file = f
			return f, err
		},
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, fmt.Errorf("%w: stop it, or choose another data directory", ErrLocked)
	case errors.As(err, new(*os.PathError)), errors.As(err, new(syscall.Errno)):
		return nil, nil, err // the system's, not the file's
	case err != nil:
		return nil, nil, &CorruptError{Table: "file", Reason: unreadable(file, err)}
	}
	return db, file, nil
}

// unreadable tells why bbolt could not read a file. Most are cut off, of which bbolt
// only says that it met a fault.
func unreadable(file *os.File, cause any) string {
	if file != nil {
		info, err := file.Stat()
		m, metaErr := readMetas(file, os.Getpagesize())
		if err == nil && metaErr == nil && info.Size() < m.size() {
			return fmt.Sprintf("has %d bytes of %d", info.Size(), m.size())
		}
	}
	return fmt.Sprintf("cannot be read (%v)", cause)
}

// prepare checks what is there and leaves the mark that the store is in use.
func (b *Bolt) prepare() error {
	clean, err := b.inspect()
	if err != nil {
		return err
	}
	if !clean {
		if err := b.verify(); err != nil {
			return err
		}
	}
	return b.update(func(tx *bbolt.Tx) error {
		for _, t := range tables {
			if _, err := tx.CreateBucketIfNotExists([]byte(t)); err != nil {
				return err
			}
		}
		bucket, err := tx.CreateBucketIfNotExists(own)
		if err != nil {
			return err
		}
		b.lsn.Store(ownLSN(tx))
		return errors.Join(bucket.Put(schemaKey, []byte{schemaVersion}), bucket.Delete(cleanKey))
	})
}

// inspect looks at the store's own records and tells whether the last process
// closed it. A new file counts as closed.
func (b *Bolt) inspect() (clean bool, err error) {
	err = b.view("file", func(tx *bbolt.Tx) error {
		info, err := os.Stat(b.db.Path())
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return &CorruptError{Table: "file", Reason: fmt.Sprintf("has %d bytes of %d", info.Size(), tx.Size())}
		}
		m, err := b.metas()
		if err != nil {
			return err
		}
		b.cutBack = m.torn()
		bucket := tx.Bucket(own)
		if bucket == nil {
			first, _ := tx.Cursor().First()
			if first != nil {
				return &CorruptError{Table: "file", Reason: "is not a store"}
			}
			clean = true
			return nil
		}
		v := bucket.Get(schemaKey)
		if len(v) != 1 {
			return &CorruptError{Table: "file", Reason: "has no schema version"}
		}
		if v[0] > schemaVersion {
			return fmt.Errorf("%w: schema %d, this one knows %d", ErrSchema, v[0], schemaVersion)
		}
		for _, t := range tables {
			if tx.Bucket([]byte(t)) == nil && v[0] >= laterTables[t] {
				return &CorruptError{Table: t, Reason: "is missing"}
			}
		}
		clean = bucket.Get(cleanKey) != nil
		return nil
	})
	return clean, err
}

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
