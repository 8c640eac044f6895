package portal

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
)

const pathKeys = "/account/keys"

func (v *visit) keys() { v.show(http.StatusOK, v.keysView()) }

func (v *visit) keysView() *pages.Keys {
	view := &pages.Keys{Desk: v.desk(), Keys: v.keyLines(v.options.Registry.UserKeys(v.user.ID))}
	limits, mayCreate := v.restrictions()
	view.Limits, view.Forbidden = limits, !mayCreate
	view.Entry = keyEntry(v.scopesOf(v.user.ID), pages.Form{Action: pathKeys, ID: newFormID(), Token: view.Token})
	view.Entry.Open = len(view.Keys) == 0
	return view
}

// scopesOf are the scopes that the ceilings of a user leave the user's keys.
func (v *visit) scopesOf(user int64) []string {
	view := v.options.State.View()
	u, _ := view.User(user)
	return view.ScopesOf(&u, registry.Scopes())
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
func (v *visit) keyLines(keys []state.Key) []pages.Key {
	now := v.options.Now()
	spends := v.options.State.View()
	var live, revoked []pages.Key
	for i := len(keys) - 1; i >= 0; i-- {
		k := &keys[i]
		spent := spends.KeySpend(k.ID)
		line := pages.Key{ID: k.ID, Prefix: state.SecretPrefix + k.Prefix, Name: k.Name, Status: k.State(now), OperatorOnly: !k.Enabled && !k.OwnerMayEnable(), Scopes: k.Scopes, Models: k.Models,
			RPM: k.Limits.RPM, TPM: k.Limits.TPM, Slots: k.Limits.Concurrency, Budget: k.Budget, Window: string(k.Window), AllowIPs: networkTexts(k.AllowIPs),
			Spent: spent.Total, Created: k.Created, Expires: k.Expires}
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
func (v *visit) createKey() {
	if name, secret, ok := v.makeKey(tokens.NewKey{User: v.user.ID}, v.keysAgain); ok {
		v.show(http.StatusOK, pages.SecretKey(v.desk(), name, secret, v.example(secret)))
	}
}

// makeKey makes the key that the form asks for, once; n says whose it is and who makes it. If it cannot, again
// shows the form and why.
func (v *visit) makeKey(n tokens.NewKey, again func(status int, problem string)) (name, secret string, ok bool) {
	id := v.form.Get("id")
	if !v.sent.first(v.user.ID, id) {
		again(http.StatusConflict, problemSent)
		return "", "", false
	}
	err := v.readKey(&n)
	if err == nil {
		secret, _, err = v.options.Registry.CreateKey(v.r.Context(), n)
	}
	if err != nil {
		v.sent.again(v.user.ID, id)
		again(v.problem(err))
		return "", "", false
	}
	return n.Name, secret, true
}

// readKey reads the form.
func (v *visit) readKey(n *tokens.NewKey) error {
	f := fields{form: v.form}
	n.Name, n.Scopes, n.Models, n.AllowIPs = f.text("name"), v.form["scope"], f.list("models"), f.networks("allow", "Addresses")
	n.Limits = state.Limits{RPM: f.whole("rpm", "Requests a minute"), TPM: f.whole("tpm", "Tokens a minute"), Concurrency: f.whole("slots", "Requests at a time")}
	n.Budget, n.Window, n.Expires = f.dollars("budget", "Budget"), state.Window(f.text("window")), f.lastDay("expiry", "Last day")
	return f.err
}

// keysAgain shows the form as it was sent, with what is wrong.
func (v *visit) keysAgain(status int, problem string) {
	view := v.keysView()
	v.retype(&view.Entry)
	view.Problem = problem
	v.show(status, view)
}

// retype fills the form with what was typed.
func (v *visit) retype(e *pages.KeyEntry) {
	e.Name, e.Models, e.AllowIPs, e.Open = v.form.Get("name"), v.form.Get("models"), v.form.Get("allow"), true
	e.RPM, e.TPM, e.Slots, e.Budget, e.Expiry = v.form.Get("rpm"), v.form.Get("tpm"), v.form.Get("slots"), v.form.Get("budget"), v.form.Get("expiry")
	e.Window = v.form.Get("window")
	for i := range e.Scopes {
		for _, s := range v.form["scope"] {
			e.Scopes[i].Ticked = e.Scopes[i].Ticked || s == e.Scopes[i].Name
		}
	}
}

// example is a request with a new key.
func (v *visit) example(secret string) string {
	model := v.options.Example()
	if model == "" {
		return ""
	}
	quoted := strings.ReplaceAll(model, `'`, `'\''`)
	return fmt.Sprintf(`curl %s/v1/chat/completions \
  -H 'Authorization: Bearer %s' \
  -H 'Content-Type: application/json' \
  -d '{"model": %q, "messages": [{"role": "user", "content": "Hello"}]}'`, v.options.Address, secret, quoted)
}

// changeKey enables, disables or revokes a key.
func (v *visit) changeKey() {
	id, ctx := v.r.PathValue("id"), v.r.Context()
	switch v.r.PathValue("action") {
	case "enable":
		v.concluded(v.options.Registry.EnableKey(ctx, v.user.ID, id, true), pathKeys, "key_enabled")
	case "disable":
		v.concluded(v.options.Registry.EnableKey(ctx, v.user.ID, id, false), pathKeys, "key_disabled")
	case "revoke":
		v.concluded(v.options.Registry.RevokeKey(ctx, v.user.ID, id), pathKeys, "key_revoked")
	default:
		v.missing()
	}
}
