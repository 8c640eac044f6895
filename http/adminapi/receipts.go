package adminapi

import (
	"net/http"
	"strconv"

	"stagedoor/state/money"
)

var receiptRoutes = []route{
	{method: "GET", path: "/receipts", name: "listReceipts", group: "receipts",
		summary: "List receipts, newest first. A page may have few or none, and next all the same: how much is looked through for one is bounded", out: List[Receipt]{},
		query: []param{{name: "user", doc: "only those of this username"}, {name: "key", doc: "only those of this key's id"},
			{name: "from", doc: "only those since then: a day or a time"}, {name: "to", doc: "only those before then: a day or a time"}, limitParam, afterParam},
		status: http.StatusOK, serve: (*call).listReceipts},
	{method: "GET", path: "/receipts/{request_id}", name: "getReceipts", group: "receipts",
		summary: "Get the receipts of a request id: clients may give one to several requests", out: List[Receipt]{}, status: http.StatusOK, serve: (*call).getReceipts},
}

func receiptOf(r *money.Receipt) Receipt {
	return Receipt{Request: r.Request, Account: r.Account, Key: r.Key, Model: r.Model, Upstream: r.Upstream, Provider: r.Provider, Attempts: r.Attempts,
		Usage: ReceiptUsage(r.Usage), Prices: each(r.Prices, func(p *money.PriceRow) PriceRow { return PriceRow(*p) }),
		Held: r.Held, Charged: r.Charged, Reason: r.Reason, Flags: append([]string{}, r.Flags...), Began: r.Began, Ended: r.Ended}
}

func (c *call) listReceipts() (any, error) {
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
	l := List[Receipt]{Data: each(found, receiptOf)}
	if next != 0 {
		cursor := strconv.FormatUint(next, 10)
		l.Next = &cursor
	}
	return l, nil
}

func (c *call) getReceipts() (any, error) {
	found, err := money.RequestReceipts(c.r.Context(), c.State, c.r.PathValue("request_id"))
	if err != nil {
		return nil, about(err, "request_id", "there is no receipt for this request id")
	}
	return List[Receipt]{Data: each(found, receiptOf)}, nil
}
