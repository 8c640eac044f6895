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

// Receipt says what a request cost and why (decisions, Users and money). It is
// kept in the hold's terminal entry and never changed. A hold under way has what is
// known of its receipt as JSON.
type Receipt struct {
	Request string `json:"request_id"`
	Account string `json:"account"`
	Hold    uint64 `json:"hold"` // sequence of the hold's begin, by which the ledger finds it
	Key     string `json:"key,omitempty"`
	// Scopes are the names of the other scopes whose spending it counts for.
	Scopes []string `json:"budget_scopes,omitempty"`

	Model    string `json:"model,omitempty"`          // as it was asked for
	Upstream string `json:"upstream_model,omitempty"` // as the provider names it
	Provider string `json:"provider,omitempty"`
	Attempts int    `json:"attempts,omitempty"`

	Usage  ReceiptUsage `json:"usage"`
	Prices []PriceRow   `json:"prices"`
	// Catalog is the version of the list of models that the prices are from. It is "" for prices of the operator.
	Catalog string `json:"catalog,omitempty"`
	// ListCost has the cost by that list of a request that was not charged. It is not stored.
	ListCost int64 `json:"list_cost,omitempty"`

	Held    int64 `json:"held"`    // micro-dollars that were kept for it
	Charged int64 `json:"charged"` // and that it cost
	// Reason is how the request ended; Flags what was odd about its usage.
	Reason string   `json:"end_reason"`
	Flags  []string `json:"flags,omitempty"`

	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
}

// ReasonOvertaken is the Reason of a receipt for a provider that another one overtook (hedging). The request has a
// receipt of its own besides, so this one does not count as a request.
const ReasonOvertaken = "overtaken"

// requests returns how many requests the receipt counts for.
func (r *Receipt) requests() int64 {
	if r.Reason == ReasonOvertaken {
		return 0
	}
	return 1
}

