package portal

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/pages"
	"stagedoor/state"
)

const pathKeys = "/account/keys"

func (v *visit) keys() { v.show(http.StatusOK, v.keysView()) }

func (v *visit) keysView() *pages.Keys {
	view := &pages.Keys{Desk: v.desk(), Keys: v.keyLines(v.options.Registry.UserKeys(v.user.ID)), Entry: pages.KeyEntry{ID: newFormID()}}
	for _, s := range state.Scopes() {
		view.Entry.Scopes = append(view.Entry.Scopes, pages.Choice{Name: s})
	}
	return view
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
		line := pages.Key{ID: k.ID, Prefix: state.SecretPrefix + k.Prefix, Name: k.Name, Status: statusOf(k, now), Scopes: k.Scopes, Models: k.Models,
			RPM: k.Limits.RPM, TPM: k.Limits.TPM, Slots: k.Limits.Concurrency, Budget: k.Budget, Window: string(k.Window),
			Spent: spent.Total, Created: k.Created, Expires: k.Expires}
		if k.Revoked.IsZero() {
			live = append(live, line)
		} else {
			revoked = append(revoked, line)
		}
	}
	return append(live, revoked...)
}

func statusOf(k *state.Key, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	case !k.Enabled:
		return "disabled"
	}
	return "active"
}

// createKey makes a key and shows its secret, once.
func (v *visit) createKey() {
	id := v.form.Get("id")
	if !v.sent.first(id) {
		v.keysAgain(http.StatusConflict, problemSent)
		return
	}
	n, err := v.newKey()
	var secret string
	if err == nil {
		secret, _, err = v.options.Registry.CreateKey(v.r.Context(), n)
	}
	if err != nil {
		v.sent.again(id)
		v.keysAgain(v.problem(err))
		return
	}
	v.show(http.StatusOK, pages.SecretKey(v.desk(), n.Name, secret, v.example(secret)))
}

// newKey reads the form.
func (v *visit) newKey() (n tokens.NewKey, err error) {
	f := fields{form: v.form}
	n = tokens.NewKey{User: v.user.ID, Name: f.text("name"), Scopes: v.form["scope"], Models: f.list("models"),
		Limits: state.Limits{RPM: f.whole("rpm", "Requests a minute"), TPM: f.whole("tpm", "Tokens a minute"), Concurrency: f.whole("slots", "Requests at a time")},
		Budget: f.dollars("budget", "Budget"), Window: state.Window(f.text("window")), Expires: f.lastDay("expiry", "Last day")}
	return n, f.err
}

// keysAgain shows the form as it was sent, with what is wrong.
func (v *visit) keysAgain(status int, problem string) {
	view := v.keysView()
	e := &view.Entry
	e.Name, e.Models, e.Open = v.form.Get("name"), v.form.Get("models"), true
	e.RPM, e.TPM, e.Slots, e.Budget, e.Expiry = v.form.Get("rpm"), v.form.Get("tpm"), v.form.Get("slots"), v.form.Get("budget"), v.form.Get("expiry")
	e.Window = v.form.Get("window")
	for i := range e.Scopes {
		for _, s := range v.form["scope"] {
			e.Scopes[i].Ticked = e.Scopes[i].Ticked || s == e.Scopes[i].Name
		}
	}
	view.Problem = problem
	v.show(status, view)
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
