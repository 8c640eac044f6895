package money

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// A page is a record of the ledger that holds entries whose sequence numbers rise. Its key is the sequence of its
// last entry, so the page of any entry is the first page from the entry's sequence on. A Post writes one page with
// the entries that it makes. Pack later joins many of them into one page, which is compressed.
//
// A page begins with a byte for its form. A plain page goes on with its body; a deflated one with the uvarint length
// of its body and then the body as a DEFLATE stream. The body is
//
//	uvarint: number of entries | uvarint: last sequence - first sequence | entries
//
// and an entry is
//
//	byte: kind and bits | [sequence, account, previous, at] | amount | held | [hold] |
//	request | model | reason | [receipt]
//
// where the parts in brackets are there if a bit says so. Numbers are varints, times are nanoseconds since the
// entry before, and a text that is repeated in the page is there once: see pageWriter.text.

// The forms of a page.
const (
	plainPage    = 1
	deflatedPage = 2
)

// The bits of an entry's first byte, beside its kind.
const (
	kindBits = 0x07
	// entryJoins: the entry is of the same Post as the one before it in the page, so it has the next sequence,
	// follows that entry in the account's history and has the same time. The index of receipts depends on which entries
	// are of one Post.
	entryJoins   = 0x08
	entryHold    = 0x10 // the hold is given; without it a terminal entry has its own sequence
	entryReceipt = 0x20
	// entrySameModel: the upstream's name of the model is the one that was asked for.
	entrySameModel = 0x40
	// entryCatalog: the receipt names the list of models that its prices are from.
	entryCatalog = 0x80
)

// entryKinds are the kinds by the number that a page has for each, from 1 on.
var entryKinds = [...]EntryKind{"", Credit, Adjust, Begin, Extend, Settle, Release}

// pageWriter encodes a page of the ledger.
type pageWriter struct {
	b     []byte
	names map[string]uint64 // texts of the page with their numbers
	last  Entry             // previous entry, without its receipt
	first uint64            // sequence of the first entry
	count uint64
	head  int // position of the page in b
}

// pageHead is the room that is reserved for the form, the count and the span of a page.
const pageHead = 1 + 2*binary.MaxVarintLen64

// Approximate upper bounds of the bytes of an entry and of the rest of its page.
const (
	entryRoom = 320
	pageRoom  = 128
)

// start starts a page in b. It clears names and uses it.
func (w *pageWriter) start(b []byte, names map[string]uint64) {
	clear(names)
	w.head = len(b)
	*w = pageWriter{b: append(b, make([]byte, pageHead)...), names: names, head: len(b)}
}

// add appends an entry, with its receipt if it closes a hold. The receipt is an argument and not a
// field of e, because that would move each receipt to the heap.
func (w *pageWriter) add(e *Entry, r *Receipt) {
	bits := byte(max(slices.Index(entryKinds[:], e.Kind), 0))
	if e.joins {
		bits |= entryJoins
	}
	if e.Hold != e.ownHold() {
		bits |= entryHold
	}
	if r != nil {
		bits |= entryReceipt
		if r.Upstream == e.Model {
			bits |= entrySameModel
		}
		if r.Catalog != "" {
			bits |= entryCatalog
		}
	}
	w.b = append(w.b, bits)
	if w.count == 0 {
		w.first = e.Sequence
		w.last = Entry{Sequence: e.Sequence, At: time.Unix(0, 0)}
	}
	if !e.joins {
		w.unsigned(e.Sequence - w.last.Sequence)
		w.text(e.Account)
		w.unsigned(e.Sequence - e.Previous)
		w.number(e.At.UnixNano() - w.last.At.UnixNano())
	}
	w.number(e.Amount)
	w.number(e.Held)
	if bits&entryHold != 0 {
		w.number(int64(e.Sequence - e.Hold))
	}
	w.literal(e.Request) // no other entry has it
	w.text(e.Model)
	w.text(e.Reason)
	if r != nil {
		w.receipt(e, r, bits)
	}
	w.count++
	w.last = Entry{Sequence: e.Sequence, Account: e.Account, At: e.At}
}

