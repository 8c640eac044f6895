package adminapi

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

// keyRoutes change gateway keys. A secret is in the reply that makes it, and nowhere else. Keys of the configuration
// file are not among them.
var keyRoutes = []route{
	{method: "GET", path: "/keys", name: "listKeys", group: "keys", summary: "List keys, oldest first",
		out: List[Key]{}, status: http.StatusOK,
		query: []param{{name: "user", doc: "only those of the user with this name"},
			{name: "state", doc: "live leaves out revoked and expired keys", enum: []string{"live", "all"}},
			limitParam, afterParam}, serve: (*requestContext).listKeys},
	{method: "POST", path: "/keys", name: "createKey", group: "keys", summary: "Create a key; it is shown once",
		in: NewKey{}, out: CreatedKey{},
		status: http.StatusCreated, serve: withBody((*requestContext).createKey)},
	{method: "GET", path: "/keys/{id}", name: "getKey", group: "keys", summary: "Get a key", out: Key{},
		status: http.StatusOK, serve: (*requestContext).getKey},
	{method: "PATCH", path: "/keys/{id}", name: "updateKey", group: "keys",
		summary: "Change a key, at once for all requests", in: KeyChange{}, out: Key{},
		status: http.StatusOK, serve: withBody((*requestContext).updateKey)},
	{method: "POST", path: "/keys/{id}/secret", name: "rotateKey", group: "keys",
		summary: "Give a key a new secret, which is shown once. The old one is accepted for a while beside it",
		in:      Rotation{}, out: CreatedKey{}, status: http.StatusOK, serve: withBody((*requestContext).rotateKey)},
	{method: "DELETE", path: "/keys/{id}", name: "revokeKey", group: "keys",
		summary: "Revoke a key for good; it stays in the list", out: Key{},
		status: http.StatusOK, serve: (*requestContext).revokeKey},
}

const noKey = "there is no such key"

// keyView returns a key as the API shows it, without its secret.
// The prefix of the secret is shown, because it is how people recognise a key in their own files.
// It is too short to help with a guess.
func (c *requestContext) keyView(k *identity.Key) Key {
	v := c.State.View()
	now := v.Now()
	return Key{ID: k.ID, Prefix: identity.SecretPrefix + k.Prefix, Name: k.Name, User: k.User, State: k.State(now),
		Enabled: k.Enabled, DisabledBy: disabledBy(k),
		Scopes: listOrNull(k.Scopes), Models: listOrNull(k.Models), Limits: Limits(k.Limits),
		Budget:       budgetOf(k.Limit()),
		Spent:        spentBy(v, budget.Scope{Kind: budget.KeyScope, ID: k.ID}),
		AllowIPs:     convertAll(k.AllowIPs, func(p *netip.Prefix) string { return p.String() }),
		OnDisconnect: wordOrNull(k.OnDisconnect.String()),
		Created:      k.Created, Expires: timeOrNull(k.Expires), Revoked: timeOrNull(k.Revoked),
		Previous: timeOrNull(k.PreviousUntil(now)), RecordedUntil: timeOrNull(k.Recorded(now))}
}

// disabledBy returns who disabled a key, or nil if it is enabled.
func disabledBy(k *identity.Key) *string {
	if k.Enabled {
		return nil
	}
	return new(cmp.Or(k.DisabledBy, identity.PartyOperator).String())
}

// wordOrNull returns nil for "", which the API shows as null.
func wordOrNull(word string) *string {
	if word == "" {
		return nil
	}
	return &word
}

// listOrNull returns nil for a nil list, which the API shows as null. null means "no restriction"
// and an empty list means "nothing".
// The pointer keeps the difference apart, which a nil and an empty slice of Go blur.
func listOrNull(set []string) *[]string {
	if set == nil {
		return nil
	}
	return &set
}

// budgetOf returns a budget as the API shows it, or nil if there is none.
func budgetOf(b budget.Budget) *Budget {
	if b.Amount == 0 {
		return nil
	}
	return &Budget{Amount: b.Amount, Window: string(b.Window.Name())}
}

// listKeys handles GET /keys.
func (c *requestContext) listKeys() (any, error) {
	f := identity.KeyFilter{User: c.query.Get("user"), Live: c.query.Get("state") == "live"}
	some, err := pageOf(c, identity.ListKeys(c.State.View(), f), func(k *identity.Key) string { return k.ID })
	return List[Key]{Data: convertAll(some.Data, c.keyView), Next: some.Next}, err
}

// createKey handles POST /keys and returns the key, which cannot be read later.
func (c *requestContext) createKey(in NewKey) (any, error) {
	change, err := in.change()
	if err != nil {
		return nil, err
	}
	// A key without a name could not be named in commands and would be an empty cell in lists.
	if change.Name == nil {
		change.Name = new("key")
	}
	secret, k, err := c.Registry.IssueKey(c.r.Context(), in.User, change)
	if err != nil {
		return nil, describeNotFound(err, "user", noUser)
	}
	return CreatedKey{Key: c.keyView(&k), Secret: secret}, nil
}

