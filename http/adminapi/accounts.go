package adminapi

import (
	"net/http"
	"strings"

	"stagedoor/actors/ledger"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// accountRoutes read balances and put money on accounts or take it out. A payment with an id that was used before
// changes nothing.
var accountRoutes = []route{
	{method: "GET", path: "/accounts", name: "listAccounts", group: "accounts",
		summary: "List the accounts with payments or charges, by name", out: List[Account]{},
		query: []param{limitParam, afterParam}, status: http.StatusOK, serve: (*requestContext).listAccounts},
	{method: "GET", path: "/accounts/{account}", name: "getAccount", group: "accounts",
		summary: "Get the balance of an account", out: Account{}, status: http.StatusOK,
		serve: (*requestContext).getAccount},
	{method: "POST", path: "/accounts/{account}/credits", name: "pay", group: "accounts",
		summary: "Add money to an account or take it out", in: Payment{}, out: Paid{}, status: http.StatusOK,
		header: []param{{name: "Idempotency-Key", doc: "as id in the body"}}, serve: withBody((*requestContext).pay)},
}

// listAccounts handles GET /accounts. The balances come from the ledger, because holds of text
// requests are only in its memory.
func (c *requestContext) listAccounts() (any, error) {
	some, err := pageOf(c, money.ListAccounts(c.State.View()), func(a *money.Account) string { return a.ID })
	if err != nil {
		return nil, err
	}
	l := List[Account]{Data: []Account{}, Next: some.Next}
	for _, a := range some.Data {
		view, err := c.accountView(a.ID)
		if err != nil {
			return nil, err
		}
		l.Data = append(l.Data, view)
	}
	return l, nil
}

// accountView returns the balance of an account as the API shows it.
func (c *requestContext) accountView(name string) (Account, error) {
	b, err := c.balance(name)
	return Account{Account: name, Balance: b}, err
}

// accountName returns the account in the path in the spelling of its user. An account with payments
// may have no user, because keys in the configuration can name any account.
func (c *requestContext) accountName() (string, error) {
	name := c.r.PathValue("account")
	if u, err := c.Registry.UserByName(name); err == nil {
		return u.Username, nil
	}
	if money.FindAccount(c.State.View(), name).Last == 0 {
		return "", notFound("account", "there is no such user, and no account of this name has payments or charges")
	}
	return name, nil
}

// getAccount handles GET /accounts/{account}.
func (c *requestContext) getAccount() (any, error) {
	name, err := c.accountName()
	if err != nil {
		return nil, err
	}
	return c.accountView(name)
}

// Reasons recorded for payments that give none, and the longest reason in bytes.
const (
	reasonCredit = "credit"
	reasonAdjust = "adjustment"
	maxReason    = 200
)

// pay handles POST /accounts/{account}/credits. With an id or the header Idempotency-Key a payment
// that is sent again is not made twice.
func (c *requestContext) pay(in Payment) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		if in.ID != "" && in.ID != key {
			return nil, dialogue.Invalid("id", "must be the same as the header Idempotency-Key")
		}
		in.ID = key
	}
	if in.ID != "" && !validPaymentID(in.ID) {
		return nil, dialogue.Invalid("id", "must be 1 to 128 letters, digits and ._-")
	}
	name, err := c.accountName()
	if err != nil {
		return nil, err
	}
	// The balance that is sent back is read after the payment. Requests in flight may have changed it once more by
	// then.
	again, err := c.Ledger.Pay(c.r.Context(), ledger.Payment{Account: name, Amount: in.Amount, Reason: in.Reason,
		Once: in.ID})
	if err != nil {
		return nil, err
	}
	a, err := c.accountView(name)
	return Paid{Account: a, Amount: in.Amount, Repeated: again}, err
}

// check returns an error unless the payment is valid, and sets the reason if it is missing.
func (p *Payment) check() error {
	switch {
	case p.Amount == 0:
		return dialogue.Invalid("amount", "must be micro-dollars, and not 0")
	case p.Amount > budget.MaxCredits || p.Amount < -budget.MaxCredits:
		return dialogue.Invalid("amount", "must be at most 1000000000 dollars")
	case len(p.Reason) > maxReason || !isPrintable(p.Reason):
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

// isPrintable reports whether s has no control characters.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// validPaymentID reports whether id can identify a payment.
func validPaymentID(id string) bool {
	return len(id) <= 128 && !strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.'
	})
}
