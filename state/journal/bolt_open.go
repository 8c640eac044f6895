package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"stagedoor/state/journal/fsync"
	"stagedoor/state/journal/redo"
	"stagedoor/state/ownership"
)

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

// open opens a file that exists, checks it, and takes up what the last process left in the redo
// log.
func open(path string, o Options) (*Bolt, error) {
	db, err := openFile(path, o)
	if err != nil {
		return nil, err
	}
	b := newBolt(db, path, o)
	if err := b.prepare(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return b, nil
}

// newBolt returns the store of an open file before its checks. It cannot be used until prepare has
// returned.
func newBolt(db *bbolt.DB, path string, o Options) *Bolt {
	return &Bolt{db: db, dir: filepath.Dir(path), readOnly: o.readOnly, bare: o.bare, lowWater: o.LowWater, freeSpace: o.freeSpace,
		redoOptions: redo.Options{Size: o.redoSize, OpenFile: o.openFile}, checkpointAfter: o.checkpointAfter,
		newest: &overlay{}}
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
	if err := noRedo(filepath.Dir(path)); err != nil {
		if _, statErr := os.Stat(path); statErr == nil {
			return nil // another process was first
		}
		return err
	}
	o.openFile, o.bare = os.OpenFile, true
	err := installFile(path, os.Link, func(tmp *os.File) error {
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

// noRedo refuses to make a store beside the redo log of one that is not there.
func noRedo(dir string) error {
	for _, name := range redo.Names {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(damaged("is not there, but its %s is", name), err)
		}
	}
	return nil
}

// makeDir creates the directory and makes its name durable. Without the sync, a power cut could
// take the directory away with a store in it that has been reported as written.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := ownership.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return fsync.Dir(filepath.Dir(filepath.Clean(dir)))
}

// pageSize is the size of the pages in new files, and in those that Compact writes. Older
// files keep theirs, which their header has. A commit writes page by page, and a page costs
// the system nearly the same whether it has 4 KiB or 16 KiB. Larger ones cost more to copy
// than they save.
const pageSize = 16 << 10

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

// mappedAhead is the number of bytes of addresses into which a store's file is mapped beyond its end, so that it can
// grow while it is read: bbolt maps a file that outgrows its mapping anew, and waits for all reads before. A backup
// reads for as long as it takes to copy the file, and all commits would wait with it. The addresses take no memory.
const mappedAhead = 16 << 30

// growth is the number of bytes by which the file grows beyond what a write needs.
const growth = 64 << 10

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
	mapped := 0
	if info, err := os.Stat(path); err == nil && !o.readOnly && strconv.IntSize == 64 {
		mapped = int(info.Size() + mappedAhead)
	}
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         o.Timeout,
		InitialMmapSize: mapped,
		FreelistType:    bbolt.FreelistMapType,
		PageSize:        pageSize,
		ReadOnly:        o.readOnly,
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
	db.AllocSize = growth
	return db, file, nil
}

// unreadable returns the reason why bbolt could not read a file. For a file that was cut off, which
// is the most frequent case, bbolt reports only a memory fault, so the length is compared here with
// what the file's own header demands.
func unreadable(file *os.File, cause any) string {
	if file != nil {
		info, err := file.Stat()
		m, metaErr := readMetas(file, pageSizeOf(file))
		if err == nil && metaErr == nil && info.Size() < m.size() {
			return fmt.Sprintf("has %d bytes of %d", info.Size(), m.size())
		}
	}
	return fmt.Sprintf("cannot be read (%v)", cause)
}

// prepare makes an open file ready for use. It checks the file, page by page if the last process
// did not close it, creates missing tables, removes the mark of a closed store, and takes up the
// redo log. The mark is removed in the first write, so that a crash from here on leads to a check.
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
	var id redo.ID
	if err := b.update(func(tx *bbolt.Tx) error {
		for _, t := range tables {
			if _, err := tx.CreateBucketIfNotExists([]byte(t)); err != nil {
				return err
			}
		}
		bucket, err := tx.CreateBucketIfNotExists(own)
		if err != nil {
			return err
		}
		if copy(id[:], bucket.Get(idKey)) == 0 {
			rand.Read(id[:])
		}
		return errors.Join(bucket.Put(idKey, id[:]), bucket.Put(schemaKey, []byte{schemaVersion}), bucket.Delete(cleanKey))
	}); err != nil {
		return err
	}
	if err := b.recover(id); err != nil {
		return err
	}
	if b.bare {
		return nil
	}
	return b.checkpointRecovered()
}

// checkpointRecovered starts a checkpoint of what recover read from the log of the last process, and removes
// that log when it has succeeded. If the disk has no room for it, the log stays, and the store can
// only be read (makeLogRoom tries again at each commit).
func (b *Bolt) checkpointRecovered() error {
	if b.newest.lsn == 0 {
		return redo.Remove(b.dir)
	}
	b.older, b.newest = b.newest, &overlay{}
	b.running, b.inherited = b.start(b.older), true
	if err := b.freeze(); !errors.Is(err, ErrReadOnly) {
		return err
	}
	return nil
}

// recover reads the redo log of the last process. Commits after the last one in bbolt's file become
// the newest overlay, as if they had just been made.
func (b *Bolt) recover(id redo.ID) error {
	b.log = redo.New(b.dir, id, b.redoOptions)
	var lsn uint64
	if err := b.view("file", func(tx *bbolt.Tx) error { lsn = ownLSN(tx); return nil }); err != nil {
		return err
	}
	if !b.bare {
		logged, err := redo.Read(b.dir, id, lsn)
		var damage *redo.DamageError
		if errors.As(err, &damage) {
			return damaged("%s", damage.Reason)
		}
		if err != nil {
			return err
		}
		for _, c := range logged.Commits {
			if err := addCommit(b.newest, c); err != nil {
				return err
			}
		}
		// What follows in the log was not lost with a page of the file.
		b.cutBack = logged.Torn || b.cutBack && len(logged.Commits) == 0
	}
	b.lsn.Store(max(lsn, b.newest.lsn))
	return nil
}

// inspect checks the length of the file and the store's own records, and reports whether the last
// process closed the store. A new file counts as closed. It runs before verify, and refuses the
// file of another program or of another version.
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
		if v[0] != schemaVersion {
			return fmt.Errorf("%w: it has schema %d and this program needs %d", ErrSchema, v[0], schemaVersion)
		}
		for _, t := range tables {
			if tx.Bucket([]byte(t)) == nil {
				return &CorruptError{Table: t, Reason: "is missing"}
			}
		}
		clean = bucket.Get(cleanKey) != nil
		return nil
	})
	return clean, err
}
