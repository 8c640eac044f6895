package portal

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

const (
	pathAllKeys = "/admin/keys"
	pathCodes   = "/admin/codes"
)

// allKeysPath returns the address of the list with one key.
func allKeysPath(id string) string { return pathAllKeys + "?" + url.Values{"q": {id}}.Encode() }

// allKeys lists the keys of all users, the newest first.
func (rc *requestContext) allKeys() {
	search := rc.query("q")
	var found []identity.Key
	for _, k := range slices.Backward(identity.ListKeys(rc.options.State.View(), identity.KeyFilter{})) {
		if matches(search, k.Name, k.User, identity.SecretPrefix+k.Prefix, k.ID) {
			found = append(found, k)
		}
	}
	shown, pager := part(rc, pathAllKeys, found)
	shown = slices.Clone(shown)
	slices.Reverse(shown) // keyLines expects the sequence of the state, oldest first
	view := &pages.AllKeys{Viewer: rc.viewer(), Query: search, Pager: pager, Keys: rc.keyLines(shown),
		Recordings: rc.recordingKept()}
	users := map[string]string{}
	for i := range shown {
		users[shown[i].ID] = shown[i].User
	}
	for i := range view.Keys {
		k := &view.Keys[i]
		k.User = cmp.Or(users[k.ID], "no user")
		if u, err := rc.options.Registry.UserByName(users[k.ID]); err == nil {
			k.UserPath = pathUser(u.ID)
		}
	}
	rc.show(http.StatusOK, view)
}

// changeAnyKey does to a key of any user what the address names: it enables, disables or revokes the key, or starts or
// ends the recording of its requests.
func (rc *requestContext) changeAnyKey() {
	id, ctx := rc.r.PathValue("id"), rc.r.Context()
	var word string
	var err error
	switch rc.r.PathValue("action") {
	case "enable":
		word, err = "key_enabled", rc.enableAnyKey(id, true)
	case "disable":
		word, err = "key_disabled", rc.enableAnyKey(id, false)
	case "record":
		word, err = "key_recorded", rc.recordAnyKey(id, true)
	case "unrecord":
		word, err = "key_unrecorded", rc.recordAnyKey(id, false)
	case "revoke":
		word = "key_revoked"
		_, err = identity.RevokeKey(ctx, rc.options.State, id)
	default:
		rc.missing()
		return
	}
	rc.changed(err, pathAllKeys, word, "key changed by an administrator", "key", id, "kind", word)
}

// enableAnyKey enables or disables a key as an administrator.
func (rc *requestContext) enableAnyKey(id string, enabled bool) error {
	_, err := rc.options.Registry.UpdateKey(rc.r.Context(), id, tokens.KeyChange{Enabled: &enabled})
	return err
}

// codes shows the redeem codes and the form that mints some.
func (rc *requestContext) codes() { rc.show(http.StatusOK, rc.codesView()) }

// codesView returns the page of redeem codes, the newest first.
func (rc *requestContext) codesView() *pages.Codes {
	all := money.ListRedeemCodes(rc.options.State.View())
	slices.Reverse(all)
	shown, pager := part(rc, pathCodes, all)
	view := &pages.Codes{Viewer: rc.viewer(), Pager: pager, FormID: newFormID(), Count: "1"}
	for i := range shown {
		c := &shown[i]
		view.Codes = append(view.Codes, pages.Code{Hint: c.Hint, Amount: c.Amount, Created: c.Created,
			MintedBy: c.MintedBy, Status: c.State(rc.options.Now()), Used: c.Used, UsedBy: c.UsedBy,
			Expires: c.Expires})
	}
	return view
}

// maxCodes limits the codes that a page can show at once.
const maxCodes = 100

// mint makes redeem codes and shows them, once.
func (rc *requestContext) mint() {
	f := fields{form: rc.form}
	count, amount := f.whole("count", "How many"), f.dollars("amount", "Dollars each")
	expires := f.lastDay("expiry", "Last day")
	switch {
	case f.err != nil:
	case count < 1 || count > maxCodes:
		f.fail("How many", "must be between 1 and 100")
	case amount <= 0:
		f.fail("Dollars each", "must be more than nothing")
	case !expires.IsZero() && !expires.After(rc.options.Now()):
		f.fail("Last day", "must not be over")
	}
	if f.err != nil {
		rc.codesAgain(rc.problem(f.err))
		return
	}
	var codes []string
	if rc.once(rc.codesAgain, func() (err error) {
		codes, _, err = rc.options.Ledger.Mint(rc.r.Context(), int(count), amount, rc.user.Username, expires,
			rc.options.Random)
		return err
	}) {
		rc.options.Logger.Info("redeem codes minted by an administrator", "count", count, "by", rc.user.ID)
		rc.show(http.StatusOK, pages.SecretCodes(rc.viewer(), codes, amount))
	}
}

// codesAgain shows the page once more with a problem and what was entered.
func (rc *requestContext) codesAgain(status int, problem string) {
	view := rc.codesView()
	view.Count, view.Amount, view.Expiry = rc.form.Get("count"), rc.form.Get("amount"), rc.form.Get("expiry")
	view.Problem = problem
	rc.show(status, view)
}
