package portal

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/requestlog"
)

const pathKeys = "/account/keys"

func (rc *requestContext) keys() { rc.show(http.StatusOK, rc.keysView()) }

// keysView returns the page of the person's keys. The form for a new key is open if there is none yet.
func (rc *requestContext) keysView() *pages.Keys {
	view := &pages.Keys{Viewer: rc.viewer(), Keys: rc.keyLines(rc.options.Registry.UserKeys(rc.user.ID))}
	limits, mayCreate := rc.restrictions()
	view.Limits, view.Forbidden = limits, !mayCreate
	view.Entry = keyEntry(rc.scopesOf(rc.user.ID), pages.Form{Action: pathKeys, ID: newFormID(), Token: view.Token})
	view.Logged = rc.addUse(view.Keys)
	view.Entry.Open = len(view.Keys) == 0 || rc.query("new") != ""
	return view
}

// scopesOf returns the scopes that the ceilings of a user permit to the user's keys.
func (rc *requestContext) scopesOf(user int64) []string {
	view := rc.options.State.View()
	u, _ := identity.FindUser(view, user)
	return identity.ScopesOf(view, &u, registry.Scopes())
}

// keyEntry returns the empty form for a key, with a box for each of the scopes.
func keyEntry(scopes []string, form pages.Form) pages.KeyEntry {
	e := pages.KeyEntry{Form: form}
	for _, s := range scopes {
		e.Scopes = append(e.Scopes, pages.Choice{Name: s})
	}
	return e
}

// keyLines returns keys as lists show them, the newest first and those that were revoked last. keys must be in the
// sequence of the state, which is oldest first.
func (rc *requestContext) keyLines(keys []identity.Key) []pages.Key {
	now := rc.options.Now()
	spends := rc.options.State.View()
	var live, revoked []pages.Key
	for _, k := range slices.Backward(keys) {
		spent := money.SpentByKey(spends, k.ID)
		line := pages.Key{ID: k.ID, Prefix: identity.SecretPrefix + k.Prefix, Name: k.Name, Status: k.State(now),
			OperatorOnly: !k.Enabled && !k.MayEnable(identity.PartyLead), Unclaimed: k.Unclaimed,
			ByLead: !k.Enabled && k.DisabledBy == identity.PartyLead, Scopes: k.Scopes, Models: k.Models,
			RPM: k.Limits.RPM, TPM: k.Limits.TPM, Slots: k.Limits.Concurrency, Budget: k.Budget,
			Window: string(k.Window), AllowIPs: networkTexts(k.AllowIPs),
			PreviousUntil: k.PreviousUntil(now), RecordedUntil: k.Recorded(now),
			Spent: spent.Total, InWindow: spent.In(k.Window, now), Created: k.Created,
			Expires: k.Expires}
		if k.Revoked.IsZero() {
			live = append(live, line)
		} else {
			revoked = append(revoked, line)
		}
	}
	return append(live, revoked...)
}

// networkTexts returns networks as the form has them.
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
		rc.show(http.StatusOK, pages.SecretKey(rc.viewer(), name, secret, rc.clients(secret)))
	}
}

// makeKey makes the key that the form asks for, once even if the form is sent twice. n says whose the key is and who
// makes it. If the key cannot be made, makeKey calls again, which shows the form with the reason, and ok is false. The
// secret is only returned here, because the state has its hash.
func (rc *requestContext) makeKey(n tokens.NewKey,
	again func(status int, problem string)) (name, secret string, ok bool) {
	ok = rc.once(again, func() (err error) {
		if err = rc.readKey(&n); err == nil {
			secret, _, err = rc.options.Registry.CreateKey(rc.r.Context(), n)
		}
		return err
	})
	return n.Name, secret, ok
}

// readKey reads the fields of the form into n. The error is about the first field that cannot be read, and names it in
// the words of the page.
func (rc *requestContext) readKey(n *tokens.NewKey) error {
	f := fields{form: rc.form}
	n.Name, n.Scopes, n.Models = f.text("name"), rc.form["scope"], f.list("models")
	n.AllowIPs = f.networks("allow", "Addresses")
	n.Limits = identity.Limits{RPM: f.whole("rpm", "Requests a minute"), TPM: f.whole("tpm", "Tokens a minute"),
		Concurrency: f.whole("slots", "Requests at a time")}
	n.Budget, n.Window, n.Expires = f.dollars("budget", "Budget"), budget.Window(f.text("window")),
		f.lastDay("expiry", "Last day")
	return f.err
}

// keysAgain shows the form as it was sent, with what is wrong.
func (rc *requestContext) keysAgain(status int, problem string) {
	view := rc.keysView()
	fillKey(&view.Entry, rc.form)
	view.Problem = problem
	rc.show(status, view)
}