// ReceiptUsage is what was used, as far as it was charged.
type ReceiptUsage struct {
	Input      int64 `json:"input_tokens,omitempty"` // cached and cache-writing ones included
	CacheRead  int64 `json:"cached_input_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	Output     int64 `json:"output_tokens,omitempty"` // reasoning included
	Reasoning  int64 `json:"reasoning_tokens,omitempty"`
	Images     int64 `json:"images,omitempty"`
	Seconds    int64 `json:"seconds,omitempty"`
	// Estimated says that the gateway counted it, because the provider did not report it.
	Estimated bool `json:"estimated,omitempty"`
}

// PriceRow is one product of the charge: Quantity times Price for every Per. The
// rows are added up before rounding, so their sum may be less by a fraction.
type PriceRow struct {
	What     string `json:"what"`
	Quantity int64  `json:"quantity"`
	Price    int64  `json:"price"` // micro-dollars
	Per      int64  `json:"per"`
}

// perMillion is what tokens are priced for: the Per of nearly every row.
const perMillion = 1_000_000

// The receipt tables lead from requests to the entries with their receipts. They have a record for each, whose value is
// empty and whose key is
//
//	slot of the request 8 | hash of the account 8 | sequence of the entry 8
//
// Both hashes are cut, so the entry is compared with the one that was looked for.

// requestSlot is where a request is in the receipt table. Ids that NewID made are there by their time, which the
// durable store is fast with: the newest records are in few pages. Clients may send other ids, which are there by
// their hash in a table of their own, since pages that are filled to the brim suit only the first. The highest bit
// tells them apart.
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

// receiptTable is the table that has a key which begins with a slot.
func receiptTable(key []byte) journal.Table {
	if key[0]&0x80 != 0 {
		return journal.ByHash
	}
	return journal.Receipt
}

// receiptPrefix finds the receipts of a request of an account.
func receiptPrefix(request, account string) []byte {
	return appendReceiptPrefix(make([]byte, 0, 24), request, account)
}

func appendReceiptPrefix(key []byte, request, account string) []byte {
	slot, sum := requestSlot(request), sha256.Sum256([]byte(account))
	return append(append(key, slot[:]...), sum[:8]...)
}

func receiptKey(request, account string, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(receiptPrefix(request, account), sequence)
}

// indexReceipt notes which entry carries a receipt.
func (p *poster) indexReceipt(r *Receipt, sequence uint64) {
	sheet := p.memory.records.free()
	key := binary.BigEndian.AppendUint64(appendReceiptPrefix(sheet, r.Request, r.Account), sequence)
	p.tx.Op(journal.Op{Kind: journal.Put, New: true, Table: receiptTable(key), Key: p.memory.records.keep(key)})
}

// isIndex reports whether a record of a receipt table has the form that it must have.
func isIndex(t journal.Table, rec journal.Record) bool {
	return len(rec.Key) == 24 && len(rec.Value) == 0 && receiptTable(rec.Key) == t
}

// indexedBy reports whether e carries the receipt to which a key of the table leads.
func (e *Entry) indexedBy(key []byte) bool {
	return e.receipt != nil && bytes.Equal(receiptKey(e.Request, e.Account, e.Sequence), key)
}

// follow returns the receipt that a record of the table leads to, or nil: it was folded since the record was read.
func (r *entryReader) follow(ctx context.Context, rec journal.Record) (*Receipt, error) {
	corrupt := func(reason string) error {
		return &journal.CorruptError{Table: receiptTable(rec.Key), Key: slices.Clone(rec.Key), Reason: reason}
	}
	if !isIndex(receiptTable(rec.Key), rec) {
		return nil, corrupt("leads to no entry")
	}
	at := state.SequenceOf(rec.Key[16:])
	e, err := r.kept(ctx, at)
	if err != nil || e == nil {
		return nil, err
	}
	if !e.indexedBy(rec.Key) {
		return nil, corrupt(fmt.Sprintf("leads to entry %d, which has another receipt or none", at))
	}
	return e.receipt, nil
}

// maxReceipts bounds what Receipts returns: clients choose request ids, and may
// choose the same one for ever.
const maxReceipts = 100

// Receipts returns the receipts of an account's requests with this id, those that
// ended first first, at most 100. An id that a client chose may stand for several requests;
// each was held and charged on its own. Those of another account do not exist.
func Receipts(ctx context.Context, s *state.State, account, request string) ([]Receipt, error) {
	if state.CheckID(request) != nil || checkAccount(account) != nil {
		return nil, fmt.Errorf("receipt %q: %w", request, state.ErrNotFound)
	}
	return receiptsOf(ctx, s, receiptPrefix(request, account), func(r *Receipt) bool {
		return r.Request == request && r.Account == account
	})
}

// RequestReceipts returns the receipts of requests with this id of all accounts, by account, at most 100.
func RequestReceipts(ctx context.Context, s *state.State, request string) ([]Receipt, error) {
	if state.CheckID(request) != nil {
		return nil, fmt.Errorf("receipt %q: %w", request, state.ErrNotFound)
	}
	slot := requestSlot(request)
	found, err := receiptsOf(ctx, s, slot[:], func(r *Receipt) bool { return r.Request == request })
	slices.SortStableFunc(found, func(a, b Receipt) int { return strings.Compare(a.Account, b.Account) })
	return found, err
}

// receiptsOf reads the receipts whose keys begin with prefix, as far as they are the ones that were looked for.
func receiptsOf(ctx context.Context, s *state.State, prefix []byte, wanted func(*Receipt) bool) ([]Receipt, error) {
	var index []journal.Record
	// A prefix that ends with 0xff has no simple end, so what is behind it is read and left.
	err := s.Range(ctx, receiptTable(prefix), prefix, nil, maxReceipts, func(rec journal.Record) error {
		if !bytes.HasPrefix(rec.Key, prefix) {
			return errEnough
		}
		index = append(index, journal.Record{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value)})
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	entries := entryReader{state: s}
	var found []Receipt
	for _, rec := range index {
		r, err := entries.follow(ctx, rec)
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
