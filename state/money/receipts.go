package money

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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

// The receipt tables lead from requests to the entries with their receipts. They have a record for each, whose value is
// empty and whose key is
//
//	slot of the request 8 | hash of the account 8 | sequence of the entry 8
//
// Both hashes are cut, so the entry is compared with the one that was looked for.

// requestSlot returns the first part of a request's key in the receipt tables. Ids from NewID are
// ordered by time, so the newest records are on few pages of the durable store, which makes writing
// fast. Ids that clients choose are in a table of their own, ordered by hash, because pages that
// are filled to the brim suit only ordered keys. The highest bit distinguishes the two.
func requestSlot(request string) (slot [8]byte) {
	const digits = 48
	if i := len(request) - digits; i > 0 && request[i-1] == '_' {
		if _, err := hex.Decode(slot[:], []byte(request[i:i+2*len(slot)])); err == nil && slot[0]&0x80 == 0 {
			return slot
		}
	}
	sum := sha256.Sum256([]byte(request))
	copy(slot[:], sum[:])
	slot[0] |= 0x80
	return slot
}

// receiptTable returns the table for a key that begins with a slot.
func receiptTable(key []byte) journal.Table {
	if key[0]&0x80 != 0 {
		return journal.ByHash
	}
	return journal.Receipt
}

// receiptPrefix returns the prefix of the keys for a request of an account.
func receiptPrefix(request, account string) []byte {
	return appendReceiptPrefix(make([]byte, 0, 24), request, account)
}

// appendReceiptPrefix appends the beginning of the keys for one request of one account.
func appendReceiptPrefix(key []byte, request, account string) []byte {
	slot, sum := requestSlot(request), sha256.Sum256([]byte(account))
	return append(append(key, slot[:]...), sum[:8]...)
}

// receiptKey returns the key of a receipt in the index. Receipts of one request are in the order of their entries.
func receiptKey(request, account string, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(receiptPrefix(request, account), sequence)
}

// indexReceipt stores which entry contains the receipt.
func (p *poster) indexReceipt(r *Receipt, sequence uint64) {
	buffer := p.memory.records.free()
	key := binary.BigEndian.AppendUint64(appendReceiptPrefix(buffer, r.Request, r.Account), sequence)
	p.tx.Op(journal.Op{Kind: journal.Put, New: true, Table: receiptTable(key), Key: p.memory.records.keep(key)})
}

// isIndex reports whether a record is a valid record of receipt table t.
func isIndex(t journal.Table, rec journal.Record) bool {
	return len(rec.Key) == 24 && len(rec.Value) == 0 && receiptTable(rec.Key) == t
}

// indexedBy reports whether key is the key of e's receipt.
func (e *Entry) indexedBy(key []byte) bool {
	return e.receipt != nil && bytes.Equal(receiptKey(e.Request, e.Account, e.Sequence), key)
}

// receiptOf returns the receipt to which a record of a receipt table leads, or nil if the receipt
// was folded meanwhile.
func (r *entryReader) receiptOf(ctx context.Context, rec journal.Record) (*Receipt, error) {
	corrupt := func(reason string) error {
		return &journal.CorruptError{Table: receiptTable(rec.Key), Key: slices.Clone(rec.Key), Reason: reason}
	}
	if !isIndex(receiptTable(rec.Key), rec) {
		return nil, corrupt("leads to no entry")
	}
	at := state.SequenceOf(rec.Key[16:])
	e, err := r.entryUnlessFolded(ctx, at)
	if err != nil || e == nil {
		return nil, err
	}
	if !e.indexedBy(rec.Key) {
		return nil, corrupt(fmt.Sprintf("leads to entry %d, which has another receipt or none", at))
	}
	return e.receipt, nil
}

// maxReceipts is the number of receipts that Receipts returns. Clients choose request ids and may
// use one id any number of times.
const maxReceipts = 100

// Receipts returns the receipts of an account's requests with this id, in the order in which they
// ended, at most 100. A client may use an id for several requests, each of which is charged.
// Receipts of other accounts are not found.
func Receipts(ctx context.Context, s *state.State, account, request string) ([]Receipt, error) {
	if state.CheckID(request) != nil || checkAccount(account) != nil {
		return nil, fmt.Errorf("receipt %q: %w", request, state.ErrNotFound)
	}
	return receiptsOf(ctx, s, receiptPrefix(request, account), func(r *Receipt) bool {
		return r.Request == request && r.Account == account
	})
}

// RequestReceipts returns the receipts of all accounts' requests with this id, by account, at most
// 100.
func RequestReceipts(ctx context.Context, s *state.State, request string) ([]Receipt, error) {
	if state.CheckID(request) != nil {
		return nil, fmt.Errorf("receipt %q: %w", request, state.ErrNotFound)
	}
	slot := requestSlot(request)
	found, err := receiptsOf(ctx, s, slot[:], func(r *Receipt) bool { return r.Request == request })
	slices.SortStableFunc(found, func(a, b Receipt) int { return strings.Compare(a.Account, b.Account) })
	return found, err
}

// receiptsOf reads the receipts whose keys begin with prefix and returns those that are wanted.
func receiptsOf(ctx context.Context, s *state.State, prefix []byte, wanted func(*Receipt) bool) ([]Receipt, error) {
	var index []journal.Record
	// A prefix that ends with 0xff has no simple upper bound, so reading stops at the first other key.
	err := s.Range(ctx, receiptTable(prefix), prefix, nil, maxReceipts, func(rec journal.Record) error {
		if !bytes.HasPrefix(rec.Key, prefix) {
			return errStop
		}
		index = append(index, journal.Record{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value)})
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	entries := entryReader{state: s}
	var found []Receipt
	for _, rec := range index {
		r, err := entries.receiptOf(ctx, rec)
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
