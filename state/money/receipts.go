package money

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Receipt says what a request cost and how the cost was calculated. It is stored in the entry that
// closes the hold and never changed. While the request is in flight, its Hold contains the known
// part as JSON.
type Receipt struct {
	Request string `json:"request_id"`
	Account string `json:"account"`
	Hold    uint64 `json:"hold"` // sequence number of the entry that opened the hold
	Key     string `json:"key,omitempty"`
	// Scopes names the scopes other than the key whose spending includes this request.
	Scopes []string `json:"budget_scopes,omitempty"`

	Model    string `json:"model,omitempty"`          // as the client requested it
	Upstream string `json:"upstream_model,omitempty"` // as the provider names it
	Provider string `json:"provider,omitempty"`
	Attempts int    `json:"attempts,omitempty"`

	Usage  ReceiptUsage `json:"usage"`
	Prices []PriceRow   `json:"prices"`
	// Catalog is the version of the list of models that the prices are from. It is "" for prices of the operator.
	Catalog string `json:"catalog,omitempty"`
	// ListCost has the cost by that list of a request that was not charged. It is not stored.
	ListCost int64 `json:"list_cost,omitempty"`

	Held    int64 `json:"held"`    // micro-dollars held for the request
	Charged int64 `json:"charged"` // micro-dollars charged
	// Reason says how the request ended. Flags lists irregularities of its usage.
	Reason string   `json:"end_reason"`
	Flags  []string `json:"flags,omitempty"`

	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
}

// ReasonOvertaken is the Reason of a receipt for a provider that lost against a faster one
// (hedging). The request has another receipt for the provider that won, so this one does not count
// as a request.
const ReasonOvertaken = "overtaken"

// requests returns the number of requests that the receipt counts for.
func (r *Receipt) requests() int64 {
	if r.Reason == ReasonOvertaken {
		return 0
	}
	return 1
}

