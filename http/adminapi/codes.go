package adminapi

import (
	"cmp"
	"net/http"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// codeRoutes mint and cancel redeem codes. The codes themselves are in the reply that mints them, and nowhere else.
var codeRoutes = []route{
	{method: "GET", path: "/redeem-codes", name: "listRedeemCodes", group: "redeem codes",
		summary: "List redeem codes, oldest first", out: List[Code]{},
		query: []param{{name: "state", doc: "only codes in this state", enum: money.RedeemStates()}, limitParam,
			afterParam},
		status: http.StatusOK, serve: (*requestContext).listCodes},
	{method: "POST", path: "/redeem-codes", name: "mintRedeemCodes", group: "redeem codes",
		summary: "Mint redeem codes; they are shown once", in: NewCodes{},
		out: MintedCodes{}, status: http.StatusCreated, serve: withBody((*requestContext).mintCodes)},
	{method: "DELETE", path: "/redeem-codes/{id}", name: "cancelRedeemCode", group: "redeem codes",
		summary: "Cancel an unused code", out: Code{},
		status: http.StatusOK, serve: (*requestContext).cancelCode},
}

// codeView returns a redeem code as the API shows it.
func (c *requestContext) codeView(r *money.RedeemCode) Code {
	return Code{ID: r.ID, Hint: r.Hint, Amount: r.Amount, State: r.State(c.State.View().Now()), MintedBy: r.MintedBy,
		Created: r.Created,
		Expires: timeOrNull(r.Expires), UsedBy: r.UsedBy, Used: timeOrNull(r.Used), Cancelled: timeOrNull(r.Cancelled)}
}

// listCodes handles GET /redeem-codes.
func (c *requestContext) listCodes() (any, error) {
	want := c.query.Get("state")
	all := money.ListRedeemCodes(c.State.View())
	if want != "" {
		now := c.State.View().Now()
		kept := all[:0:0]
		for i := range all {
			if all[i].State(now) == want {
				kept = append(kept, all[i])
			}
		}
		all = kept
	}
	some, err := pageOf(c, all, func(r *money.RedeemCode) string { return r.ID })
	return List[Code]{Data: convertAll(some.Data, c.codeView), Next: some.Next}, err
}

// mintedBy is recorded as the creator of codes. The API cannot name a person, because all its
// callers share the admin token.
const mintedBy = "operator"

// mintCodes handles POST /redeem-codes. It returns the codes themselves, which cannot be read
// later.
func (c *requestContext) mintCodes(in NewCodes) (any, error) {
	in.Count = cmp.Or(in.Count, 1)
	switch {
	case in.Count < 0 || in.Count > 1000:
		return nil, dialogue.Invalid("count", "must be between 1 and 1000")
	case in.Amount <= 0 || in.Amount > budget.MaxCredits:
		return nil, dialogue.Invalid("amount", "must be micro-dollars above 0, at most 1000000000 dollars")
	case in.Expires != nil && !in.Expires.After(c.State.View().Now()):
		return nil, dialogue.Invalid("expires", "must be in the future")
	}
	var expires time.Time
	if in.Expires != nil {
		expires = *in.Expires
	}
	secrets, records, err := c.Ledger.Mint(c.r.Context(), in.Count, in.Amount, mintedBy, expires, c.Random)
	if err != nil {
		return nil, err
	}
	out := MintedCodes{Data: []MintedCode{}}
	for i := range records {
		out.Data = append(out.Data, MintedCode{Code: c.codeView(&records[i]), Secret: secrets[i]})
	}
	return out, nil
}

// cancelCode handles DELETE /redeem-codes/{id}. A code that was used cannot be cancelled.
func (c *requestContext) cancelCode() (any, error) {
	r, err := money.CancelRedeemCode(c.r.Context(), c.State, c.r.PathValue("id"))
	if err != nil {
		return nil, describeNotFound(err, "id", "there is no such redeem code")
	}
	return c.codeView(&r), nil
}
