package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stagedoor/state/journal"
)

// Receipt says what a request cost and why (decisions, Users and money). It is
// kept in the hold's terminal entry (carried) and never changed. The names are
// those of files of schema 7 and before, where it was a record of its own.
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

	Held    int64 `json:"held"`    // micro-dollars that were kept for it
	Charged int64 `json:"charged"` // and that it cost
	// Reason is how the request ended; Flags what was odd about its usage.
	Reason string   `json:"end_reason"`
	Flags  []string `json:"flags,omitempty"`

	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
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
	// Estimated: counted by the gateway, not told by the provider.
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

// carried is a receipt as its entry keeps it: without what the entry says itself,
// since an entry and a receipt are written with every priced request.
type carried struct {
	Key      string         `json:"key"`
	Scopes   []string       `json:"budget_scopes"`
	Upstream *string        `json:"upstream_model"` // nil: the model that was asked for
	Provider string         `json:"provider"`
	Attempts int            `json:"attempts"`
	Usage    ReceiptUsage   `json:"usage"`
	Prices   []carriedPrice `json:"prices"`
	Flags    []string       `json:"flags"`
	Began    time.Time      `json:"began"`
}

// of is the receipt that an entry carries.
func (c *carried) of(e *Entry) *Receipt {
	r := &Receipt{Request: e.Request, Account: e.Account, Hold: e.Hold, Key: c.Key, Scopes: c.Scopes,
		Model: e.Model, Upstream: e.Model, Provider: c.Provider, Attempts: c.Attempts,
		Usage: c.Usage, Prices: make([]PriceRow, len(c.Prices)),
		Held: e.Held, Charged: e.Amount, Reason: e.Reason, Flags: c.Flags, Began: c.Began, Ended: e.At}
	if c.Upstream != nil {
		r.Upstream = *c.Upstream
	}
	for i, p := range c.Prices {
		r.Prices[i] = PriceRow(p)
	}
	return r
}

// carriedPrice is a price row as [what, quantity, price, per], of which per is left
// out where it is perMillion.
type carriedPrice PriceRow

