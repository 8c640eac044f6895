package portal

import (
	"net/http"
	"net/netip"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

const pathKeys = "/account/keys"

func (rc *requestContext) keys() { rc.show(http.StatusOK, rc.keysView()) }

func (rc *requestContext) keysView() *pages.Keys {
	view := &pages.Keys{Desk: rc.desk(), Keys: rc.keyLines(rc.options.Registry.UserKeys(rc.user.ID))}
	limits, mayCreate := rc.restrictions()
	view.Limits, view.Forbidden = limits, !mayCreate
	view.Entry = keyEntry(rc.scopesOf(rc.user.ID), pages.Form{Action: pathKeys, ID: newFormID(), Token: view.Token})
	view.Entry.Open = len(view.Keys) == 0 || rc.query("new") != ""
	return view
}

// scopesOf are the scopes that the ceilings of a user leave the user's keys.
func (rc *requestContext) scopesOf(user int64) []string {
	view := rc.options.State.View()
	u, _ := identity.FindUser(view, user)
	return identity.ScopesOf(view, &u, registry.Scopes())
}

// keyEntry is the empty form for a new key with some of the scopes.
func keyEntry(scopes []string, form pages.Form) pages.KeyEntry {
	e := pages.KeyEntry{Form: form}
	for _, s := range scopes {
		e.Scopes = append(e.Scopes, pages.Choice{Name: s})
	}
	return e
}

// keyLines are keys as lists show them, the newest first and those that were
// revoked last.
func (rc *requestContext) keyLines(keys []identity.Key) []pages.Key {
	now := rc.options.Now()
	spends := rc.options.State.View()
	var live, revoked []pages.Key
	for i := len(keys) - 1; i >= 0; i-- {
		k := &keys[i]
		spent := money.SpentByKey(spends, k.ID)
		line := pages.Key{ID: k.ID, Prefix: identity.SecretPrefix + k.Prefix, Name: k.Name, Status: k.State(now),
			OperatorOnly: !k.Enabled && !k.OwnerMayEnable(), Scopes: k.Scopes, Models: k.Models,
			RPM: k.Limits.RPM, TPM: k.Limits.TPM, Slots: k.Limits.Concurrency, Budget: k.Budget,
			Window: string(k.Window), AllowIPs: networkTexts(k.AllowIPs),
			PreviousUntil: k.PreviousUntil(now),
			Spent:         spent.Total, InWindow: spent.In(k.Window, now), Created: k.Created,
			Expires: k.Expires}
		if k.Revoked.IsZero() {
			live = append(live, line)
		} else {
			revoked = append(revoked, line)
		}
	}
	return append(live, revoked...)
}

func networkTexts(networks []netip.Prefix) []string {
	var texts []string
	for _, n := range networks {
		texts = append(texts, n.String())
	}
	return texts
}

// createKey makes a key and shows its secret, once.
func (rc *requestContext) createKey() {
	if name, secret, ok := rc.makeKey(tokens.NewKey{User: rc.user.ID}, rc.keysAgain); ok {
		rc.show(http.StatusOK, pages.SecretKey(rc.desk(), name, secret, rc.clients(secret)))
	}
}

// makeKey makes the key that the form asks for, once; n says whose it is and who makes it. If it cannot, again
// shows the form and why.
func (rc *requestContext) makeKey(n tokens.NewKey,
	again func(status int, problem string)) (name, secret string, ok bool) {
	id := rc.form.Get("id")
	if !rc.sent.markSent(rc.user.ID, id) {
		again(http.StatusConflict, problemSent)
		return "", "", false
	}
	err := rc.readKey(&n)
	if err == nil {
		secret, _, err = rc.options.Registry.CreateKey(rc.r.Context(), n)
	}
	if err != nil {
		rc.sent.allowAgain(rc.user.ID, id)
		again(rc.problem(err))
		return "", "", false
	}
	return n.Name, secret, true
}

// readKey reads the form.
func (rc *requestContext) readKey(n *tokens.NewKey) error {
	f := fields{form: rc.form}
	n.Name, n.Scopes, n.Models, n.AllowIPs = f.text(
		"name",
	), rc.form["scope"], f.list("models"), f.networks("allow", "Addresses")
	n.Limits = identity.Limits{RPM: f.whole("rpm", "Requests a minute"), TPM: f.whole("tpm", "Tokens a minute"),
		Concurrency: f.whole("slots", "Requests at a time")}
	n.Budget, n.Window, n.Expires = f.dollars("budget", "Budget"), budget.Window(f.text("window")),
		f.lastDay("expiry", "Last day")
	return f.err
}

// keysAgain shows the form as it was sent, with what is wrong.
func (rc *requestContext) keysAgain(status int, problem string) {
	view := rc.keysView()
	rc.retype(&view.Entry)
	view.Problem = problem
	rc.show(status, view)
}

// retype fills the form with what was typed.
func (rc *requestContext) retype(e *pages.KeyEntry) {
	e.Name, e.Models, e.AllowIPs, e.Open = rc.form.Get("name"), rc.form.Get("models"), rc.form.Get("allow"), true
	e.RPM, e.TPM, e.Slots, e.Budget, e.Expiry = rc.form.Get(
		"rpm",
	), rc.form.Get(
		"tpm",
	), rc.form.Get(
		"slots",
	), rc.form.Get(
		"budget",
	), rc.form.Get("expiry")
	e.Window = rc.form.Get("window")
	for i := range e.Scopes {
		for _, s := range rc.form["scope"] {
			e.Scopes[i].Ticked = e.Scopes[i].Ticked || s == e.Scopes[i].Name
		}
	}
}

// clients are the settings of clients with a key, at the address that the browser uses.
func (rc *requestContext) clients(key string) []pages.ClientSetting {
	return pages.ClientSettings(rc.addressFor(rc.r), key, rc.exampleModel())
}

// connect shows how clients are connected. Keys are shown once and not here, so the reader fills in one.
func (rc *requestContext) connect() {
	rc.show(http.StatusOK, &pages.Connect{Desk: rc.desk(), Address: rc.addressFor(rc.r), Clients: rc.clients("")})
}

// changeKey enables, disables or revokes a key.
func (rc *requestContext) changeKey() {
	id, ctx := rc.r.PathValue("id"), rc.r.Context()
	switch rc.r.PathValue("action") {
	case "enable":
		rc.concluded(rc.options.Registry.EnableKey(ctx, rc.user.ID, id, true), pathKeys, "key_enabled")
	case "disable":
		rc.concluded(rc.options.Registry.EnableKey(ctx, rc.user.ID, id, false), pathKeys, "key_disabled")
	case "rotate":
		rc.rotateKey(id)
	case "revoke":
		rc.concluded(rc.options.Registry.RevokeKey(ctx, rc.user.ID, id), pathKeys, "key_revoked")
	default:
		rc.missing()
	}
}

// overlaps are the times that the form of a rotation offers.
var overlaps = map[string]time.Duration{"0": 0, "1h": time.Hour, "1d": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

// rotation shows the form that gives a key a new secret.
func (rc *requestContext) rotation() {
	for _, line := range rc.keyLines(rc.options.Registry.UserKeys(rc.user.ID)) {
		if line.ID == rc.r.PathValue("id") && line.Status != "revoked" {
			rc.show(http.StatusOK, &pages.RotateKey{Desk: rc.desk(), Key: line})
			return
		}
	}
	rc.missing()
}

// rotateKey gives a key a new secret and shows it, once.
func (rc *requestContext) rotateKey(id string) {
	overlap, known := overlaps[rc.form.Get("overlap")]
	if !known {
		rc.show(http.StatusBadRequest, failureBroken)
		return
	}
	secret, k, err := rc.options.Registry.RotateKey(rc.r.Context(), rc.user.ID, id, overlap)
	if err != nil {
		rc.concluded(err, pathKeys, "")
		return
	}
	until := k.PreviousUntil(rc.options.Now())
	rc.show(http.StatusOK, pages.SecretRotatedKey(rc.desk(), k.Name, secret, until, rc.clients(secret)))
}
