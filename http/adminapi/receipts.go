package adminapi

import (
	"net/http"
	"strconv"

	"stagedoor/state/money"
)

// receiptRoutes read what single requests have cost.
var receiptRoutes = []route{
	{method: "GET", path: "/receipts", name: "listReceipts", group: "receipts",
		summary: "List receipts, newest first. Each page reads a bounded number of receipts, so a page may have few " +
			"or none although next is set", out: List[Receipt]{},
		query: []param{{name: "user", doc: "only those of the user with this name"},
			{name: "key", doc: "only receipts of the key with this id"},
			{name: "from", doc: "only receipts from this day or time on"},
			{name: "to", doc: "only receipts before this day or time"}, limitParam, afterParam},
		status: http.StatusOK, serve: (*requestContext).listReceipts},
	{method: "GET", path: "/receipts/{request_id}", name: "getReceipts", group: "receipts",
		summary: "Get the receipts of a request id. There can be several, because clients may use an id again",
		out:     List[Receipt]{}, status: http.StatusOK, serve: (*requestContext).getReceipts},
}

// receiptOf returns a receipt as the API shows it.
func receiptOf(r *money.Receipt) Receipt {
	return Receipt{Request: r.Request, Account: r.Account, Key: r.Key, Model: r.Model, Upstream: r.Upstream,
		Provider: r.Provider, Attempts: r.Attempts,
		Usage: ReceiptUsage(r.Usage), Prices: convertAll(r.Prices,
			func(p *money.PriceRow) PriceRow { return PriceRow(*p) }),
		Catalog: r.Catalog, Held: r.Held, Charged: r.Charged, Reason: r.Reason, Flags: append([]string{}, r.Flags...),
		Began: r.Began, Ended: r.Ended}
}

// listReceipts handles GET /receipts. Its cursor is a position in the ledger and not an item,
// because a page may be empty.
func (c *requestContext) listReceipts() (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	before, err := c.number("after")
	if err != nil {
		return nil, err
	}
	from, _, err := c.time("from")
	if err != nil {
		return nil, err
	}
	to, _, err := c.time("to")
	if err != nil {
		return nil, err
	}
	found, next, err := money.ListReceipts(c.r.Context(), c.State,
		money.ReceiptQuery{Account: c.query.Get("user"), Key: c.query.Get("key"),
			From: from, To: to, Before: uint64(before), Limit: limit})
	if err != nil {
		return nil, err
	}
	l := List[Receipt]{Data: convertAll(found, receiptOf)}
	if next != 0 {
		l.Next = new(strconv.FormatUint(next, 10))
	}
	return l, nil
}

// getReceipts handles GET /receipts/{request_id}.
func (c *requestContext) getReceipts() (any, error) {
	found, err := money.RequestReceipts(c.r.Context(), c.State, c.r.PathValue("request_id"))
	if err != nil {
		return nil, describeNotFound(err, "request_id", "there is no receipt for this request id")
	}
	return List[Receipt]{Data: convertAll(found, receiptOf)}, nil
}
