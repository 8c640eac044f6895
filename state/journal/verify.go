package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// verify looks at every page of a store that was not closed. It must not run
// beside a writer, so it is part of opening.
//
// bbolt's own check is the last step and not the first: it believes what pages
// say about themselves. A damaged one sends it, and every cursor, into memory
// that is not there or round in circles, and it runs in a goroutine of its own,
// where a fault ends the process. So a walk that believes nothing goes before.
func (b *Bolt) verify() error {
	file, err := os.Open(b.db.Path())
	if err != nil {
		return err
	}
	defer file.Close()
	return b.view("file", func(tx *bbolt.Tx) error {
		size := int64(b.db.Info().PageSize)
		w := walk{file: file, pageSize: size, pages: uint64(tx.Size() / size), seen: map[uint64]bool{}}
		if err := w.page(uint64(tx.Cursor().Bucket().Root()), span{}); err != nil {
			return err
		}
		if err := verifyLengths(tx, int(w.pages)); err != nil {
			return err
		}
		var first error
		for err := range tx.Check() { // that no page is both free and in use
			if first == nil {
				first = damaged("fails its check (%v)", err)
			}
		}
		return first
	})
}

// damaged returns the error of a damaged file. The text continues a sentence that begins with the
// file.
func damaged(format string, args ...any) error {
	return &CorruptError{Table: "file", Reason: fmt.Sprintf(format, args...)}
}

// verifyLengths finds pages, of the free list too, that claim to reach beyond
// the end. One of the two meta pages may be what a power cut left of it.
func verifyLengths(tx *bbolt.Tx, pages int) error {
	for id := 2; id < pages; {
		info, err := tx.Page(id)
		if err != nil {
			return err
		}
		if info.Type == "free" { // what it says is old
			id++
			continue
		}
		id += 1 + info.OverflowCount
		if id > pages {
			return damaged("has a page %d that reaches beyond its end", info.ID)
		}
	}
	return nil
}

// walk goes through the pages of bbolt's file format (version 2): a header of 16
// bytes, then elements of 16 bytes that point at keys and values behind them.
type walk struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64
	seen     map[uint64]bool
}

const (
	pageHeader  = 16
	elementSize = 16
	branchPage  = 1
	leafPage    = 2
	bucketLeaf  = 1 // flag of a leaf element: the value is a bucket
	bucketRoot  = 16
)

// span bounds the keys below a branch: low <= key < high; nil is open.
type span struct{ low, high []byte }

// page checks a page and everything below it. Each page may be reached only once, which also ends
// the walk of a file whose pages point in a circle. s has the keys that the page may hold.
func (w *walk) page(id uint64, s span) error {
	if id < 2 || id >= w.pages || w.seen[id] {
		return damaged("points at page %d twice or wrongly", id)
	}
	w.seen[id] = true
	head := make([]byte, pageHeader)
	if _, err := w.file.ReadAt(head, int64(id)*w.pageSize); err != nil {
		return err
	}
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head) != id || overflow >= w.pages-id {
		return damaged("has a wrong header on page %d", id)
	}
	page := make([]byte, int64(1+overflow)*w.pageSize)
	if _, err := w.file.ReadAt(page, int64(id)*w.pageSize); err != nil {
		return err
	}
	return w.node(id, page, s)
}

// node checks one page, or a small bucket that lies within page id.
func (w *walk) node(id uint64, page []byte, s span) error {
	if len(page) < pageHeader {
		return damaged("has a cut bucket on page %d", id)
	}
	kind, count := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	// Only an empty bucket has an empty page, and lies within another one.
	if (kind != branchPage && kind != leafPage) || (count == 0 && len(page) > pageHeader) || pageHeader+count*elementSize > len(page) {
		return damaged("has a wrong header on page %d", id)
	}
	keys := make([][]byte, count)
	for i := range keys {
		at := pageHeader + i*elementSize
		pos, length := page[at:], page[at+4:] // branch: pos, key, page
		if kind == leafPage {
			pos, length = page[at+4:], page[at+8:] // leaf: flags, pos, key, value
		}
		// Keys begin right behind the elements. Where they do not, the count is
		// wrong, and records are missing.
		if i == 0 && at+int(binary.NativeEndian.Uint32(pos)) != pageHeader+count*elementSize {
			return damaged("has a wrong count on page %d", id)
		}
		var ok bool
		if keys[i], ok = cut(page, at, pos, length); !ok {
			return damaged("has a key beyond page %d", id)
		}
		if s.low != nil && bytes.Compare(keys[i], s.low) < 0 || s.high != nil && bytes.Compare(keys[i], s.high) >= 0 ||
			i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return damaged("has the key %q in a wrong place on page %d", keys[i], id)
		}
	}
	if kind == branchPage {
		return w.children(page, keys, s)
	}
	return w.values(id, page, keys)
}

// cut returns the bytes that an element points at, counted from the element.
func cut(page []byte, at int, pos, length []byte) ([]byte, bool) {
	from := uint64(at) + uint64(binary.NativeEndian.Uint32(pos))
	to := from + uint64(binary.NativeEndian.Uint32(length))
	if to > uint64(len(page)) {
		return nil, false
	}
	return page[from:to], true
}

// children checks the pages below a branch. Each may hold the keys from its own up to that of the
// next one.
func (w *walk) children(page []byte, keys [][]byte, s span) error {
	for i, key := range keys {
		below := span{low: key, high: s.high}
		if i+1 < len(keys) {
			below.high = keys[i+1]
		}
		child := binary.NativeEndian.Uint64(page[pageHeader+i*elementSize+8:])
		if err := w.page(child, below); err != nil {
			return err
		}
	}
	return nil
}

// values checks that values lie within the page, and follows buckets. What is in
// a value is checked by its own sum when it is read.
func (w *walk) values(id uint64, page []byte, keys [][]byte) error {
	for i, key := range keys {
		at := pageHeader + i*elementSize
		length := binary.NativeEndian.AppendUint32(nil, uint32(len(key))+binary.NativeEndian.Uint32(page[at+12:]))
		both, ok := cut(page, at, page[at+4:], length)
		if !ok || len(both) < len(key) {
			return damaged("has a value beyond page %d", id)
		}
		if binary.NativeEndian.Uint32(page[at:])&bucketLeaf == 0 {
			continue
		}
		value := both[len(key):]
		if len(value) < bucketRoot {
			return damaged("has a cut bucket on page %d", id)
		}
		var err error
		if root := binary.NativeEndian.Uint64(value); root != 0 {
			err = w.page(root, span{})
		} else if len(value) < bucketRoot+pageHeader || binary.NativeEndian.Uint16(value[bucketRoot+8:]) != leafPage {
			err = damaged("has a wrong bucket on page %d", id)
		} else {
			err = w.node(id, value[bucketRoot:], span{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
