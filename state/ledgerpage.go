package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/state/journal"
)

// A page is a record of the ledger: the entries of one Post. They are of one account
// and one time, and their sequence numbers follow each other, so that is said once;
// and a commit of a hundred settlements gives the durable store one record to find a
// place for. Its key is the sequence of its last entry, so the page of any entry is
// the first one from its sequence on.
//
//	{"account":"1","previous":7,"at":"2026-03-31T12:00:00Z","entries":[{"kind":"settle",...},...]}
//
// previous is that of the first entry; of the others it is the one before. Files of
// schema 7 and before have a record for each entry, which is the entry itself.

// pageWriter writes a page.
type pageWriter struct {
	b       []byte
	entries int
}

// What an entry takes, about, and its page besides.
const (
	entryRoom = 320
	pageRoom  = 128
)

// add appends an entry, with the receipt of a terminal one. at is e.At as records
// have it. The receipt is not taken from e, which would make room for each on the
// heap.
func (w *pageWriter) add(e *Entry, at []byte, r *Receipt) {
	if w.entries == 0 {
		o := object{append(w.b, '{'), true}
		o.text("account", e.Account)
		o.number("previous", int64(e.Previous))
		o.stamp("at", at)
		o.key("entries")
		w.b = append(o.b, '[')
	} else {
		w.b = append(w.b, ',')
	}
	w.b = e.appendTo(w.b, r)
	w.entries++
}

// end returns the page.
func (w *pageWriter) end() []byte { return append(w.b, "]}"...) }

// appendTo appends what an entry says besides its page, without a hold that has its
// own sequence.
func (e *Entry) appendTo(b []byte, r *Receipt) []byte {
	o := object{append(b, '{'), true}
	o.text("kind", string(e.Kind))
	o.number("amount", e.Amount)
	o.number("held", e.Held)
	if e.Hold != e.Sequence {
		o.number("hold", int64(e.Hold))
	}
	o.text("request", e.Request)
	o.text("model", e.Model)
	o.text("reason", e.Reason)
	if r != nil {
		o.key("receipt")
		o.b = r.appendCarried(o.b)
	}
	return o.end()
}

// decodePage returns the entries of a record of the ledger, at least one.
func decodePage(rec journal.Record) ([]Entry, error) {
	type stored struct {
		Entry
		Receipt *carried `json:"receipt"`
	}
	var page struct {
		stored
		Entries []stored `json:"entries"`
	}
	if len(rec.Key) != 8 || json.Unmarshal(rec.Value, &page) != nil {
		return nil, corruptPage(rec, "is not a page of the ledger")
	}
	whole := page.Entries == nil // an entry of schema 7 or before
	if whole {
		page.Entries = []stored{page.stored}
	}
	last, n := sequenceOf(rec.Key), uint64(len(page.Entries))
	if n == 0 || n > last {
		return nil, corruptPage(rec, fmt.Sprintf("has %d entries", n))
	}
	if page.Previous > last-n { // who follows it backwards would go round in circles
		return nil, corruptPage(rec, "follows itself")
	}
	entries := make([]Entry, n)
	for i := range page.Entries {
		e, r := &entries[i], page.Entries[i].Receipt
		*e = page.Entries[i].Entry
		e.Sequence = last - n + 1 + uint64(i)
		if !whole {
			e.Account, e.At, e.Previous = page.Account, page.At, e.Sequence-1
		}
		if i == 0 {
			e.Previous = page.Previous
		}
		if e.ends() && e.Hold == 0 {
			e.Hold = e.Sequence
		}
		if r == nil {
			continue
		}
		if !e.ends() {
			return nil, corruptPage(rec, "has a receipt of what ended nothing")
		}
		e.receipt = r.of(e)
	}
	return entries, nil
}