// change converts k for the registry. It parses the networks and turns null into the values that
// remove a setting.
// Limits that are null become zeros, which the registry takes for "no limit".
func (k *KeyChange) change() (tokens.KeyChange, error) {
	out := tokens.KeyChange{Name: k.Name, Scopes: k.Scopes.pointer(), Models: k.Models.pointer(),
		Expires: k.Expires.pointer(), Enabled: k.Enabled, OnDisconnect: k.OnDisconnect.pointer(),
		RecordedUntil: k.RecordedUntil.pointer()}
	if policy := k.OnDisconnect.Value; policy != nil && *policy == "" {
		// The registry takes "" for null. A client's "" may be a variable that a script has forgotten to set.
		return out, dialogue.Invalid("on_disconnect", "must be cancel, finish, detach or null")
	}
	if l := k.Limits.Value; l != nil {
		out.Limits = tokens.LimitsChange{RPM: l.RPM.pointer(), TPM: l.TPM.pointer(),
			Concurrency: l.Concurrency.pointer()}
	} else if k.Limits.Given {
		out.Limits = tokens.LimitsChange{RPM: new(int64), TPM: new(int64), Concurrency: new(int64)}
	}
	budget, err := budgetChange(k.Budget)
	if err != nil {
		return out, err
	}
	out.Budget = budget
	if list := k.AllowIPs.pointer(); list != nil {
		networks, err := identity.ParseNetworks(*list)
		if err != nil {
			return out, dialogue.Invalid("allow_ips", "must be addresses and networks like 192.0.2.1 and 2001:db8::/32")
		}
		out.AllowIPs = &networks
	}
	return out, nil
}

// budgetChange converts a change of a budget. Null removes the budget. An amount of 0 is refused,
// because it could mean either no budget or no spending.
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

// getKey handles GET /keys/{id}.
func (c *requestContext) getKey() (any, error) {
	k, err := identity.FindKey(c.State.View(), c.r.PathValue("id"))
	if err != nil {
		return nil, describeNotFound(err, "id", noKey)
	}
	return c.keyView(&k), nil
}

// updateKey handles PATCH /keys/{id}. The change applies at once.
func (c *requestContext) updateKey(in KeyChange) (any, error) {
	change, err := in.change()
	if err != nil {
		return nil, err
	}
	k, err := c.Registry.UpdateKey(c.r.Context(), c.r.PathValue("id"), change)
	if err != nil {
		return nil, describeNotFound(err, "id", noKey)
	}
	return c.keyView(&k), nil
}

// revokeKey handles DELETE /keys/{id}. The record stays, because receipts refer to it.
func (c *requestContext) revokeKey() (any, error) {
	k, err := identity.RevokeKey(c.r.Context(), c.State, c.r.PathValue("id"))
	if err != nil {
		return nil, describeNotFound(err, "id", noKey)
	}
	return c.keyView(&k), nil
}

// overlap returns the time for which an old secret is accepted beside the new one.
// The longest overlap is bounded, because an old secret that is accepted for ever defeats the
// rotation.
func (in *Rotation) overlap() (time.Duration, error) {
	n := in.Overlap
	switch {
	case n == nil:
		return tokens.DefaultOverlap, nil
	case *n < 0 || *n > int64(tokens.MaxKeyOverlap/time.Second):
		return 0, dialogue.Invalid("overlap_seconds", "must be between 0 and 2592000")
	}
	return time.Duration(*n) * time.Second, nil
}

// rotateKey handles POST /keys/{id}/secret.
func (c *requestContext) rotateKey(in Rotation) (any, error) {
	overlap, err := in.overlap()
	if err != nil {
		return nil, err
	}
	secret, k, err := c.Registry.RotateAnyKey(c.r.Context(), c.r.PathValue("id"), overlap)
	if err != nil {
		return nil, describeNotFound(err, "id", noKey+" that can be used")
	}
	return CreatedKey{Key: c.keyView(&k), Secret: secret}, nil
}

// routes returns the table of all routes.
func routes() []route {
	return slices.Concat(userRoutes, invitationRoutes, groupRoutes, keyRoutes, accountRoutes, codeRoutes, appRoutes,
		receiptRoutes, usageRoutes, flowRoutes, settingsRoutes, auditRoutes)
}

// Parameters that every list accepts.
var (
	limitParam = param{name: "limit", doc: "number of items in a page, 1 to 500; default 50", integer: true}
	afterParam = param{name: "after", doc: "the value of next in the previous page"}
)
