package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Sizes are the bytes of a store's file before and after something.
type Sizes struct{ Before, After int64 }

// Compact writes the store in dir anew, without the space that removed records
// left behind, and puts the new file in the place of the old one. Both are looked
// at page by page and record by record; the old one is kept whenever something is
// wrong. No other process may have the store open.
func Compact(ctx context.Context, dir string, o Options) (Sizes, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		return Sizes{}, fmt.Errorf("compact: %w", err)
	}
	b, err := OpenBolt(dir, o)
	if err != nil {
		return Sizes{}, fmt.Errorf("compact: %w", err)
	}
	sizes, err := b.compact(ctx, path)
	if closeErr := b.Close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	if err != nil {
		return Sizes{}, fmt.Errorf("compact: %w", err)
	}
	return sizes, nil
}

// compactTx bounds what one transaction of bbolt's copying holds in memory.
const compactTx = 32 << 20

// compact writes the new file under another name and renames it at the end, after its records were
// counted again. An error before that leaves the old file as it is.
func (b *Bolt) compact(ctx context.Context, path string) (Sizes, error) {
	b.writing.Lock()
	err := b.flush() // the copy is of the file alone
	b.writing.Unlock()
	if err != nil {
		return Sizes{}, err
	}
	if err := b.verify(); err != nil {
		return Sizes{}, err
	}
	before, err := b.tally(ctx)
	if err != nil {
		return Sizes{}, err
	}
	sizes := Sizes{Before: b.Stats().Size}
	err = installFile(path, os.Rename, func(tmp *os.File) error {
		dst, err := bbolt.Open(tmp.Name(), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, PageSize: pageSize})
		if err != nil {
			return err
		}
		// The mark goes first: the copy is closed in order or it gets no name.
		err = b.update(func(tx *bbolt.Tx) error { return tx.Bucket(own).Put(cleanKey, []byte{1}) })
		if err == nil {
			err = bbolt.Compact(dst, b.db, compactTx)
		}
		if err := errors.Join(err, dst.Sync(), dst.Close()); err != nil {
			return err
		}
		if sizes.After, err = recount(ctx, tmp.Name(), before); err != nil {
			return err
		}
		return ctx.Err()
	})
	return sizes, err
}

// recount compares a copy with what it was made from.
func recount(ctx context.Context, path string, want tally) (size int64, err error) {
	b, err := ReadBolt(path, Options{})
	if err != nil {
		return 0, err
	}
	have, err := b.tally(ctx)
	size = b.Stats().Size
	if err := errors.Join(err, b.Close()); err != nil {
		return 0, err
	}
	if have != want {
		return 0, fmt.Errorf("the copy has %d records of %d bytes, not %d of %d", have.records, have.bytes, want.records, want.bytes)
	}
	return size, nil
}

// tally counts the records of a store and their bytes.
type tally struct{ records, bytes int64 }

// tally counts the records of the store and their bytes, for comparison with the copy.
func (b *Bolt) tally(ctx context.Context) (tally, error) {
	var n tally
	_, err := b.Load(ctx, Tables(), func(_ Table, r Record) error {
		n.records++
		n.bytes += int64(len(r.Key) + len(r.Value))
		return nil
	})
	return n, err
}
