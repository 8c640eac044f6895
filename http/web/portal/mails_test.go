package portal_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/browser"
	"stagedoor/http/web/mailer"
	"stagedoor/http/web/mailer/mailertest"
)

func TestLinksAreMailedAndThoseThatTheServerRefusesAreShown(t *testing.T) {
	server := mailertest.Start(t, mailer.StartTLS)
	server.Refuse = []string{"gone@example.com"}
	h := newFixtureWith(t, mailer.New(server.Options(mailer.StartTLS)))
	h.anna, h.root = h.user("anna", false), h.user("root", true)
	root := h.signedIn("root")
	root.get("/admin/users")
	root.expect(root.post("/admin/invitations", "people", "dora@example.com, gone@example.com, eva", "mail", "yes",
		"group", "0"), http.StatusOK, "did not take every mail")
	for _, text := range []string{"Mailed to <bdi>dora@example.com</bdi>", "<bdi>gone@example.com</bdi>",
		"<bdi>eva</bdi>"} {
		if !strings.Contains(root.page, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	if shown := shownLink.FindAllString(root.page, -1); len(shown) != 2 {
		t.Errorf("the page shows %q", shown)
	}
	mails := server.Taken()
	if len(mails) != 1 || mails[0].To != "dora@example.com" || !strings.Contains(mails[0].Subject, "invitation") {
		t.Fatalf("the server has %+v", mails)
	}
	// The mail has the link, and it works.
	link := shownLink.FindStringSubmatch(strings.ReplaceAll(mails[0].Text, "\r\n", "<"))
	if link == nil || strings.Contains(root.page, link[1]) {
		t.Fatalf("the mail is %q", mails[0].Text)
	}
	v := h.visitor()
	v.expect(v.get(link[1]), http.StatusOK, "Create your account")
	v.sentTo(v.post(browser.PathLink, "username", "dora", "new", chosen, "again", chosen), "/account")

	dora, err := h.registry.UserByName("dora")
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/admin/users/%d", dora.ID)
	root.expect(root.get(path), http.StatusOK, "Mail a link to dora@example.com")
	root.expect(root.post(path+"/link", "mail", "yes", "password", password), http.StatusOK, "Mailed to")
	if mails = server.Taken(); len(mails) != 2 || shownLink.MatchString(root.page) {
		t.Errorf("%d mails; the page is %s", len(mails), root.page)
	}
	root.get(path)
	root.expect(root.post(path+"/link", "password", password), http.StatusOK, "Copy it now")
	if !shownLink.MatchString(root.page) || len(server.Taken()) != 2 {
		t.Error("a link that was not to be mailed is not shown")
	}
}

func TestALeadCannotMailStrangersWithoutEnd(t *testing.T) {
	server := mailertest.Start(t, mailer.StartTLS)
	h := newFixtureWith(t, mailer.New(server.Options(mailer.StartTLS)))
	h.anna = h.user("anna", false)
	staff, err := h.registry.CreateGroup(t.Context(), "staff", tokens.CeilingChange{})
	if err == nil {
		_, err = h.registry.AddMember(t.Context(), staff.ID, "anna")
	}
	if err == nil {
		_, err = h.registry.SetLead(t.Context(), staff.ID, "anna", true)
	}
	if err != nil {
		t.Fatal(err)
	}
	anna := h.signedIn("anna")
	for round := range 3 {
		var people []string
		for i := range 40 {
			people = append(people, fmt.Sprintf("p%d-%d@example.com", round, i))
		}
		anna.get("/group")
		anna.expect(anna.post("/group/invitations", "people", strings.Join(people, " "), "mail", "yes"), http.StatusOK,
			"Mailed to")
		for _, l := range h.registry.Invitations() {
			if _, err := h.registry.WithdrawInvitation(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(server.Taken()); n != 100 {
		t.Errorf("the server has %d mails", n)
	}
	if shown := shownLink.FindAllString(anna.page, -1); len(shown) != 20 {
		t.Errorf("the page shows %d links", len(shown))
	}
}
