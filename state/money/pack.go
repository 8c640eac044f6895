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

// packEntries is how many entries make a pack, at least. A larger pack is smaller per entry and slower to read for
// one of them.
const packEntries = 128

// maxPageBody bounds what a deflated page claims to be: the entries of a pack, and of the Post that filled it, with
// the longest names that there can be.
const maxPageBody = 64 << 20

// packedName is the fact that says up to which sequence number the pages of the ledger were packed.
const packedName = "ledger/packed"

// Pack joins the oldest pages of the ledger that were not packed yet into compressed ones, until limit entries
// (MaxFold if 0) are in them, and returns how many; if that is limit or beyond there may be more. Pages that do not
// fill a pack wait for more. Every entry and receipt is found as before: a pack takes the place of its pages in one
// commit, under the key of the last.
func Pack(ctx context.Context, s *state.State, limit int) (int, error) {
	if limit <= 0 || limit > MaxFold {
		limit = MaxFold
	}
	m := state.MemoryOf[*ledgerMemory](s)
	m.folding.Lock()
	defer m.folding.Unlock()
	// As in Fold, the disk is read before the command. Only Fold and Pack change pages.
	p := packer{mark: packedThrough(s.View()), fill: m.packEntries}
	err := readPages(ctx, s, p.mark+1, 0, func(page []Entry) error {
		p.add(page)
		if p.packed >= limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return 0, fmt.Errorf("pack the ledger: %w", err)
	}
	if p.packed == 0 {
		return 0, nil
	}
	return state.Do(ctx, s, p.write)
}

// packer is one run of Pack.
type packer struct {
	mark    uint64    // where it begins
	fill    int       // entries that make a pack, at least
	open    [][]Entry // pages that do not fill a pack yet
	entries int       // in them
	packs   []pack
	packed  int // entries in packs
}

// pack is one page in place of several.
type pack struct {
	pages []uint64 // these, by their last entries
	value []byte
}

func (p *packer) add(page []Entry) {
	p.open = append(p.open, page)
	if p.entries += len(page); p.entries < p.fill {
		return
	}
	var made pack
	var w pageWriter
	w.begin(nil, map[string]uint64{})
	for _, page := range p.open {
		for i := range page {
			w.add(&page[i], page[i].receipt)
		}
		made.pages = append(made.pages, page[len(page)-1].Sequence)
	}
	made.value = deflatePage(w.end())
	p.packs = append(p.packs, made)
	p.packed += p.entries
	p.open, p.entries = nil, 0
}

// write is the command.
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

// packedThrough is the sequence number of the last entry that was packed or folded.
func packedThrough(v state.View) uint64 {
	return max(foldedThrough(v), v.NumberFact(packedName))
}

// deflatePage makes a deflated page of a plain one.
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
	if err != nil { // a level that there is, and a writer that never fails
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
		// The claim is not believed before that much is there.
		body, err := io.ReadAll(io.LimitReader(r, int64(size)+1))
		if err != nil || uint64(len(body)) != size {
			return nil, errPage
		}
		return body, nil
	}
	return nil, errPage
}