// fillKey fills the form with values, such as those that were typed.
func fillKey(e *pages.KeyEntry, v url.Values) {
	e.Name, e.Models, e.AllowIPs, e.Open = v.Get("name"), v.Get("models"), v.Get("allow"), true
	e.RPM, e.TPM, e.Slots, e.Budget = v.Get("rpm"), v.Get("tpm"), v.Get("slots"), v.Get("budget")
	e.Expiry, e.Window, e.OnDisconnect = v.Get("expiry"), v.Get("window"), v.Get("disconnect")
	for i := range e.Scopes {
		e.Scopes[i].Ticked = slices.Contains(v["scope"], e.Scopes[i].Name)
	}
}

// clients returns the settings with which client programs use a key, at the address that the browser uses.
func (rc *requestContext) clients(key string) []pages.ClientSetting {
	return pages.ClientSettings(rc.addressFor(rc.r), key, rc.exampleModel())
}

// connect shows how clients are connected, and the last request with a key if there is a log of requests. Keys are
// shown once and not here, so the reader fills in one.
func (rc *requestContext) connect() {
	log, err := rc.openLog()
	view := &pages.Connect{Viewer: rc.viewer(), Address: rc.addressFor(rc.r), Clients: rc.clients(""),
		Logged: err == nil && log != nil}
	const most = 50 // the last may be those of the page Chat, which have no key
	last := rc.recentRequests(most)
	if i := slices.IndexFunc(last, func(r pages.RequestRow) bool { return r.FromPage() == "" }); i >= 0 {
		view.Last = &last[i]
	}
	rc.show(http.StatusOK, view)
}

