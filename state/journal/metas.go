package journal

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// metas are the two pages that bbolt writes in turn: each names the tree of one
// commit. A commit is in force when its page is whole, and the page of the commit
// before stands beside it.
type metas struct {
	whole [2]bool
	txid  [2]uint64
	bytes [2]int64 // of the file that the commit needs
}

// The form of a meta page, behind the header of every page: magic, version, page
// size, flags, root, free list, high-water mark, transaction, checksum.
const (
	metaMagic = 0xED0CDAED
	metaPage  = 8
	metaHigh  = 40
	metaTxid  = 48
	metaSum   = 56
	metaSize  = 64
)

// pageSizeOf returns the size of a file's pages from the first one.
func pageSizeOf(file io.ReaderAt) int {
	page := make([]byte, metaSize)
	if _, err := file.ReadAt(page, pageHeader); err != nil || binary.NativeEndian.Uint32(page) != metaMagic {
		return pageSize
	}
	size := binary.NativeEndian.Uint32(page[metaPage:])
	if size < 1<<10 || size > 64<<10 || size&(size-1) != 0 {
		return pageSize
	}
	return int(size)
}

// readMetas reads both pages of a file whose pages have pageSize bytes.
func readMetas(file io.ReaderAt, pageSize int) (metas, error) {
	var m metas
	for i := range m.whole {
		page := make([]byte, metaSize)
		if _, err := file.ReadAt(page, int64(i*pageSize+pageHeader)); err != nil {
			return metas{}, err
		}
		sum := fnv.New64a()
		sum.Write(page[:metaSum])
		m.whole[i] = binary.NativeEndian.Uint32(page) == metaMagic && binary.NativeEndian.Uint64(page[metaSum:]) == sum.Sum64()
		m.txid[i] = binary.NativeEndian.Uint64(page[metaTxid:])
		m.bytes[i] = int64(binary.NativeEndian.Uint64(page[metaHigh:])) * int64(pageSize)
	}
	return m, nil
}

// torn reports whether one of the pages is not whole: a power cut interrupted the last commit, or
// the disk has damaged the page since.
func (m *metas) torn() bool { return m.whole[0] != m.whole[1] }

// size returns the least length of a file that holds the newest whole commit.
func (m *metas) size() int64 {
	size, last := int64(0), m.last()
	for i, whole := range m.whole {
		if whole && m.txid[i] == last {
			size = m.bytes[i]
		}
	}
	return size
}

// last returns the number of the newest commit that is in force, or 0 if neither page is whole.
func (m *metas) last() uint64 {
	last := uint64(0)
	for i, whole := range m.whole {
		if whole {
			last = max(last, m.txid[i])
		}
	}
	return last
}