// ownHold returns the hold of an entry whose hold is not stored.
func (e *Entry) ownHold() uint64 {
	if e.endsHold() {
		return e.Sequence
	}
	return 0
}

// receipt appends the parts of a receipt that the entry does not contain.
func (w *pageWriter) receipt(e *Entry, r *Receipt, bits byte) {
	w.text(r.Key)
	w.texts(r.Scopes)
	if bits&entrySameModel == 0 {
		w.text(r.Upstream)
	}
	w.text(r.Provider)
	w.number(int64(r.Attempts))
	w.usage(&r.Usage)
	w.unsigned(uint64(len(r.Prices)))
	for i := range r.Prices {
		p := &r.Prices[i]
		w.text(p.What)
		w.number(p.Quantity)
		w.number(p.Price)
		w.number(p.Per - perMillion)
	}
	w.texts(r.Flags)
	if bits&entryCatalog != 0 {
		w.text(r.Catalog)
	}
	w.number(e.At.UnixNano() - r.Began.UnixNano())
}

// usageEstimated is the bit for usage that the gateway has estimated. The lower bits say which
// numbers follow.
const usageEstimated = 1 << usageNumbers

const usageNumbers = 7

// numbers returns the fields in the order in which a page stores them. New fields must come last.
func (u *ReceiptUsage) numbers() [usageNumbers]*int64 {
	return [...]*int64{&u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning, &u.Images, &u.Seconds}
}

// usage appends a byte that says which numbers are not zero, and these numbers.
func (w *pageWriter) usage(u *ReceiptUsage) {
	bits := byte(0)
	for i, n := range u.numbers() {
		if *n != 0 {
			bits |= 1 << i
		}
	}
	if u.Estimated {
		bits |= usageEstimated
	}
	w.b = append(w.b, bits)
	for _, n := range u.numbers() {
		if *n != 0 {
			w.number(*n)
		}
	}
}