// changeKey does to a key of the user what the address names: it enables, disables, edits, rotates or revokes the key.
func (rc *requestContext) changeKey() {
	id, ctx := rc.r.PathValue("id"), rc.r.Context()
	switch rc.r.PathValue("action") {
	case "enable":
		rc.concluded(rc.options.Registry.EnableKey(ctx, rc.user.ID, id, true), pathKeys, "key_enabled")
	case "disable":
		rc.concluded(rc.options.Registry.EnableKey(ctx, rc.user.ID, id, false), pathKeys, "key_disabled")
	case "edit":
		rc.editKey(id)
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

// oneKey shows the page of a key.
func (rc *requestContext) oneKey() {
	if view, values := rc.keyView(); view != nil {
		fillKey(&view.Entry, values)
		view.Entry.Was = values.Encode()
		rc.show(http.StatusOK, view)
	}
}

// keyView returns the page of the key that the path names, with an empty form, and the values for the form. If the user
// has no such key, it answers 404 and returns nil. The field was of the form carries the values with which it was
// drawn, so that editKey knows what the user has changed.
func (rc *requestContext) keyView() (*pages.OneKey, url.Values) {
	k, ok := rc.ownKey(rc.r.PathValue("id"))
	if !ok {
		rc.missing()
		return nil, nil
	}
	lines := rc.keyLines([]identity.Key{k})
	rc.addUse(lines)
	_, mayCreate := rc.restrictions()
	view := &pages.OneKey{Viewer: rc.viewer(), Key: lines[0], Forbidden: !mayCreate}
	form := pages.Form{Action: pathKeys + "/" + k.ID + "/edit", Token: view.Token}
	view.Entry = keyEntry(rc.scopesOf(rc.user.ID), form)
	view.Entry.Prefix = "edit-"
	for _, m := range rc.options.Catalog().Models() {
		view.Models++
		if slices.ContainsFunc(k.Models, func(glob string) bool { return identity.MatchModel(glob, m.ID) }) {
			view.Matched++
		}
	}
	values := keyValues(&k)
	for _, box := range view.Entry.Scopes { // in this sequence a browser sends them
		if slices.Contains(k.Scopes, box.Name) {
			values.Add("scope", box.Name)
		}
	}
	return view, values
}

// ownKey returns the key of the user with this id, unless it was revoked.
func (rc *requestContext) ownKey(id string) (identity.Key, bool) {
	for _, k := range rc.options.Registry.UserKeys(rc.user.ID) {
		if k.ID == id && k.Revoked.IsZero() {
			return k, true
		}
	}
	return identity.Key{}, false
}

// keyValues returns the values of the form of a key, without the ticks of its scopes: only those for which the form has
// a box can be ticked.
func keyValues(k *identity.Key) url.Values {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	v := url.Values{"name": {k.Name}, "models": {strings.Join(k.Models, ", ")},
		"allow": {strings.Join(networkTexts(k.AllowIPs), ", ")}, "rpm": {number(k.Limits.RPM)},
		"tpm": {number(k.Limits.TPM)}, "slots": {number(k.Limits.Concurrency)}, "budget": {""}, "window": {""},
		"expiry": {""}, "disconnect": {k.OnDisconnect.String()}}
	if k.Budget != 0 {
		v.Set("budget", pages.Dollars(k.Budget))
	}
	if k.Window == budget.WindowDay || k.Window == budget.WindowMonth {
		v.Set("window", string(k.Window))
	}
	if !k.Expires.IsZero() {
		// The form has the last day on which the key is valid, and the record has the moment at which it ends.
		v.Set("expiry", k.Expires.Add(-time.Nanosecond).UTC().Format(time.DateOnly))
	}
	return v
}

// editKey changes those settings of a key whose fields the user has changed, so that the form does not undo what an
// operator changed meanwhile.
func (rc *requestContext) editKey(id string) {
	was, err := url.ParseQuery(rc.form.Get("was"))
	if err != nil || was.Get("name") == "" {
		rc.show(http.StatusBadRequest, failureBroken)
		return
	}
	var n tokens.NewKey
	if err = rc.readKey(&n); err == nil {
		k, _ := rc.ownKey(id)
		n.Scopes = changedScopes(k.Scopes, was["scope"], n.Scopes)
		err = rc.options.Registry.UpdateOwnKey(rc.r.Context(), rc.user.ID, id, rc.keyChange(&n, was))
	}
	if err == nil || errors.Is(err, tokens.ErrNotFound) {
		rc.concluded(err, pathKeys, "key_changed")
		return
	}
	status, text := rc.problem(err)
	if view, _ := rc.keyView(); view != nil {
		fillKey(&view.Entry, rc.form)
		view.Entry.Was, view.Problem = rc.form.Get("was"), text
		rc.show(status, view)
	}
}

// changedScopes returns the new scopes of a key that has the scopes has. was are the boxes that were ticked when its
// form was drawn, and sent those that are ticked now. A scope that the ceilings of the user hide has no box, and the
// key keeps it. Otherwise a key could lose its last scope by accident, and a key without scopes may do everything.
func changedScopes(has, was, sent []string) []string {
	left := slices.DeleteFunc(slices.Clone(has), func(s string) bool {
		return slices.Contains(was, s) || slices.Contains(sent, s)
	})
	return append(left, sent...)
}

// keyChange returns the change of the fields that differ from what they were.
func (rc *requestContext) keyChange(n *tokens.NewKey, was url.Values) tokens.KeyChange {
	touched := func(name string) bool { return !slices.Equal(rc.form[name], was[name]) }
	var c tokens.KeyChange
	if touched("name") {
		c.Name = &n.Name
	}
	if touched("scope") {
		c.Scopes = &n.Scopes
	}
	if touched("models") {
		c.Models = &n.Models
	}
	if touched("allow") {
		c.AllowIPs = &n.AllowIPs
	}
	if touched("rpm") {
		c.Limits.RPM = &n.Limits.RPM
	}
	if touched("tpm") {
		c.Limits.TPM = &n.Limits.TPM
	}
	if touched("slots") {
		c.Limits.Concurrency = &n.Limits.Concurrency
	}
	if touched("budget") {
		c.Budget.Amount = &n.Budget
	}
	if touched("window") {
		c.Budget.Window = &n.Window
	}
	if touched("expiry") {
		c.Expires = &n.Expires
	}
	if policy := rc.form.Get("disconnect"); touched("disconnect") {
		c.OnDisconnect = &policy
	}
	return c
}

// useDays is the time of which the lists of keys show the use.
const useDays = 7 * 24 * time.Hour

// addUse adds to the keys of the user what the log of requests knows of their use, and reports whether it could. The
// log has sums by the hour, so that nothing is written while a key is used.
func (rc *requestContext) addUse(keys []pages.Key) bool {
	if rc.options.RequestLog == nil {
		return false
	}
	log, err := rc.searchedLog()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(rc.r.Context(), searchTime)
	defer cancel()
	now := rc.options.Now()
	q := requestlog.SpentQuery{Owner: string(state.OwnerOf("", rc.user.Username)), To: now.Add(time.Hour),
		From: now.Add(-useDays).Truncate(time.Hour), Step: time.Hour}
	uses := map[string]*pages.KeyUse{}
	for i := range keys {
		uses[keys[i].ID] = &keys[i].Use
		query := url.Values{"q": {`key:"` + keys[i].ID + `"`}, "range": {"7d"}}
		keys[i].Use.Path = pathRequestLog + "?" + query.Encode()
	}
	err = log.Spent(ctx, &q, func(s *requestlog.Spent) error {
		if use, hour := uses[s.Key], q.From.Add(time.Duration(s.Step)*time.Hour); use != nil {
			use.Days[min(s.Step/24, len(use.Days)-1)] += s.Requests
			if use.Requests += s.Requests; hour.After(use.Last) {
				use.Last, use.App, use.Now = hour, s.App, hour.Equal(now.Truncate(time.Hour))
			}
		}
		return nil
	})
	if err != nil && rc.r.Context().Err() == nil {
		rc.options.Logger.Warn("read the use of keys", "cause", err)
	}
	return err == nil
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
	rc.show(http.StatusOK, pages.SecretRotatedKey(rc.viewer(), k.Name, secret, until, rc.clients(secret)))
}
