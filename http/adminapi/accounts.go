package adminapi

import (
	"net/http"

	"stagedoor/actors/ledger"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

var accountRoutes = []route{
	{method: "GET", path: "/accounts", name: "listAccounts", group: "accounts", summary: "List the accounts that money has moved on, by name", out: List[Account]{},
		query: []param{limitParam, afterParam}, status: http.StatusOK, serve: (*call).listAccounts},
	{method: "GET", path: "/accounts/{account}", name: "getAccount", group: "accounts", summary: "Get what an account has", out: Account{}, status: http.StatusOK,
		serve: (*call).getAccount},
	{method: "POST", path: "/accounts/{account}/credits", name: "pay", group: "accounts",
		summary: "Put money in, or take it out", in: Payment{}, out: Paid{}, status: http.StatusOK,
		header: []param{{name: "Idempotency-Key", doc: "as id in the body"}}, serve: (*call).pay},
}

func (c *call) listAccounts() (any, error) {
	some, err := page(c, money.ListAccounts(c.State.View()), func(a *money.Account) string { return a.ID })
	if err != nil {
		return nil, err
	}
	l := List[Account]{Data: []Account{}, Next: some.Next}
	for _, a := range some.Data {
		view, err := c.account(a.ID)
		if err != nil {
			return nil, err
		}
		l.Data = append(l.Data, view)
	}
	return l, nil
}

func (c *call) account(name string) (Account, error) {
	b, err := c.balance(name)
	return Account{Account: name, Balance: b}, err
}

// owner is the account of the path in the spelling of its user. One that money
// has moved on may have no user: fixed keys name whom they like.
func (c *call) owner() (string, error) {
	name := c.r.PathValue("account")
	if u, err := c.Registry.UserByName(name); err == nil {
		return u.Username, nil
	}
	if money.FindAccount(c.State.View(), name).Last == 0 {
		return "", notFound("account", "there is no such user, and no money ever moved on an account of this name")
	}
	return name, nil
}

func (c *call) getAccount() (any, error) {
	name, err := c.owner()
	if err != nil {
		return nil, err
	}
	return c.account(name)
}

// Reasons of payments that do not give one.
const (
	reasonCredit = "credit"
	reasonAdjust = "adjustment"
	maxReason    = 200
)

func (c *call) pay() (any, error) {
	in, err := decode[Payment](c)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		if in.ID != "" && in.ID != key {
			return nil, dialogue.Invalid("id", "must be the same as the header Idempotency-Key")
		}
		in.ID = key
	}
	if in.ID != "" && !validOnce(in.ID) {
		return nil, dialogue.Invalid("id", "must be 1 to 128 letters, digits and ._-")
	}
	name, err := c.owner()
	if err != nil {
		return nil, err
	}
	again, err := c.Ledger.Pay(c.r.Context(), ledger.Payment{Account: name, Amount: in.Amount, Reason: in.Reason, Once: in.ID})
	if err != nil {
		return nil, err
	}
	a, err := c.account(name)
	return Paid{Account: a, Amount: in.Amount, Repeated: again}, err
}

func (p *Payment) check() error {
	switch {
	case p.Amount == 0:
		return dialogue.Invalid("amount", "must be micro-dollars, and not 0")
	case p.Amount > budget.MaxCredits || p.Amount < -budget.MaxCredits:
		return dialogue.Invalid("amount", "must be at most 1000000000 dollars")
	case len(p.Reason) > maxReason || !plain(p.Reason):
		return dialogue.Invalid("reason", "must be at most 200 bytes without control characters")
	}
	if p.Reason == "" {
		p.Reason = reasonCredit
		if p.Amount < 0 {
			p.Reason = reasonAdjust
		}
	}
	return nil
}

func plain(s string) bool {
	for _, c := range s {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

func validOnce(id string) bool {
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return len(id) <= 128
}