// unsigned appends a number in as few bytes as it needs.
func (w *pageWriter) unsigned(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

// number appends a number that may be negative.
func (w *pageWriter) number(n int64) { w.b = binary.AppendVarint(w.b, n) }

// literal appends a text with its length.
func (w *pageWriter) literal(s string) {
	w.unsigned(uint64(len(s)))
	w.b = append(w.b, s...)
}

// text appends a text that may occur again in the page: 0 and the text, or the number of its first
// occurrence. Number 1 is the empty text.
func (w *pageWriter) text(s string) {
	if s == "" {
		w.unsigned(1)
		return
	}
	if place, ok := w.names[s]; ok {
		w.unsigned(place)
		return
	}
	w.names[s] = uint64(len(w.names)) + 2
	w.unsigned(0)
	w.literal(s)
}

// texts appends a list of texts, each of which may refer to an earlier one.
func (w *pageWriter) texts(all []string) {
	w.unsigned(uint64(len(all)))
	for _, s := range all {
		w.text(s)
	}
}

// finish returns b with the encoded page at its end.
func (w *pageWriter) finish() []byte {
	head := append(make([]byte, 0, pageHead), plainPage)
	head = binary.AppendUvarint(head, w.count)
	head = binary.AppendUvarint(head, w.last.Sequence-w.first)
	// The entries move to the left, over the part of the reserved head that was not needed.
	at := w.head + copy(w.b[w.head:], head)
	return w.b[:at+copy(w.b[at:], w.b[w.head+pageHead:])]
}

// pageReader decodes the body of a page. After an error all its methods return zero values.
type pageReader struct {
	b     []byte
	names []string
	err   error
}

var errPage = errors.New("is not a page of the ledger")

// fail keeps the error and drops the rest, so that each later read returns zero and the caller
// checks for an error once, at the end.
func (p *pageReader) fail() {
	p.b, p.err = nil, errPage
}

// byte returns the next byte. After the end it returns 0, and the reader has failed.
func (p *pageReader) byte() byte {
	if len(p.b) == 0 {
		p.fail()
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

// unsigned returns the next number that pageWriter.unsigned wrote.
func (p *pageReader) unsigned() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[n:]
	return v
}

// number returns the next number that pageWriter.number wrote.
func (p *pageReader) number() int64 {
	v, n := binary.Varint(p.b)
	if n <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[n:]
	return v
}

// length reads the length of a list or text. Each element takes at least one byte, so a length
// beyond the rest of the page is an error and allocates nothing.
func (p *pageReader) length() int {
	n := p.unsigned()
	if n > uint64(len(p.b)) {
		p.fail()
		return 0
	}
	return int(n)
}

// literal reads a text with its length before it.
func (p *pageReader) literal() string {
	n := p.length()
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

// text reads a text that pageWriter.text has written.
func (p *pageReader) text() string {
	place := p.unsigned()
	switch {
	case place == 1:
		return ""
	case place > uint64(len(p.names))+1:
		p.fail()
		return ""
	case place > 1:
		return p.names[place-2]
	}
	s := p.literal()
	p.names = append(p.names, s)
	return s
}

// texts reads a list of texts, nil if it is empty.
func (p *pageReader) texts() (all []string) {
	for range p.length() {
		all = append(all, p.text())
	}
	return all
}

// decodePage returns the entries of a ledger record. There is at least one.
func decodePage(rec journal.Record) ([]Entry, error) {
	if len(rec.Key) != 8 {
		return nil, corruptPage(rec, errPage.Error())
	}
	body, err := pageBody(rec.Value)
	if err != nil {
		return nil, corruptPage(rec, errPage.Error())
	}
	entries, err := (&pageReader{b: body}).entries(state.SequenceOf(rec.Key))
	if err != nil {
		return nil, corruptPage(rec, err.Error())
	}
	return entries, nil
}

// entries reads all entries of a page whose last sequence number is last. It checks the announced
// number and range before it allocates.
func (p *pageReader) entries(last uint64) ([]Entry, error) {
	n := p.length()
	span := p.unsigned()
	if p.err != nil {
		return nil, p.err
	}
	if n == 0 || span >= last || uint64(n-1) > span {
		return nil, fmt.Errorf("has %d entries of %d sequence numbers", n, span+1)
	}
	entries := make([]Entry, n)
	before := Entry{Sequence: last - span, At: time.Unix(0, 0)}
	for i := range entries {
		e := &entries[i]
		if err := p.entry(e, &before, i == 0); err != nil {
			return nil, err
		}
		before = Entry{Sequence: e.Sequence, Account: e.Account, At: e.At}
	}
	if len(p.b) != 0 || before.Sequence != last {
		return nil, errPage
	}
	return entries, nil
}

// entry reads the entry that follows before.
func (p *pageReader) entry(e, before *Entry, first bool) error {
	bits := p.byte()
	kind := int(bits & kindBits)
	if kind == 0 || kind >= len(entryKinds) || first && bits&entryJoins != 0 {
		return errPage
	}
	e.Kind = entryKinds[kind]
	if e.joins = bits&entryJoins != 0; e.joins {
		e.Sequence, e.Previous, e.Account, e.At = before.Sequence+1, before.Sequence, before.Account, before.At
	} else {
		e.Sequence = before.Sequence + p.unsigned()
		e.Account = p.text()
		e.Previous = e.Sequence - p.unsigned()
		e.At = time.Unix(0, before.At.UnixNano()+p.number()).UTC()
		if p.err == nil && first != (e.Sequence == before.Sequence) || e.Sequence < before.Sequence {
			return errPage
		}
	}
	if p.err == nil && e.Previous >= e.Sequence { // reading backwards would never end
		return errors.New("follows itself")
	}
	e.Amount, e.Held = p.number(), p.number()
	if e.Hold = e.ownHold(); bits&entryHold != 0 {
		e.Hold = e.Sequence - uint64(p.number())
	}
	e.Request, e.Model, e.Reason = p.literal(), p.text(), p.text()
	if bits&entryReceipt != 0 {
		if !e.endsHold() {
			return errors.New("has a receipt of what ended nothing")
		}
		e.receipt = p.receipt(e, bits)
	}
	return p.err
}

// receipt reads the receipt of e. Fields that the entry has are taken from it.
func (p *pageReader) receipt(e *Entry, bits byte) *Receipt {
	r := &Receipt{Request: e.Request, Account: e.Account, Hold: e.Hold, Model: e.Model, Upstream: e.Model,
		Held: e.Held, Charged: e.Amount, Reason: e.Reason, Ended: e.At}
	r.Key, r.Scopes = p.text(), p.texts()
	if bits&entrySameModel == 0 {
		r.Upstream = p.text()
	}
	r.Provider, r.Attempts = p.text(), int(p.number())
	present := p.byte()
	for i, n := range r.Usage.numbers() {
		if present&(1<<i) != 0 {
			*n = p.number()
		}
	}
	r.Usage.Estimated = present&usageEstimated != 0
	r.Prices = make([]PriceRow, p.length())
	for i := range r.Prices {
		r.Prices[i] = PriceRow{p.text(), p.number(), p.number(), p.number() + perMillion}
	}
	r.Flags = p.texts()
	if bits&entryCatalog != 0 {
		r.Catalog = p.text()
	}
	r.Began = time.Unix(0, e.At.UnixNano()-p.number()).UTC()
	return r
}

// corruptPage returns the error for a page that cannot be read. It copies the key, which is only valid during a scan.
func corruptPage(rec journal.Record, reason string) error {
	return &journal.CorruptError{Table: journal.Ledger, Key: slices.Clone(rec.Key), Reason: reason}
}

// posts divides the entries of pages by the Post that has made them.
func posts(entries []Entry) iter.Seq[[]Entry] {
	return func(yield func([]Entry) bool) {
		for from, i := 0, 1; i <= len(entries); i++ {
			if i < len(entries) && entries[i].joins {
				continue
			}
			if !yield(entries[from:i]) {
				return
			}
			from = i
		}
	}
}

// readPages calls fn with the pages from sequence number from on, in order, and stops after limit
// pages unless limit is 0. fn must not call State.
func readPages(ctx context.Context, s *state.State, from uint64, limit int, fn func([]Entry) error) error {
	return s.Range(ctx, journal.Ledger, state.SequenceKey(from), nil, limit, func(rec journal.Record) error {
		entries, err := decodePage(rec)
		if err != nil {
			return err
		}
		return fn(entries)
	})
}

// ReadLedger calls fn with each entry after a sequence number, in order. fn must not call State. An error of fn ends it
// and is returned. A damaged page is a *journal.CorruptError.
func ReadLedger(ctx context.Context, s *state.State, after uint64, fn func(Entry) error) error {
	return readPages(ctx, s, after+1, 0, func(entries []Entry) error {
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

// entryReader reads single entries. It keeps the page of the last entry, because the next one is
// mostly on the same page.
type entryReader struct {
	state *state.State
	page  []Entry
}

// entry returns an entry, or journal.ErrNotFound.
func (r *entryReader) entry(ctx context.Context, sequence uint64) (Entry, error) {
	if e := r.onPage(sequence); e != nil {
		return *e, nil
	}
	err := readPages(ctx, r.state, sequence, 1, func(entries []Entry) error { r.page = entries; return nil })
	if err != nil {
		return Entry{}, fmt.Errorf("read ledger entry %d: %w", sequence, err)
	}
	if e := r.onPage(sequence); e != nil {
		return *e, nil
	}
	return Entry{}, fmt.Errorf("read ledger entry %d: %w", sequence, journal.ErrNotFound)
}

// onPage returns an entry of the current page, or nil.
func (r *entryReader) onPage(sequence uint64) *Entry {
	at, ok := slices.BinarySearchFunc(r.page, sequence, func(e Entry, n uint64) int {
		switch {
		case e.Sequence < n:
			return -1
		case e.Sequence > n:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &r.page[at]
}

// entryUnlessFolded returns an entry, or nil if it was folded. A missing entry that was not folded
// is a *journal.CorruptError.
func (r *entryReader) entryUnlessFolded(ctx context.Context, sequence uint64) (*Entry, error) {
	e, err := r.entry(ctx, sequence)
	if err == nil {
		return &e, nil
	}
	if !errors.Is(err, journal.ErrNotFound) {
		return nil, err
	}
	folded, err := isFolded(ctx, r.state, sequence)
	if err != nil || folded {
		return nil, err
	}
	return nil, &journal.CorruptError{Table: journal.Ledger, Key: state.SequenceKey(sequence), Reason: "is missing"}
}
