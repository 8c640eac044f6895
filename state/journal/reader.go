package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"stagedoor/state/journal/redo"
)

// ReadBolt opens a store's file, in whatever directory and under whatever name,
// to be read only: a store that no process has open, or a backup. It looks at
// every page first and changes nothing, so it also is the way to look at a store
// that OpenBolt would refuse.
func ReadBolt(path string, o Options) (*Bolt, error) {
	o = o.filled()
	o.readOnly = true
	o.bare = filepath.Base(path) != FileName // a backup has no redo log
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read store: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("read store: %s is a directory, not the file of a store", path)
	case info.Size() == 0:
		return nil, fmt.Errorf("read store %s: %w", path, &CorruptError{Table: "file", Reason: "is empty"})
	}
	db, err := openFile(path, o)
	if err != nil {
		return nil, fmt.Errorf("read store %s: %w", path, err)
	}
	b := newBolt(db, path, o)
	if err := b.examine(); err != nil {
		return nil, fmt.Errorf("read store %s: %w", path, errors.Join(err, db.Close()))
	}
	return b, nil
}

// examine is prepare for a store that must not be changed.
func (b *Bolt) examine() error {
	if _, err := b.inspect(); err != nil {
		return err
	}
	if err := b.verify(); err != nil {
		return err
	}
	var id redo.ID
	if err := b.view("file", func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(own)
		if bucket == nil {
			return damaged("is not a store")
		}
		copy(id[:], bucket.Get(idKey))
		return nil
	}); err != nil {
		return err
	}
	return b.recover(id)
}