// UnmarshalJSON implements json.Unmarshaler.
func (p *carriedPrice) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	p.Per = perMillion
	into := [...]any{&p.What, &p.Quantity, &p.Price, &p.Per}
	if len(parts) != len(into) && len(parts) != len(into)-1 {
		return fmt.Errorf("%w: a price row of %d parts", ErrInvalid, len(parts))
	}
	for i, part := range parts {
		if err := json.Unmarshal(part, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// appendCarried appends what carried reads.
func (r *Receipt) appendCarried(b []byte) []byte {
	o := object{append(b, '{'), true}
	o.text("key", r.Key)
	o.texts("budget_scopes", r.Scopes)
	if r.Upstream != r.Model {
		o.key("upstream_model")
		o.b = appendText(o.b, r.Upstream)
	}
	o.text("provider", r.Provider)
	o.number("attempts", int64(r.Attempts))
	o.key("usage")
	o.b = r.Usage.appendTo(o.b)
	o.key("prices")
	o.b = appendPrices(o.b, r.Prices)
	o.texts("flags", r.Flags)
	o.time("began", r.Began)
	return o.end()
}

func (u *ReceiptUsage) appendTo(b []byte) []byte {
	o := object{append(b, '{'), true}
	o.number("input_tokens", u.Input)
	o.number("cached_input_tokens", u.CacheRead)
	o.number("cache_write_tokens", u.CacheWrite)
	o.number("output_tokens", u.Output)
	o.number("reasoning_tokens", u.Reasoning)
	o.number("images", u.Images)
	o.number("seconds", u.Seconds)
	if u.Estimated {
		o.key("estimated")
		o.b = append(o.b, "true"...)
	}
	return o.end()
}

func appendPrices(b []byte, rows []PriceRow) []byte {
	b = append(b, '[')
	for i := range rows {
		p := &rows[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, '['), p.What)
		b = strconv.AppendInt(append(b, ','), p.Quantity, 10)
		b = strconv.AppendInt(append(b, ','), p.Price, 10)
		if p.Per != perMillion {
			b = strconv.AppendInt(append(b, ','), p.Per, 10)
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

// The receipt table leads from requests to the entries with their receipts.

// receiptPrefix finds the receipts of a request. NUL is in neither part. Ids
// that the gateway makes grow with time, which the durable store is fast with.
func receiptPrefix(request, account string) []byte {
	return appendReceiptPrefix(make([]byte, 0, len(request)+len(account)+2+8), request, account)
}

func appendReceiptPrefix(key []byte, request, account string) []byte {
	key = append(append(key, request...), 0)
	return append(append(key, account...), 0)
}

func receiptKey(request, account string, hold uint64) []byte {
	return binary.BigEndian.AppendUint64(receiptPrefix(request, account), hold)
}

// indexReceipt notes which entry carries a receipt. The key has the hold, so where
// that began and ended in one entry there is nothing to be said.
func (tx *Tx) indexReceipt(r *Receipt, sequence uint64) {
	key := binary.BigEndian.AppendUint64(appendReceiptPrefix(tx.paper.sheet(), r.Request, r.Account), r.Hold)
	op := journal.Op{Kind: journal.Put, New: true, Table: journal.Receipt, Key: tx.paper.keep(key)}
	if sequence != r.Hold {
		op.Value = tx.sequenceKey(sequence)
	}
	tx.op(op)
}

// carrier is the sequence of the entry that carries the receipt of a record of the
// table. 0: the record is the receipt itself, of a file of schema 7 or before.
func carrier(rec journal.Record) uint64 {
	switch {
	case len(rec.Value) == 8:
		return sequenceOf(rec.Value)
	case len(rec.Value) == 0 && len(rec.Key) > 8:
		return sequenceOf(rec.Key[len(rec.Key)-8:])
	}
	return 0
}

// decodeReceipt reads a receipt that is a record of its own.
func decodeReceipt(rec journal.Record) (Receipt, error) {
	var r Receipt
	if json.Unmarshal(rec.Value, &r) != nil {
		return Receipt{}, corruptReceipt(rec, "is not a receipt")
	}
	return r, nil
}

func corruptReceipt(rec journal.Record, reason string) error {
	return &journal.CorruptError{Table: journal.Receipt, Key: slices.Clone(rec.Key), Reason: reason}
}

// follow returns the receipt that a record of the table is or leads to, or nil: it
// was folded since the record was read.
func (r *entryReader) follow(ctx context.Context, rec journal.Record) (*Receipt, error) {
	at := carrier(rec)
	if at == 0 {
		whole, err := decodeReceipt(rec)
		return &whole, err
	}
	if err := r.alone(ctx, at); err != nil {
		return nil, err
	}
	e, err := r.kept(ctx, at)
	if err != nil || e == nil {
		return nil, err
	}
	if e.receipt == nil || !bytes.Equal(receiptKey(e.Request, e.Account, e.Hold), rec.Key) {
		return nil, corruptReceipt(rec, fmt.Sprintf("leads to entry %d, which has another receipt or none", at))
	}
	return e.receipt, nil
}

// maxReceipts bounds what Receipts returns: clients choose request ids, and may
// choose the same one for ever.
const maxReceipts = 100

// Receipts returns the receipts of an account's requests with this id, oldest
// first, at most 100. An id that a client chose may stand for several requests;
// each was held and charged on its own. Those of another account do not exist.
func (s *State) Receipts(ctx context.Context, account, request string) ([]Receipt, error) {
	if checkID(request) != nil || checkAccount(account) != nil {
		return nil, fmt.Errorf("receipt %q: %w", request, ErrNotFound)
	}
	from := receiptPrefix(request, account)
	to := append(from[:len(from)-1:len(from)-1], 1)
	return s.receiptsOf(ctx, request, from, to)
}

// receiptsOf reads the receipts of an id within a range of keys.
func (s *State) receiptsOf(ctx context.Context, request string, from, to []byte) ([]Receipt, error) {
	var index []journal.Record
	err := s.store.Range(ctx, journal.Receipt, from, to, maxReceipts, func(rec journal.Record) error {
		index = append(index, journal.Record{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read receipt %q: %w", request, unavailable(err))
	}
	entries := entryReader{state: s}
	var found []Receipt
	for _, rec := range index {
		r, err := entries.follow(ctx, rec)
		if err != nil {
			return nil, fmt.Errorf("read receipt %q: %w", request, unavailable(err))
		}
		if r != nil {
			found = append(found, *r)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("receipt %q: %w", request, ErrNotFound)
	}
	return found, nil
}
