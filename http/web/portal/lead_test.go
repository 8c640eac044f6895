package portal_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/browser"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/requestlog"
)

// ledGroups has two groups: staff with the lead lea, the member mia and the member adam, who is an administrator, and
// guests with the lead olga and the member gus. Anna is in none.
type ledGroups struct {
	*fixture
	staff, guests         identity.Group
	lea, mia, olga, gus   tokens.User
	adam                  tokens.User
	miaKey, gusKey, leaKy identity.Key
}

func newLedGroups(t *testing.T) *ledGroups {
	t.Helper()
	h := &ledGroups{fixture: newFixture(t)}
	amount, window, scopes := int64(10_000_000), budget.WindowMonth, []string{"chat"}
	var err error
	h.staff, err = h.registry.CreateGroup(t.Context(), "staff", tokens.CeilingChange{Scopes: &scopes,
		Budget: tokens.BudgetChange{Amount: &amount, Window: &window}})
	if err == nil {
		h.guests, err = h.registry.CreateGroup(t.Context(), "guests", tokens.CeilingChange{})
	}
	if err != nil {
		t.Fatal(err)
	}
	join := func(g identity.Group, name string, admin, lead bool) tokens.User {
		u := h.user(name, admin)
		_, err := h.registry.AddMember(t.Context(), g.ID, name)
		if err == nil && lead {
			_, err = h.registry.SetLead(t.Context(), g.ID, name, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	h.lea, h.mia, h.adam = join(h.staff, "lea", false, true), join(h.staff, "mia", false, false),
		join(h.staff, "adam", true, false)
	h.olga, h.gus = join(h.guests, "olga", false, true), join(h.guests, "gus", false, false)
	h.miaKey, h.gusKey, h.leaKy = h.key(h.mia, "mias-laptop"), h.key(h.gus, "guss-laptop"), h.key(h.lea, "leas-laptop")
	return h
}

func (h *ledGroups) key(u tokens.User, name string) identity.Key {
	h.t.Helper()
	_, k, err := h.registry.CreateKey(h.t.Context(), tokens.NewKey{User: u.ID, Name: name})
	if err != nil {
		h.t.Fatal(err)
	}
	return k
}

func (h *ledGroups) find(k identity.Key) identity.Key {
	h.t.Helper()
	k, err := identity.FindKey(h.state.View(), k.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return k
}

// TestOnlyTheLeadOfTheGroupHasTheRightsOfALead sends every request of a lead as the lead of another group, a member, an
// administrator of the same group who does not lead it, a user without a group, and a
// browser that is not signed in.
func TestOnlyTheLeadOfTheGroupHasTheRightsOfALead(t *testing.T) {
	h := newLedGroups(t)
	_, invitation, err := h.registry.Invite(t.Context(), tokens.Invitation{Email: "new@example.com",
		Group: h.staff.ID, By: "lea", Lead: h.lea.ID})
	if err != nil {
		t.Fatal(err)
	}
	mia := fmt.Sprint(h.mia.ID)
	routes := []struct {
		path   string
		fields []string // nil: a page
		// foreign is set if the address names something of the group. The others show olga her own group.
		foreign bool
	}{
		{path: "/group"}, {path: "/group/keys"}, {path: "/group/spend"}, {path: "/group/spend.csv"},
		{"/group/invitations", []string{"people", "eve@example.com"}, false},
		{"/group/invitations/" + invitation.ID + "/withdraw", []string{}, true},
		{"/group/keys", []string{"member", mia, "name", "k"}, true},
		{"/group/keys/" + h.miaKey.ID + "/disable", []string{}, true},
		{"/group/keys/" + h.miaKey.ID + "/enable", []string{}, true},
		{"/group/keys/" + h.miaKey.ID + "/budget", []string{"budget", "1", "window", "day"}, true},
		{"/group/keys/" + h.miaKey.ID + "/revoke", []string{}, true},
		{"/group/members/" + mia + "/remove", []string{}, true},
	}
	for _, name := range []string{"mia", "adam", "anna", "olga"} {
		v := h.signedIn(name)
		for _, route := range routes {
			if name == "olga" && !route.foreign {
				continue
			}
			v.get("/account/keys?new=1")
			var res *http.Response
			if route.fields == nil {
				res = v.get(route.path)
			} else {
				res = v.post(route.path, route.fields...)
			}
			if res.StatusCode != http.StatusNotFound {
				t.Errorf("%s gets %d from %s", name, res.StatusCode, route.path)
			}
		}
		if name != "olga" {
			if v.get("/account"); strings.Contains(v.page, `href="/group`) {
				t.Errorf("the pages of %s lead to those of a lead", name)
			}
		}
	}
	stranger := h.visitor()
	stranger.get("/signin")
	for _, route := range routes {
		if route.fields == nil {
			stranger.sentTo(stranger.get(route.path), "/signin?next="+strings.ReplaceAll(route.path, "/", "%2F"))
		} else if res := stranger.post(route.path, route.fields...); res.StatusCode != http.StatusSeeOther {
			t.Errorf("a stranger gets %d from %s", res.StatusCode, route.path)
		}
	}
	kept, _ := identity.FindUser(h.state.View(), h.mia.ID)
	if k := h.find(h.miaKey); !k.Enabled || k.Budget != 0 || kept.Group != h.staff.ID ||
		len(h.registry.Invitations()) != 1 || len(h.registry.UserKeys(h.mia.ID)) != 1 {
		t.Errorf("a refused request has changed %+v or %+v", k, kept)
	}

	// The lead has no right of a lead over herself and over administrators.
	lea := h.signedIn("lea")
	adamKey := h.key(h.adam, "adams")
	for _, path := range []string{"/group/keys/" + h.leaKy.ID + "/disable", "/group/keys/" + adamKey.ID + "/disable",
		"/group/keys/" + h.gusKey.ID + "/disable", "/group/keys/none/disable",
		fmt.Sprintf("/group/members/%d/remove", h.lea.ID), fmt.Sprintf("/group/members/%d/remove", h.adam.ID),
		fmt.Sprintf("/group/members/%d/remove", h.gus.ID), "/group/members/x/remove"} {
		lea.get("/group")
		lea.expect(lea.post(path), http.StatusNotFound, "")
	}
	for _, member := range []tokens.User{h.lea, h.adam, h.gus, h.anna} {
		lea.get("/group/keys")
		lea.expect(lea.post("/group/keys", "member", fmt.Sprint(member.ID), "name", "k"), http.StatusNotFound, "")
	}
	lea.get("/group")
	lea.expect(lea.post("/group/members/"+mia+"/remove", "token", "x"), http.StatusForbidden, "")
	for _, path := range []string{"/admin/users", fmt.Sprintf("/admin/groups/%d", h.staff.ID)} {
		lea.expect(lea.get(path), http.StatusNotFound, "")
	}
}

func TestALeadLooksAfterAGroup(t *testing.T) {
	h := newLedGroups(t)
	root, lea := h.signedIn("root"), h.signedIn("lea")
	lea.get("/group")
	for _, text := range []string{"staff", "mia", "adam", "budget $10.00 a month", "Budget of the group"} {
		if !strings.Contains(lea.page, text) {
			t.Errorf("the page lacks %q:\n%s", text, lea.page)
		}
	}

	// A person whom the lead invites is in the group, and the day's spending of the person is the lead's to see.
	lea.expect(lea.post("/group/invitations", "people", "nia@example.com", "group", fmt.Sprint(h.guests.ID)),
		http.StatusOK, "not shown again")
	link := shownLink.FindStringSubmatch(lea.page)[1]
	lea.expect(lea.get("/group"), http.StatusOK, "nia@example.com")
	nia := h.visitor()
	nia.get(link)
	nia.sentTo(nia.post(browser.PathLink, "username", "nia", "new", chosen, "again", chosen), "/account")
	u, _ := h.registry.UserByName("nia")
	if kept, _ := identity.FindUser(h.state.View(), u.ID); kept.Group != h.staff.ID || u.Admin || u.Leads {
		t.Errorf("the invited person is %+v", kept)
	}

	// The member, and not the lead, sees the secret of a key that the lead makes.
	lea.get("/group/keys")
	for _, wrong := range [][]string{{"budget", "10.01", "window", "month"}, {"scope", "images"}} {
		fields := append([]string{"member", fmt.Sprint(u.ID), "name", "given"}, wrong...)
		lea.expect(lea.post("/group/keys", fields...), http.StatusUnprocessableEntity, "must be")
	}
	lea.sentTo(lea.post("/group/keys", "member", fmt.Sprint(u.ID), "name", "given", "budget", "3", "window", "month"),
		"/group/keys?done=key_made")
	if strings.Contains(lea.page, "sd-") {
		t.Error("the lead sees a secret")
	}
	given := h.registry.UserKeys(u.ID)[0]
	if !given.Unclaimed || given.Budget != 3_000_000 || given.Window != budget.WindowMonth {
		t.Errorf("made %+v", given)
	}
	nia.expect(nia.get("/account/keys"), http.StatusOK, "Show secret")
	nia.expect(nia.post("/account/keys/"+given.ID+"/rotate", "overlap", "0"), http.StatusOK, "sd-")
	if h.find(given).Unclaimed {
		t.Error("the key still has no secret")
	}

	h.charge("nia", given.ID, "large", 1_500_000, h.staff.Scope().Name())
	h.charge("gus", h.gusKey.ID, "secret-model", 700_000)
	h.charge("mia", h.miaKey.ID, "earlier-model", 400_000) // on the day on which mia came from elsewhere
	lea.expect(lea.get("/group"), http.StatusOK, "$1.50 in the last 14 days")
	lea.expect(lea.get("/group/keys"), http.StatusOK, "$1.50")
	if strings.Contains(lea.page, "sd-") || strings.Contains(lea.page, "guss-laptop") {
		t.Errorf("the lead sees too much:\n%s", lea.page)
	}
	for _, query := range []string{"", "?by=key", "?by=model", "?by=group"} {
		lea.get("/group/spend" + query)
		if !strings.Contains(lea.page, "$1.50") || strings.Contains(lea.page, "secret-model") ||
			strings.Contains(lea.page, "earlier-model") || strings.Contains(lea.page, "gus") {
			t.Errorf("%s:\n%s", query, lea.page)
		}
	}
	lea.expect(lea.get("/group/spend.csv?by=model"), http.StatusOK, "large")
	if strings.Contains(lea.page, "secret-model") {
		t.Error("the file has the spending of others")
	}
	lea.expect(lea.get("/group/spend"), http.StatusOK, "Budget of the group")

	// Budgets of keys, and keys that are disabled.
	key := "/group/keys/" + h.miaKey.ID
	lea.expect(lea.get("/group/keys?edit="+h.miaKey.ID), http.StatusOK, "Change budget")
	lea.expect(lea.post(key+"/budget", "budget", "11"), http.StatusUnprocessableEntity, "at most that of the group")
	lea.get("/group/keys")
	lea.sentTo(lea.post(key+"/budget", "budget", "2", "window", "day"), "/group/keys?done=key_changed")
	if k := h.find(h.miaKey); k.Budget != 2_000_000 || k.Window != budget.WindowDay {
		t.Errorf("budget %+v", k.Limit())
	}
	lea.get("/group/keys")
	lea.sentTo(lea.post(key+"/disable"), "/group/keys?done=key_disabled")
	mia := h.signedIn("mia")
	mia.expect(mia.get("/account/keys"), http.StatusOK, "by a lead of your group")
	mia.expect(mia.post("/account/keys/"+h.miaKey.ID+"/enable"), http.StatusForbidden, "lead")
	lea.get("/group/keys")
	lea.sentTo(lea.post(key+"/enable"), "/group/keys?done=key_enabled")
	root.get("/admin/keys")
	root.post("/admin/keys/" + h.miaKey.ID + "/disable")
	lea.get("/group/keys")
	lea.expect(lea.post(key+"/enable"), http.StatusForbidden, "operator")

	// A member who is removed keeps nothing that the ceiling forbade, and a dismissed lead has no rights left.
	lea.get("/group")
	lea.sentTo(lea.post(fmt.Sprintf("/group/members/%d/remove", h.mia.ID)), "/group?done=user_left")
	if err := identity.AccessOf(h.state).UserPermits("mia", "chat", ""); err == nil {
		t.Error("a removed member has lost the ceiling of the group")
	}
	lea.get("/group")
	lea.expect(lea.post("/group/invitations", "people", "late@example.com"), http.StatusOK, "not shown again")
	link = shownLink.FindStringSubmatch(lea.page)[1]
	root.get(fmt.Sprintf("/admin/groups/%d", h.staff.ID))
	root.sentTo(root.post(fmt.Sprintf("/admin/groups/%d/members/%d/unlead", h.staff.ID, h.lea.ID)),
		fmt.Sprintf("/admin/groups/%d?done=lead_removed", h.staff.ID))
	lea.expect(lea.get("/group"), http.StatusNotFound, "")
	for actor, want := range map[string][]string{"lea": {"link.create", "key.create", "key.change", "user.change"},
		"root": {"user.change"}} {
		done := map[string]bool{}
		for _, r := range h.audited(state.AuditQuery{Actor: actor}) {
			done[r.Action] = true
		}
		for _, action := range want {
			if !done[action] {
				t.Errorf("%s of %s is not in the audit log: %v", action, actor, done)
			}
		}
	}
	late := h.visitor()
	late.expect(late.get(link), http.StatusForbidden, "")
}

func TestALeadSeesTheRequestsOfTheGroupOnly(t *testing.T) {
	h := newLedGroups(t)
	*h.requests = *logOf(6) // of anna and bob
	groups := []string{"staff", "guests"}
	for i := range h.requests.all {
		r := &h.requests.all[i]
		r.Began, r.Group = time.Now().Add(time.Second), groups[r.At%2]
	}
	h.requests.all[1].Group, h.requests.all[1].Began = "staff", time.Now().Add(-time.Hour) // of an earlier group
	lea := h.signedIn("lea")
	lea.expect(lea.get("/requests?of=group&q=model:x&range=30d"), http.StatusOK, "Requests of <bdi>staff")
	q := h.requests.asked
	if last := q.Terms[len(q.Terms)-1]; q.Owner != "" || last != (requestlog.Term{Field: "group", Text: "staff"}) ||
		q.From.Before(h.staff.Created) {
		t.Errorf("the log was asked for %+v", q)
	}
	lea.get("/requests?of=group")
	for _, part := range []string{"of=group", `name="of" value="group"`} {
		if !strings.Contains(lea.page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	lea.expect(lea.get("/requests.csv?of=group"), http.StatusOK, "")
	since := h.staff.Created.Unix() / 60
	h.requests.counts = map[string]map[int64]int64{"": {since + 1: 1000}, "user:lea": {since + 1: 100},
		"group:staff": {since - 2: 10, since: 20, since + 1: 3, since + 2: 4}}
	page := fmt.Sprintf("/requests?of=group&from=%d&to=%d", (since-4)*60, (since+5)*60)
	lea.expect(lea.get(page), http.StatusOK, "7 in this time")
	lea.expect(lea.get(fmt.Sprintf("/requests?of=group&from=%d&to=%d", since*60-86400, (since+5)*60)), http.StatusOK,
		"7 in this time") // a bar begins before the group
	if !strings.Contains(lea.page, "of=group&amp;to=") {
		t.Error("no bar leads to the requests of the group")
	}
	h.requests.counts = nil
	if q := h.requests.asked; q.Terms[0].Text != "staff" {
		t.Errorf("the file is of %+v", q)
	}
	for at, status := range map[int64]int{2: http.StatusOK, 1: http.StatusNotFound, 5: http.StatusNotFound} {
		lea.expect(lea.get(fmt.Sprint("/requests/", at)), status, "")
	}
	lea.get("/requests")
	if q := h.requests.asked; q.Owner != string(state.OwnerOf("", "lea")) {
		t.Errorf("her own requests are those of %q", q.Owner)
	}
	mia := h.signedIn("mia")
	mia.expect(mia.get("/requests/2"), http.StatusNotFound, "")
	mia.get("/requests?of=group")
	if q := h.requests.asked; q.Owner != string(state.OwnerOf("", "mia")) || strings.Contains(mia.page, "req_2") {
		t.Errorf("a member asks for the requests of %+v", q)
	}
}
