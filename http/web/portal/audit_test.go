package portal_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
)

func (h *fixture) audited(q state.AuditQuery) (all []state.AuditRecord) {
	h.t.Helper()
	for r, err := range h.state.AuditLog(h.t.Context(), q) {
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestChangesOnPagesAreRecordedWithWhoFromWhereAndWhat(t *testing.T) {
	h := newFixture(t)
	root := h.signedIn("root")
	root.get("/admin/users/1")
	root.sentTo(root.post("/admin/users/1/money", "amount", "5", "reason", "welcome"), "/admin/users/1?done=credited")
	root.get("/admin/users/1")
	root.sentTo(root.post("/admin/users/1/status", "status", "2"), "/admin/users/1?done=user_disabled")
	all := h.audited(state.AuditQuery{Actor: "root"})
	var actions []string
	for _, r := range all {
		actions = append(actions, r.Action)
		want := state.Actor{Kind: state.ActorUser, Name: "root", Via: "page", Address: "192.0.2.1",
			Request: r.Actor.Request}
		if r.Actor != want || !strings.HasPrefix(r.Actor.Request, "id of /") {
			t.Errorf("%s has the actor %+v", r.Action, r.Actor)
		}
	}
	if want := []string{"user.change", "account.credit", "sign_in"}; !slices.Equal(actions, want) {
		t.Fatalf("got %q, want %q", actions, want)
	}
	status, credit := fmt.Sprintf("%s", all[0].Changes), fmt.Sprintf("%s", all[1].Changes)
	if !strings.Contains(status, "{active true false}") || !strings.Contains(credit, `"welcome`) {
		t.Errorf("got %s and %s", status, credit)
	}
}

func TestFailedSignInsAreRecordedWithoutWhatWasTyped(t *testing.T) {
	h := newFixture(t)
	v := h.visitor()
	for _, name := range []string{"anna", "hunter2-typed-in-the-wrong-field"} {
		v.get("/signin")
		v.expect(v.post("/signin", "username", name, "password", "mistyped"), http.StatusForbidden, "Wrong username")
	}
	all := h.audited(state.AuditQuery{Action: "sign_in.fail"})
	if len(all) != 2 || all[0].Target.Name != "" || all[1].Target.Name != "anna" ||
		all[0].Actor.Kind != state.ActorVisitor || all[0].Actor.Address != "192.0.2.1" {
		t.Errorf("got %+v", all)
	}
	text, err := json.Marshal(all)
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "mistyped") {
		t.Errorf("the log has what was typed: %s", text)
	}
}

func TestOnlyAdministratorsSeeTheAuditLog(t *testing.T) {
	h := newFixture(t)
	anna, stranger := h.signedIn("anna"), h.visitor()
	for _, path := range []string{"/admin/audit", "/admin/audit.csv", "/admin/audit.jsonl"} {
		anna.expect(anna.get(path), http.StatusNotFound, "")
		if res := stranger.get(path); !strings.HasPrefix(res.Header.Get("Location"), "/signin") {
			t.Errorf("%s: a stranger gets %d", path, res.StatusCode)
		}
	}
}

func TestTheAuditLogIsSearchedShownInPagesAndExported(t *testing.T) {
	h := newFixture(t)
	root := h.signedIn("root")
	ctx := state.WithActor(t.Context(), state.Actor{Kind: state.ActorApp, Name: "=cmd()<b>"})
	const events = 60
	for i := range events {
		e := state.AuditEvent{Action: "thing.change",
			Target: state.Target{Kind: "thing", ID: fmt.Sprint(i), Name: "<b>x"},
			Before: state.Fields{"note": "<b>old"}, After: state.Fields{"note": "<b>new"}}
		if err := h.state.RecordAudit(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	first := root.get("/admin/audit?action=thing&target=X&from=2020-01-01&to=nonsense")
	root.expect(first, http.StatusOK, "thing changed")
	if strings.Contains(root.page, "<b>") || strings.Count(root.page, "thing changed") != 25 {
		t.Errorf("%d rows, or a name is no text", strings.Count(root.page, "thing changed"))
	}
	last := h.audited(state.AuditQuery{})[0].ID
	for _, before := range []uint64{last - 24, last - 49} {
		next := fmt.Sprintf("/admin/audit?action=thing&amp;before=%d&amp;from=2020-01-01&amp;target=X", before)
		if !strings.Contains(root.page, next) {
			t.Fatalf("the page does not lead to %s:\n%s", next, root.page)
		}
		root.get(strings.ReplaceAll(next, "&amp;", "&"))
	}
	if n := strings.Count(root.page, "thing changed"); n != events-50 || strings.Contains(root.page, "rel=\"next\"") {
		t.Errorf("%d rows on the last page", n)
	}
	root.expect(root.get("/admin/audit?to=2020-01-01"), http.StatusOK, "No changes found")
	root.expect(root.get("/admin/audit.jsonl?action=thing"), http.StatusOK, "")
	lines := strings.Split(strings.TrimSpace(root.page), "\n")
	var r state.AuditRecord
	err := json.Unmarshal([]byte(lines[0]), &r)
	if err != nil || len(lines) != events || r.ID != last || r.Target.ID != "59" {
		t.Errorf("%d lines, %v, %+v", len(lines), err, r)
	}
	root.expect(root.get("/admin/audit.csv?action=thing"), http.StatusOK, "")
	rows, err := csv.NewReader(strings.NewReader(root.page)).ReadAll()
	if err != nil || len(rows) != events+1 || rows[1][3] != "'=cmd()<b>" ||
		rows[1][12] != `{"note":"\u003cb\u003enew"}` {
		t.Errorf("%d rows, %v, %q", len(rows), err, rows[1])
	}
}

func TestChangesOfOneUserAreLimited(t *testing.T) {
	h := newFixture(t)
	h.user("ben", false)
	anna, ben, root := h.signedIn("anna"), h.signedIn("ben"), h.signedIn("root")
	n := 0
	for ; n < 200 && anna.post("/account/keys/key_1/disable").StatusCode != http.StatusTooManyRequests; n++ {
		anna.get("/account")
	}
	if n != 60 {
		t.Errorf("%d changes before a pause", n)
	}
	ben.expect(ben.post("/account/keys/key_1/disable"), http.StatusNotFound, "Not found")
	for range n + 1 {
		root.get("/account")
		root.expect(root.post("/account/keys/key_1/disable"), http.StatusNotFound, "Not found")
	}
	anna.get("/account")
	anna.expect(anna.post("/account/apps/1/revoke"), http.StatusTooManyRequests, "Wait a little")
	h.later = time.Minute
	anna.get("/account")
	anna.expect(anna.post("/account/apps/1/revoke"), http.StatusNotFound, "Not found")
	// A thief who has a session cannot keep the user from ending it.
	anna.get("/account")
	anna.sentTo(anna.post("/account/sessions/end"), "/signin?done=signed_out")
}
