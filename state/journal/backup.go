package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"stagedoor/state/journal/fsync"
	"stagedoor/state/ownership"
)

// BackupFile writes a backup of s to path and looks at every page of it before it
// gets that name: what is there under a backup's name is a whole one. A file that
// is there already is not replaced. It returns the bytes of the backup. Only a
// store of one file (Bolt) makes backups that can be looked at.
func BackupFile(ctx context.Context, s Store, path string) (size int64, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return 0, errors.Join(fmt.Errorf("back up to %s: %w", path, os.ErrExist), err)
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return 0, fmt.Errorf("back up: %w", err)
	}
	err = installFile(path, os.Link, func(tmp *os.File) error {
		write := func(ctx context.Context, tmp *os.File) error { return s.Backup(ctx, tmp) }
		if b, ok := s.(*Bolt); ok {
			write = b.copy
		}
		if err := errors.Join(write(ctx, tmp), tmp.Sync()); err != nil {
			return err
		}
		info, err := tmp.Stat()
		if err != nil {
			return err
		}
		size = info.Size()
		b, err := ReadBolt(tmp.Name(), Options{})
		if err != nil {
			return err
		}
		return b.Close()
	})
	if err != nil {
		return 0, fmt.Errorf("back up to %s: %w", path, err)
	}
	return size, nil
}

// copy writes to tmp what the store holds at one moment: the file, and over it what
// the file does not have yet. The store itself is only read.
func (b *Bolt) copy(ctx context.Context, tmp *os.File) error {
	release, err := b.use(ctx)
	if err != nil {
		return err
	}
	defer release()
	var news [][]change
	var lsn uint64
	if err := b.read(Tables(), nil, nil, func(tx *bbolt.Tx, over [][]change, at uint64) error {
		if at != ownLSN(tx) {
			news, lsn = over, at
		}
		_, err := tx.WriteTo(untilDone{ctx, tmp})
		return err
	}); err != nil || lsn == 0 {
		return err
	}
	return guarded("file", func() error { return overwrite(tmp.Name(), news, lsn) })
}

// overwrite puts the changes of each table, up to a commit, into the file of a store.
// It syncs nothing.
func overwrite(path string, news [][]change, lsn uint64) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoSync: true, NoGrowSync: true})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for i, changes := range news {
			if err := foldTable(tx, tables[i], changes); err != nil {
				return err
			}
		}
		return putLSN(tx, lsn)
	})
	return errors.Join(err, db.Close())
}

// installFile makes a file that has its name only once it is whole and durable. name
// is os.Link, which leaves a file that is there alone, or os.Rename, which
// replaces it.
func installFile(path string, name func(from, to string) error, fill func(*os.File) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after a rename there is none
	if err := errors.Join(ownership.File(tmp), fill(tmp), tmp.Close()); err != nil {
		return err
	}
	if err := name(tmp.Name(), path); err != nil {
		return err
	}
	return fsync.Dir(filepath.Dir(path))
}

// unfinished is the name of files that are being made.
const unfinished = "new-*.db"
