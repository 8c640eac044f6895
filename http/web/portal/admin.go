package portal

import (
	"cmp"
	"net/http"
	"slices"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/state"
)

const (
	pathAllKeys = "/admin/keys"
	pathSpend   = "/admin/spend"
	pathCodes   = "/admin/codes"
)

// allKeys lists the keys of everybody, the newest first.
func (v *visit) allKeys() {
	search := v.query("q")
	var found []state.Key
	for _, k := range slices.Backward(v.options.State.Keys(state.KeyFilter{})) {
		if matches(search, k.Name, k.User, state.SecretPrefix+k.Prefix, k.ID) {
			found = append(found, k)
		}
	}
	shown, pager := part(v, pathAllKeys, found)
	shown = slices.Clone(shown)
	slices.Reverse(shown) // keyLines wants them as the state has them
	view := &pages.AllKeys{Desk: v.desk(), Query: search, Pager: pager, Keys: v.keyLines(shown)}
	users := map[string]string{}
	for i := range shown {
		users[shown[i].ID] = shown[i].User
	}
	for i := range view.Keys {
		k := &view.Keys[i]
		k.User = cmp.Or(users[k.ID], "nobody")
		if u, err := v.options.Registry.UserByName(users[k.ID]); err == nil {
			k.UserPath = pathUser(u.ID)
		}
	}
	v.show(http.StatusOK, view)
}

// changeAnyKey enables, disables or revokes anybody's key.
func (v *visit) changeAnyKey() {
	id, ctx := v.r.PathValue("id"), v.r.Context()
	var word string
	var err error
	switch v.r.PathValue("action") {
	case "enable":
		word, err = "key_enabled", v.enableAnyKey(id, true)
	case "disable":
		word, err = "key_disabled", v.enableAnyKey(id, false)
	case "revoke":
		word = "key_revoked"
		_, err = v.options.State.RevokeKey(ctx, id)
	default:
		v.missing()
		return
	}
	if err == nil {
		v.options.Logger.Info("key changed by an administrator", "key", id, "by", v.user.ID, "kind", word)
	}
	v.concluded(err, pathAllKeys, word)
}

func (v *visit) enableAnyKey(id string, enabled bool) error {
	_, err := v.options.Registry.UpdateKey(v.r.Context(), id, tokens.KeyChange{Enabled: &enabled})
	return err
}

// maxShares is how many users and keys are listed by what they spent.
const maxShares = 50

// spend tells who spent how much, over the days that the address asks for.
func (v *visit) spend() {
	usage, err := v.usage(pathSpend, state.UsageQuery{}, true)
	if err != nil {
		v.busy(v.w, v.r, err)
		return
	}
	from, to := v.days()
	users, err := v.options.State.SpendByUser(v.r.Context(), from, to)
	if err != nil {
		v.busy(v.w, v.r, err)
		return
	}
	keys, err := v.options.State.SpendByKey(v.r.Context(), "", from, to)
	if err != nil {
		v.busy(v.w, v.r, err)
		return
	}
	v.show(http.StatusOK, &pages.Spend{Desk: v.desk(), Usage: usage, Users: shares(users, v.userShare), Keys: shares(keys, v.keyShare)})
}

// shares are the rows with most of the money.
func shares(rows []state.UsageRow, name func(*state.UsageRow, *pages.Share)) []pages.Share {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b state.UsageRow) int { return cmp.Compare(b.Amount, a.Amount) })
	var all []pages.Share
	for i := range rows[:min(len(rows), maxShares)] {
		s := pages.Share{Requests: rows[i].Requests, Tokens: rows[i].InputTokens + rows[i].OutputTokens, Amount: rows[i].Amount}
		name(&rows[i], &s)
		all = append(all, s)
	}
	return all
}

func (v *visit) userShare(u *state.UsageRow, s *pages.Share) {
	s.Name = u.Account
	if user, err := v.options.Registry.UserByName(u.Account); err == nil {
		s.Path = pathUser(user.ID)
	}
}

func (v *visit) keyShare(u *state.UsageRow, s *pages.Share) {
	s.Name, s.Note = u.Key, "of "+u.Account
	if k, err := v.options.State.KeyByID(u.Key); err == nil {
		s.Name = k.Name
		s.Note = state.SecretPrefix + k.Prefix + "… " + s.Note
	}
}

func (v *visit) codes() { v.show(http.StatusOK, v.codesView()) }

func (v *visit) codesView() *pages.Codes {
	all := v.options.State.RedeemCodes()
	slices.Reverse(all)
	shown, pager := part(v, pathCodes, all)
	view := &pages.Codes{Desk: v.desk(), Pager: pager, FormID: newFormID(), Count: "1"}
	for i := range shown {
		c := &shown[i]
		view.Codes = append(view.Codes, pages.Code{Hint: c.Hint, Amount: c.Amount, Created: c.Created, MintedBy: c.MintedBy,
			Status: c.State(v.options.Now()), Used: c.Used, UsedBy: c.UsedBy, Expires: c.Expires})
	}
	return view
}

// maxCodes is how many codes a page can show once.
const maxCodes = 100

// mint makes redeem codes and shows them, once.
func (v *visit) mint() {
	f := fields{form: v.form}
	count, amount, expires := f.whole("count", "How many"), f.dollars("amount", "Dollars each"), f.lastDay("expiry", "Last day")
	switch {
	case f.err != nil:
	case count < 1 || count > maxCodes:
		f.fail("How many", "must be between 1 and 100")
	case amount <= 0:
		f.fail("Dollars each", "must be more than nothing")
	case !expires.IsZero() && !expires.After(v.options.Now()):
		f.fail("Last day", "must not be over")
	}
	if f.err != nil {
		v.codesAgain(v.problem(f.err))
		return
	}
	id := v.form.Get("id")
	if !v.sent.first(v.user.ID, id) {
		v.codesAgain(http.StatusConflict, problemSent)
		return
	}
	codes, _, err := v.options.Ledger.Mint(v.r.Context(), int(count), amount, v.user.Username, expires, v.options.Random)
	if err != nil {
		v.sent.again(v.user.ID, id)
		v.codesAgain(v.problem(err))
		return
	}
	v.options.Logger.Info("redeem codes minted by an administrator", "count", count, "by", v.user.ID)
	v.show(http.StatusOK, pages.SecretCodes(v.desk(), codes, amount))
}

func (v *visit) codesAgain(status int, problem string) {
	view := v.codesView()
	view.Count, view.Amount, view.Expiry, view.Problem = v.form.Get("count"), v.form.Get("amount"), v.form.Get("expiry"), problem
	v.show(status, view)
}