// ReceiptUsage is the usage that was charged.
type ReceiptUsage struct {
	Input      int64 `json:"input_tokens,omitempty"` // includes cached and cache-writing tokens
	CacheRead  int64 `json:"cached_input_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	Output     int64 `json:"output_tokens,omitempty"` // includes reasoning
	Reasoning  int64 `json:"reasoning_tokens,omitempty"`
	Images     int64 `json:"images,omitempty"`
	Seconds    int64 `json:"seconds,omitempty"`
	// Estimated says that the gateway has estimated the usage, because the provider reported none.
	Estimated bool `json:"estimated,omitempty"`
}

// PriceRow is one item of the charge: Quantity times Price for every Per. The rows are added before
// rounding, so the sum of rounded rows may differ by a fraction.
type PriceRow struct {
	What     string `json:"what"`
	Quantity int64  `json:"quantity"`
	Price    int64  `json:"price"` // micro-dollars
	Per      int64  `json:"per"`
}

// perMillion is the Per of token prices, which is that of nearly every row.
const perMillion = 1_000_000

// The receipt tables are an index that leads from requests to the entries with their receipts. A table is written
// with every request, so it has one record for all requests of a Post that began at about the same time. The id of a
// request says when that was, if the gateway made it, and these requests are in the table Receipt:
//
//	key: time 4 | hash of the account 8 | sequence of the first entry 8
//	value: mark 4 | (uvarint: sequence - that of the entry before | mark 4) ...
//
// The mark is made of the random part of the id. An id that a client chose has no time, so its request has a record of
// its own without a value, in the table ByHash:
//
//	key: hash of the request 8 | hash of the account 8 | sequence of the entry 8
//
// Hashes and marks are cut, so an entry is compared with the request that was looked for.

// indexTime is the unit of the time in a key, in bits of milliseconds: 4 seconds. A shorter one gives more records to a
// Post, and a longer one gives more records to read to a search.
const indexTime = 12

// The bytes of the keys and of a mark.
const (
	timedKey  = 4 + 8 + 8
	hashedKey = 8 + 8 + 8
	markBytes = 4
)

type mark [markBytes]byte

// place tells where the index has the receipts of a request: the table, the beginning of the keys and the mark.
type place struct {
	timed bool
	start [8]byte // the first 4 of it if timed
	mark  mark
}

// placeOf returns the place of a request's receipts. The newest ids of the gateway are on few pages of the durable
// store, because they are ordered by time, which makes writing fast.
func placeOf(request string) (p place) {
	const digits, millis = 48, 6
	var id [millis + markBytes]byte
	if i := len(request) - digits; i > 0 && request[i-1] == '_' {
		if _, err := hex.Decode(id[:], []byte(request[i:i+2*len(id)])); err == nil {
			at := (uint64(binary.BigEndian.Uint16(id[:]))<<32 | uint64(binary.BigEndian.Uint32(id[2:]))) >> indexTime
			if at <= math.MaxUint32 {
				binary.BigEndian.PutUint32(p.start[:], uint32(at))
				p.timed, p.mark = true, mark(id[millis:])
				return p
			}
		}
	}
	sum := sha256.Sum256([]byte(request))
	copy(p.start[:], sum[:])
	return p
}

// table returns the table of the place.
func (p *place) table() journal.Table {
	if p.timed {
		return journal.Receipt
	}
	return journal.ByHash
}

// prefix returns the beginning of the keys for the requests of all accounts.
func (p *place) prefix() []byte {
	if p.timed {
		return p.start[:timedKey-16]
	}
	return p.start[:]
}

// accountPrefix returns the beginning of the keys for the requests of an account.
func (p *place) accountPrefix(account string) []byte {
	sum := sha256.Sum256([]byte(account))
	return slices.Concat(p.prefix(), sum[:8])
}

// indexRecord is a record of the index while it is made.
type indexRecord struct {
	place place
	// Sequences of the first and the last entry.
	first, last uint64
	key         []byte
	value       []byte
}

// indexWriter makes the records of the index for the receipts of one Post. It can be used again.
type indexWriter struct {
	account string
	sum     [sha256.Size]byte
	made    []indexRecord
}

// start begins the records of a Post on an account.
func (w *indexWriter) start(account string) { w.account, w.made = account, w.made[:0] }

// add adds the receipt of a request, which is in the entry with the sequence.
func (w *indexWriter) add(request string, sequence uint64) {
	if len(w.made) == 0 {
		w.sum = sha256.Sum256([]byte(w.account))
	}
	p := placeOf(request)
	if p.timed {
		for i := len(w.made) - 1; i >= 0; i-- {
			r := &w.made[i]
			if r.place.timed && r.place.start == p.start {
				r.value = binary.AppendUvarint(r.value, sequence-r.last)
				r.value = append(r.value, p.mark[:]...)
				r.last = sequence
				return
			}
		}
	}
	if n := len(w.made); n < cap(w.made) {
		w.made = w.made[:n+1] // with the memory of an earlier record
	} else {
		w.made = append(w.made, indexRecord{})
	}
	r := &w.made[len(w.made)-1]
	r.place, r.first, r.last = p, sequence, sequence
	r.key = append(append(r.key[:0], p.prefix()...), w.sum[:8]...)
	r.key = binary.BigEndian.AppendUint64(r.key, sequence)
	if r.value = r.value[:0]; p.timed {
		r.value = append(r.value, p.mark[:]...)
	}
}

// writeIndex writes the records of the index for the receipts of the Post that is being decided.
func (m *ledgerMemory) writeIndex(tx *state.Tx) {
	for i := range m.index.made {
		r := &m.index.made[i]
		tx.Op(journal.Op{
			Kind: journal.Put, New: true, Table: r.place.table(),
			Key: m.records.keep(append(m.records.free(), r.key...)),
			// A record with as many entries as a Post can have needs more room than others.
			Value: m.records.keep(append(m.records.freeFor(len(r.value)), r.value...)),
		})
	}
}

// indexOf returns the records of the index for the entries of one Post.
func indexOf(entries []Entry) []indexRecord {
	w := indexWriter{account: entries[0].Account}
	for i := range entries {
		if e := &entries[i]; e.endsHold() {
			w.add(e.Request, e.Sequence)
		}
	}
	return w.made
}

// entriesIn returns the sequences of the entries to which a record of table t leads, in order: those with a mark if t
// has marks. It returns false if the record has another form.
func entriesIn(t journal.Table, rec journal.Record, of mark) (found []uint64, ok bool) {
	if t == journal.ByHash {
		if len(rec.Key) != hashedKey || len(rec.Value) != 0 {
			return nil, false
		}
		return []uint64{state.SequenceOf(rec.Key[hashedKey-8:])}, true
	}
	if len(rec.Key) != timedKey {
		return nil, false
	}
	sequence := state.SequenceOf(rec.Key[timedKey-8:])
	for rest := rec.Value; len(rest) >= markBytes; {
		if mark(rest) == of {
			found = append(found, sequence)
		}
		if rest = rest[markBytes:]; len(rest) == 0 {
			return found, true
		}
		gap, n := binary.Uvarint(rest)
		if n <= 0 || gap == 0 {
			return nil, false
		}
		sequence, rest = sequence+gap, rest[n:]
	}
	return nil, false
}

// indexedBy reports whether a record of table t with a key is where the index has e's receipt.
func (e *Entry) indexedBy(t journal.Table, key []byte) bool {
	p := placeOf(e.Request)
	return e.receipt != nil && p.table() == t && bytes.HasPrefix(key, p.accountPrefix(e.Account))
}

// receiptOf returns the receipt of an entry to which a record of table t leads, or nil if it was folded meanwhile.
func (r *entryReader) receiptOf(ctx context.Context, t journal.Table, key []byte, sequence uint64) (*Receipt, error) {
	e, err := r.entryUnlessFolded(ctx, sequence)
	if err != nil || e == nil {
		return nil, err
	}
	if !e.indexedBy(t, key) {
		return nil, &journal.CorruptError{Table: t, Key: key,
			Reason: fmt.Sprintf("leads to entry %d, which has another receipt or none", sequence)}
	}
	return e.receipt, nil
}

// maxReceipts is the number of receipts that Receipts returns. Clients choose request ids and may
// use one id any number of times.
const maxReceipts = 100

// Receipts returns the receipts of an account's requests with this id, in the order in which they
// ended, at most 100. A client may use an id for several requests, each of which is charged.
// The error is state.ErrNotFound if the account has none, whether another account has or not.
func Receipts(ctx context.Context, s *state.State, account, request string) ([]Receipt, error) {
	if state.CheckID(request) != nil || checkAccount(account) != nil {
		return nil, fmt.Errorf("receipt %q: %w", request, state.ErrNotFound)
	}
	p := placeOf(request)
	return receiptsAt(ctx, s, p, p.accountPrefix(account), func(r *Receipt) bool {
		return r.Request == request && r.Account == account
	})
}

// RequestReceipts returns the receipts of all accounts' requests with this id, by account, at most
// 100. The error is state.ErrNotFound if there are none.
func RequestReceipts(ctx context.Context, s *state.State, request string) ([]Receipt, error) {
	if state.CheckID(request) != nil {
		return nil, fmt.Errorf("receipt %q: %w", request, state.ErrNotFound)
	}
	p := placeOf(request)
	found, err := receiptsAt(ctx, s, p, p.prefix(), func(r *Receipt) bool { return r.Request == request })
	slices.SortStableFunc(found, func(a, b Receipt) int { return strings.Compare(a.Account, b.Account) })
	return found, err
}

// receiptsAt reads the receipts at a place, whose keys begin with prefix, and returns those that are wanted.
func receiptsAt(ctx context.Context, s *state.State, p place, prefix []byte, wanted func(*Receipt) bool) ([]Receipt,
	error) {
	type indexed struct {
		key      []byte
		sequence uint64
	}
	var index []indexed
	err := s.Range(ctx, p.table(), prefix, journal.PrefixEnd(prefix), 0, func(rec journal.Record) error {
		if len(index) >= maxReceipts {
			return errStop
		}
		entries, ok := entriesIn(p.table(), rec, p.mark)
		if !ok {
			return &journal.CorruptError{Table: p.table(), Key: bytes.Clone(rec.Key), Reason: "leads to no entry"}
		}
		for _, sequence := range entries {
			index = append(index, indexed{bytes.Clone(rec.Key), sequence})
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	entries := entryReader{state: s}
	var found []Receipt
	for _, i := range index[:min(len(index), maxReceipts)] {
		r, err := entries.receiptOf(ctx, p.table(), i.key, i.sequence)
		if err != nil {
			return nil, fmt.Errorf("read receipts: %w", err)
		}
		if r != nil && wanted(r) {
			found = append(found, *r)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("read receipts: %w", state.ErrNotFound)
	}
	return found, nil
}
