package money

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// packEntries is the smallest number of entries in a pack. A larger pack takes less space for each
// entry, but reading one entry takes longer.
const packEntries = 128

// maxPageBody is the largest length that a deflated page may claim: more than a pack with the
// longest possible names needs.
const maxPageBody = 64 << 20

// packedName is the fact that says up to which sequence number the pages of the ledger were packed.
const packedName = "ledger/packed"

// Pack joins the oldest unpacked pages of the ledger into compressed pages until they hold limit
// entries (MaxFold if 0). It returns the number of entries; if that is limit or more, there may be
// more to pack. Pages that do not fill a pack are left for a later call. Entries and receipts are
// found as before, because a pack replaces its pages in one commit and has the key of the last.
func Pack(ctx context.Context, s *state.State, limit int) (int, error) {
	if limit <= 0 || limit > MaxFold {
		limit = MaxFold
	}
	m := state.MemoryOf[*ledgerMemory](s)
	m.folding.Lock()
	defer m.folding.Unlock()
	// As in Fold, the pages are read before the command. Only Fold and Pack change pages.
	p := packer{mark: packedThrough(s.View()), fill: m.packEntries}
	err := readPages(ctx, s, p.mark+1, 0, func(page []Entry) error {
		p.add(page)
		if p.packed >= limit {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return 0, fmt.Errorf("pack the ledger: %w", err)
	}
	if p.packed == 0 {
		return 0, nil
	}
	return state.Do(ctx, s, p.write)
}

// packer collects the pages of one Pack.
type packer struct {
	mark    uint64    // sequence number up to which the ledger was packed before
	fill    int       // smallest number of entries in a pack
	open    [][]Entry // pages that do not fill a pack yet
	entries int       // number of entries in them
	packs   []pack
	packed  int // entries in packs
}

// pack is one page that replaces several.
type pack struct {
	pages []uint64 // the replaced pages, each named by its last entry
	value []byte
}

// add adds a page and completes a pack if it is full.
func (p *packer) add(page []Entry) {
	p.open = append(p.open, page)
	if p.entries += len(page); p.entries < p.fill {
		return
	}
	var made pack
	var w pageWriter
	w.start(nil, map[string]uint64{})
	for _, page := range p.open {
		for i := range page {
			w.add(&page[i], page[i].receipt)
		}
		made.pages = append(made.pages, page[len(page)-1].Sequence)
	}
	made.value = deflatePage(w.finish())
	p.packs = append(p.packs, made)
	p.packed += p.entries
	p.open, p.entries = nil, 0
}

// write is the command that stores the packs and removes the pages that they replace.
func (p *packer) write(tx *state.Tx) (int, error) {
	if packedThrough(tx.View()) != p.mark {
		return 0, nil // another call packed or folded these
	}
	last := uint64(0)
	for _, made := range p.packs {
		for _, page := range made.pages[:len(made.pages)-1] {
			tx.Op(journal.Op{Kind: journal.Delete, Table: journal.Ledger, Key: state.SequenceKey(page)})
		}
		last = made.pages[len(made.pages)-1]
		tx.Op(journal.Op{Kind: journal.Put, Table: journal.Ledger, Key: state.SequenceKey(last), Value: made.value})
	}
	return p.packed, tx.PutNumberFact(packedName, last)
}

// packedThrough returns the sequence number of the last entry that was packed or folded.
func packedThrough(v state.View) uint64 {
	return max(foldedThrough(v), v.NumberFact(packedName))
}

// deflatePage returns a plain page in compressed form.
func deflatePage(plain []byte) []byte {
	body := plain[1:]
	var b bytes.Buffer
	b.Write(binary.AppendUvarint([]byte{deflatedPage}, uint64(len(body))))
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // cannot happen: the level is valid and a bytes.Buffer never fails
		panic(err)
	}
	return b.Bytes()
}

// pageBody returns the body of a page in either form.
func pageBody(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errPage
	}
	switch form, rest := value[0], value[1:]; form {
	case plainPage:
		return rest, nil
	case deflatedPage:
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > maxPageBody {
			return nil, errPage
		}
		r := flate.NewReader(bytes.NewReader(rest[n:]))
		defer r.Close()
		// Nothing is allocated for the claimed size before the data is there.
		body, err := io.ReadAll(io.LimitReader(r, int64(size)+1))
		if err != nil || uint64(len(body)) != size {
			return nil, errPage
		}
		return body, nil
	}
	return nil, errPage
}
