package adminapi

import (
	"net/http"
	"net/netip"
	"slices"

	"stagedoor/actors/tokens"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

var keyRoutes = []route{
	{method: "GET", path: "/keys", name: "listKeys", group: "keys", summary: "List keys, oldest first", out: List[Key]{}, status: http.StatusOK,
		query: []param{{name: "user", doc: "only those of this username"}, {name: "state", doc: "live: without those that were revoked or have expired", enum: []string{"live", "all"}},
			limitParam, afterParam}, serve: (*call).listKeys},
	{method: "POST", path: "/keys", name: "createKey", group: "keys", summary: "Create a key; it is shown once", in: NewKey{}, out: CreatedKey{},
		status: http.StatusCreated, serve: (*call).createKey},
	{method: "GET", path: "/keys/{id}", name: "getKey", group: "keys", summary: "Get a key", out: Key{}, status: http.StatusOK, serve: (*call).getKey},
	{method: "PATCH", path: "/keys/{id}", name: "updateKey", group: "keys", summary: "Change a key, at once for all requests", in: KeyChange{}, out: Key{},
		status: http.StatusOK, serve: (*call).updateKey},
	{method: "DELETE", path: "/keys/{id}", name: "revokeKey", group: "keys", summary: "Revoke a key for good; it stays in the list", out: Key{},
		status: http.StatusOK, serve: (*call).revokeKey},
}

const noKey = "there is no such key"

func (c *call) key(k *identity.Key) Key {
	v := c.State.View()
	now := v.Now()
	return Key{ID: k.ID, Prefix: identity.SecretPrefix + k.Prefix, Name: k.Name, User: k.User, State: k.State(now),
		Enabled: k.Enabled, DisabledBy: disabledBy(k),
		Scopes: list(k.Scopes), Models: list(k.Models), Limits: Limits(k.Limits), Budget: budgetOf(k.Limit()),
		Spent:    spentBy(v, budget.Scope{Kind: budget.KeyScope, ID: k.ID}),
		AllowIPs: each(k.AllowIPs, func(p *netip.Prefix) string { return p.String() }),
		Created:  k.Created, Expires: moment(k.Expires), Revoked: moment(k.Revoked)}
}

// disabledBy is null for an enabled key.
func disabledBy(k *identity.Key) *string {
	if k.Enabled {
		return nil
	}
	by := string(identity.PartyOperator)
	if k.OwnerMayEnable() {
		by = string(identity.PartyOwner)
	}
	return &by
}

func list(set []string) *[]string {
	if set == nil {
		return nil
	}
	return &set
}

func budgetOf(b budget.Budget) *Budget {
	if b.Amount == 0 {
		return nil
	}
	return &Budget{Amount: b.Amount, Window: string(b.Window.Name())}
}

func (c *call) listKeys() (any, error) {
	f := identity.KeyFilter{User: c.query.Get("user"), Live: c.query.Get("state") == "live"}
	some, err := page(c, identity.ListKeys(c.State.View(), f), func(k *identity.Key) string { return k.ID })
	return List[Key]{Data: each(some.Data, c.key), Next: some.Next}, err
}

func (c *call) createKey() (any, error) {
	in, err := decode[NewKey](c)
	if err != nil {
		return nil, err
	}
	change, err := in.change()
	if err != nil {
		return nil, err
	}
	if change.Name == nil {
		name := "key"
		change.Name = &name
	}
	secret, k, err := c.Registry.IssueKey(c.r.Context(), in.User, change)
	if err != nil {
		return nil, about(err, "user", noUser)
	}
	return CreatedKey{Key: c.key(&k), Secret: secret}, nil
}

// change reads what the registry does not: networks and null.
func (k *KeyChange) change() (tokens.KeyChange, error) {
	out := tokens.KeyChange{Name: k.Name, Scopes: k.Scopes.ref(), Models: k.Models.ref(), Expires: k.Expires.ref(), Enabled: k.Enabled}
	if l := k.Limits.Value; l != nil {
		out.Limits = tokens.LimitsChange{RPM: l.RPM.ref(), TPM: l.TPM.ref(), Concurrency: l.Concurrency.ref()}
	} else if k.Limits.Given {
		out.Limits = tokens.LimitsChange{RPM: new(int64), TPM: new(int64), Concurrency: new(int64)}
	}
	budget, err := budgetChange(k.Budget)
	if err != nil {
		return out, err
	}
	out.Budget = budget
	if list := k.AllowIPs.ref(); list != nil {
		networks, err := identity.ParseNetworks(*list)
		if err != nil {
			return out, dialogue.Invalid("allow_ips", "must be addresses and networks like 192.0.2.1 and 2001:db8::/32")
		}
		out.AllowIPs = &networks
	}
	return out, nil
}

// budgetChange reads null as no budget. An amount of 0 is refused, because null is how a budget is removed.
func budgetChange(o Optional[BudgetChange]) (tokens.BudgetChange, error) {
	switch b := o.Value; {
	case !o.Given:
		return tokens.BudgetChange{}, nil
	case b == nil:
		return tokens.BudgetChange{Amount: new(int64)}, nil
	case b.Amount != nil && *b.Amount <= 0:
		return tokens.BudgetChange{}, dialogue.Invalid("budget.amount", "must be above 0, or budget null for none")
	default:
		return tokens.BudgetChange{Amount: b.Amount, Window: (*budget.Window)(b.Window)}, nil
	}
}

func (c *call) getKey() (any, error) {
	k, err := identity.FindKey(c.State.View(), c.r.PathValue("id"))
	if err != nil {
		return nil, about(err, "id", noKey)
	}
	return c.key(&k), nil
}

func (c *call) updateKey() (any, error) {
	in, err := decode[KeyChange](c)
	if err != nil {
		return nil, err
	}
	change, err := in.change()
	if err != nil {
		return nil, err
	}
	k, err := c.Registry.UpdateKey(c.r.Context(), c.r.PathValue("id"), change)
	if err != nil {
		return nil, about(err, "id", noKey)
	}
	return c.key(&k), nil
}

func (c *call) revokeKey() (any, error) {
	k, err := identity.RevokeKey(c.r.Context(), c.State, c.r.PathValue("id"))
	if err != nil {
		return nil, about(err, "id", noKey)
	}
	return c.key(&k), nil
}

// routes is the whole table.
func routes() []route {
	return slices.Concat(userRoutes, groupRoutes, keyRoutes, accountRoutes, codeRoutes, appRoutes, receiptRoutes, usageRoutes, flowRoutes)
}

// Parameters of every list.
var (
	limitParam = param{name: "limit", doc: "how many at most, 1 to 500; default 50", integer: true}
	afterParam = param{name: "after", doc: "where to go on: next of the page before"}
)
