package state

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"stagedoor/state/journal"
)

// Receipt says what a request cost and why (decisions, Users and money). It is
// written in the commit of the hold's terminal entry and never changed.
type Receipt struct {
	Request string `json:"request_id"`
	Account string `json:"account"`
	Hold    uint64 `json:"hold"` // sequence of the hold's begin, by which the ledger finds it
	Key     string `json:"key,omitempty"`

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

// putReceipt writes a receipt. ended is r.Ended as records have it.
func (tx *Tx) putReceipt(r *Receipt, ended []byte) {
	key := binary.BigEndian.AppendUint64(appendReceiptPrefix(tx.paper.sheet(), r.Request, r.Account), r.Hold)
	key = tx.paper.keep(key)
	tx.op(journal.Op{Kind: journal.Put, New: true, Table: journal.Receipt, Key: key, Value: tx.paper.keep(r.encode(tx.paper.sheet(), ended))})
}

// encode appends the receipt as it is kept. ended is r.Ended.
func (r *Receipt) encode(b, ended []byte) []byte {
	o := object{append(b, '{'), true}
	o.text("request_id", r.Request)
	o.text("account", r.Account)
	o.number("hold", int64(r.Hold))
	o.text("key", r.Key)
	o.text("model", r.Model)
	o.text("upstream_model", r.Upstream)
	o.text("provider", r.Provider)
	o.number("attempts", int64(r.Attempts))
	o.key("usage")
	o.b = r.Usage.appendTo(o.b)
	o.key("prices")
	o.b = appendPrices(o.b, r.Prices)
	o.number("held", r.Held)
	o.number("charged", r.Charged)
	o.text("end_reason", r.Reason)
	if len(r.Flags) > 0 {
		o.key("flags")
		o.b = append(o.b, '[')
		for i, f := range r.Flags {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.b = appendText(o.b, f)
		}
		o.b = append(o.b, ']')
	}
	o.time("began", r.Began)
	o.stamp("ended", ended)
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
		if i > 0 {
			b = append(b, ',')
		}
		o := object{append(b, '{'), true}
		o.text("what", rows[i].What)
		o.number("quantity", rows[i].Quantity)
		o.number("price", rows[i].Price)
		o.number("per", rows[i].Per)
		b = o.end()
	}
	return append(b, ']')
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
	var found []Receipt
	err := s.store.Range(ctx, journal.Receipt, from, to, maxReceipts, func(rec journal.Record) error {
		r, err := decodeReceipt(rec)
		found = append(found, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read receipt %q: %w", request, unavailable(err))
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("receipt %q: %w", request, ErrNotFound)
	}
	return found, nil
}