// excerpt is a page with one entry of a page, which is all that needs decoding for
// that one. What has no such entry, or another form, is returned as it is.
func excerpt(rec journal.Record, sequence uint64) journal.Record {
	if len(rec.Key) != 8 || !json.Valid(rec.Value) {
		return rec
	}
	page := gjson.ParseBytes(rec.Value)
	entries := page.Get("entries").Array()
	n, last := uint64(len(entries)), sequenceOf(rec.Key)
	if n < 2 || n > last || sequence > last || sequence <= last-n {
		return rec
	}
	previous := sequence - 1
	if sequence == last-n+1 {
		previous = page.Get("previous").Uint()
	}
	o := newObject(entryRoom + pageRoom)
	o.text("account", page.Get("account").Str)
	o.number("previous", int64(previous))
	o.stamp("at", []byte(page.Get("at").Raw))
	o.key("entries")
	o.b = append(append(append(o.b, '['), entries[n-1-(last-sequence)].Raw...), ']')
	return journal.Record{Key: sequenceKey(sequence), Value: o.end(), Rev: rec.Rev}
}

func corruptPage(rec journal.Record, reason string) error {
	return &journal.CorruptError{Table: journal.Ledger, Key: slices.Clone(rec.Key), Reason: reason}
}

// pages calls fn with up to limit (0: all) pages from that of a sequence number on,
// in order: those before the key end, or (nil) to the last. fn must not call State.
func (s *State) pages(ctx context.Context, from uint64, end []byte, limit int, fn func([]Entry) error) error {
	return s.store.Range(ctx, journal.Ledger, sequenceKey(from), end, limit, func(rec journal.Record) error {
		entries, err := decodePage(rec)
		if err != nil {
			return err
		}
		return fn(entries)
	})
}

// Ledger calls fn with the entries after a sequence number, in order. fn must
// not call State.
func (s *State) Ledger(ctx context.Context, after uint64, fn func(Entry) error) error {
	return s.pages(ctx, after+1, nil, 0, func(entries []Entry) error {
		for _, e := range entries {
			if e.Sequence <= after {
				continue
			}
			if err := fn(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// entryReader finds entries one by one. It keeps the page of the last one, where the
// one before is mostly, too.
type entryReader struct {
	state *State
	page  []Entry
}

// entry is journal.ErrNotFound where there is none.
func (r *entryReader) entry(ctx context.Context, sequence uint64) (Entry, error) {
	if e := r.onPage(sequence); e != nil {
		return *e, nil
	}
	err := r.state.pages(ctx, sequence, nil, 1, func(entries []Entry) error { r.page = entries; return nil })
	if err != nil {
		return Entry{}, fmt.Errorf("read ledger entry %d: %w", sequence, unavailable(err))
	}
	if e := r.onPage(sequence); e != nil {
		return *e, nil
	}
	return Entry{}, fmt.Errorf("read ledger entry %d: %w", sequence, journal.ErrNotFound)
}

func (r *entryReader) onPage(sequence uint64) *Entry {
	if len(r.page) == 0 || sequence < r.page[0].Sequence || sequence > r.page[len(r.page)-1].Sequence {
		return nil
	}
	return &r.page[sequence-r.page[0].Sequence]
}

// alone makes page that of one entry and reads nothing else of it: pages are long,
// and who follows an index wants an entry here and there.
func (r *entryReader) alone(ctx context.Context, sequence uint64) error {
	return r.state.store.Range(ctx, journal.Ledger, sequenceKey(sequence), nil, 1, func(rec journal.Record) (err error) {
		r.page, err = decodePage(excerpt(rec, sequence))
		return err
	})
}

// kept is an entry that was made, or nil: it was folded.
func (r *entryReader) kept(ctx context.Context, sequence uint64) (*Entry, error) {
	e, err := r.entry(ctx, sequence)
	if err == nil {
		return &e, nil
	}
	if !errors.Is(err, journal.ErrNotFound) {
		return nil, err
	}
	folded, err := r.state.isFolded(ctx, sequence)
	if err != nil || folded {
		return nil, err
	}
	return nil, &journal.CorruptError{Table: journal.Ledger, Key: sequenceKey(sequence), Reason: "is missing"}
}
