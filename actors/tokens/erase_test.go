package tokens_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
	"stagedoor/state"
	"stagedoor/state/identity"
)

func TestErasingAUserLeavesTheNameAlone(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u, err := b.CreateUser(ctx,
		tokens.NewUser{Username: "anna", Email: "anna@example.com", Password: secretWord, Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, err := b.Login(ctx, tokens.Login{Username: "anna", Password: secretWord, From: home})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := b.CreateDeveloperToken(ctx, u.ID, "laptop")
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := b.CreateKey(ctx, tokens.NewKey{User: u.ID, Name: "anna's laptop"})
	if err != nil {
		t.Fatal(err)
	}
	_, app, err := b.RegisterApp(ctx,
		tokens.NewApp{Owner: u.ID, Name: "App", Description: "by Anna", RedirectURI: callback})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again changes nothing
		erased, err := b.EraseUser(ctx, u.ID)
		if err != nil || erased.Erased.IsZero() || erased.Active() || erased.Admin || erased.Email != "" ||
			erased.Username != "anna" {
			t.Errorf("%+v, %v", erased, err)
		}
	}
	v := b.state.View()
	if kept, ok := identity.FindUser(v, u.ID); !ok || kept.Password != "" {
		t.Errorf("the record is %+v", kept)
	}
	if k, err := identity.FindKey(v, key.ID); err != nil || k.Revoked.IsZero() || k.Name != "erased" {
		t.Errorf("the key is %+v, %v", k, err)
	}
	if a, ok := identity.FindApp(v, app.ID); !ok || a.Disabled.IsZero() || a.Description != "" {
		t.Errorf("the app is %+v", a)
	}
	_, session := b.Session(ctx, cookie, tokens.Sender{})
	_, developer := b.Developer(token)
	active := tokens.StatusActive
	_, enable := b.UpdateUser(ctx, u.ID, tokens.UserChange{Status: &active})
	_, again := b.CreateUser(ctx, tokens.NewUser{Username: "Anna", Password: secretWord})
	_, _, link := b.ResetLink(ctx, u.ID, "")
	_, unknown := b.EraseUser(ctx, 99)
	for what, c := range map[string][2]error{
		"the session":          {session, tokens.ErrNoSession},
		"the developer token":  {developer, tokens.ErrNoDeveloper},
		"enabling it again":    {enable, tokens.ErrNotFound},
		"another of that name": {again, tokens.ErrExists},
		"a link":               {link, tokens.ErrUserDisabled},
		"an unknown user":      {unknown, tokens.ErrNotFound},
	} {
		if !errors.Is(c[0], c[1]) {
			t.Errorf("%s: %v, want %v", what, c[0], c[1])
		}
	}
	if _, _, err := b.Login(ctx, tokens.Login{Username: "anna", Password: secretWord, From: home}); !errors.Is(err,
		tokens.ErrLogin) {
		t.Errorf("signing in: %v", err)
	}
}

func TestErasingAUserWritesNothingErasedIntoTheAuditLog(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "anna")
	_, key, err := b.CreateKey(ctx, tokens.NewKey{User: u.ID, Name: "Rue X 5"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.CreateDeveloperToken(ctx, u.ID, "Rue Y 7"); err != nil {
		t.Fatal(err)
	}
	networks := []netip.Prefix{netip.MustParsePrefix("203.0.113.7/32")}
	if _, err := b.UpdateKey(ctx, key.ID, tokens.KeyChange{AllowIPs: &networks}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.RegisterApp(ctx,
		tokens.NewApp{Owner: u.ID, Name: "App", Description: "by Anna Smith", RedirectURI: callback}); err != nil {
		t.Fatal(err)
	}
	log := func() (all []state.AuditRecord) {
		for r, err := range b.state.AuditLog(ctx, state.AuditQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		return all
	}
	before := len(log())
	if _, err := b.EraseUser(ctx, u.ID); err != nil {
		t.Fatal(err)
	}
	all := log()
	text, err := json.Marshal(all[:len(all)-before])
	if err != nil || !strings.Contains(string(text), "allowed_networks") {
		t.Fatalf("%s, %v", text, err)
	}
	for _, erased := range []string{"Rue X 5", "Rue Y 7", "203.0.113.7", "Anna Smith"} {
		if strings.Contains(string(text), erased) {
			t.Errorf("the records have %q: %s", erased, text)
		}
	}
}
