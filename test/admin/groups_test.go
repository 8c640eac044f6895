package admin

import (
	"strings"
	"testing"
)

// TestCeilingsBindEveryKeyAtOnce: those of a user and of the user's group, by command and by API, on a gateway that
// is running. The keys themselves stay as they are. Developer tokens are no keys, and are bound as well.
func TestCeilingsBindEveryKeyAtOnce(t *testing.T) {
	o := open(t)
	o.start()
	var made struct{ ID, Key string }
	o.api("POST", "/users", `{"username":"anna"}`, &struct{}{})
	o.api("POST", "/keys", `{"user":"anna"}`, &made)
	o.command("credits", "add", "anna", "1")
	want := func(what string, status int, text string) {
		t.Helper()
		if _, a := o.chat(made.Key, "hello"); a.status != status || !strings.Contains(a.text, text) {
			t.Errorf("%s: %d %s, want %d with %q", what, a.status, a.text, status, text)
		}
	}
	want("nothing is restricted", 200, "")
	o.command("users", "update", "anna", "--model", "other-*")
	want("a model beyond the user's ceiling", 403, "model_not_allowed")
	o.api("PATCH", "/users/1", `{"ceiling":{"models":["m"]}}`, &struct{}{})
	want("a model within it", 200, "")
	o.command("groups", "create", "staff", "--scope", "models")
	o.command("groups", "add", "staff", "anna")
	want("a scope beyond the group's ceiling", 403, "the group of the key's user may not use the scope chat")
	if a := o.send(made.Key, "GET", "/v1/models", ""); a.status != 200 {
		t.Errorf("a scope within it: %d %s", a.status, a.text)
	}
	o.api("PATCH", "/groups/1", `{"ceiling":{"scopes":["chat"]}}`, &struct{}{})
	want("the group's ceiling was raised", 200, "")
	o.command("groups", "update", "staff", "--no-scopes")
	want("the group's ceiling permits nothing", 403, "may not use the scope chat")
	o.command("groups", "remove", "staff", "anna")
	want("a former member", 200, "")

	token := strings.TrimSpace(o.command("users", "developer-token", "anna"))
	register := func() answer {
		return o.send(token, "POST", "/api/oauth_apps",
			`{"name":"Weather","redirect_uri":"https://weather.example.com/cb"}`)
	}
	if a := register(); a.status != 200 {
		t.Errorf("a developer token registered an app: %d %s", a.status, a.text)
	}
	if a := o.send(token, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`); a.status != 401 {
		t.Errorf("a developer token was taken for a key: %d %s", a.status, a.text)
	}
	o.command("users", "update", "anna", "--create-keys=false")
	if a := register(); a.status != 403 {
		t.Errorf("a developer token of a user who may create none: %d %s", a.status, a.text)
	}
	want("keys that an operator made work on", 200, "")
}

// TestBudgetOfAGroupHoldsAcrossUsersAndACrash spends a group's budget up with one member and finds it spent for the
// other, also after a crash. A user's budget counts what was spent before it was set.
func TestBudgetOfAGroupHoldsAcrossUsersAndACrash(t *testing.T) {
	o := open(t)
	o.launch()
	keys := map[string]string{}
	o.api("POST", "/groups", `{"name":"staff","ceiling":{"budget":{"amount":600}}}`, &struct{}{})
	for _, name := range []string{"anna", "ben"} {
		var made struct{ Key string }
		o.api("POST", "/users", `{"username":"`+name+`"}`, &struct{}{})
		o.api("POST", "/keys", `{"user":"`+name+`"}`, &made)
		o.command("credits", "add", name, "1")
		o.command("groups", "add", "staff", name)
		keys[name] = made.Key
	}
	refused := func(name, owner string) bool {
		t.Helper()
		_, a := o.chat(keys[name], "hello there")
		switch {
		case a.status == 200:
			return false
		case a.status == 429 && strings.Contains(a.text, "the "+owner+"'s budget"):
			return true
		}
		t.Fatalf("%d %s", a.status, a.text)
		return false
	}
	if refused("ben", "group") {
		t.Fatal("the budget allows nothing")
	}
	for n := 0; !refused("anna", "group"); n++ {
		if n > 600 {
			t.Fatal("the budget bounds nothing")
		}
	}
	if !refused("ben", "group") {
		t.Error("the budget is spent for one member and not for the other")
	}
	spent := func() int64 {
		sum := o.settled("anna").Spent + o.settled("ben").Spent
		var g struct{ Spent struct{ Total int64 } }
		o.api("GET", "/groups/1", "", &g)
		if g.Spent.Total != sum || sum > 600 {
			t.Errorf("the group has spent %d and its members %d of a budget of 600", g.Spent.Total, sum)
		}
		return sum
	}
	before := spent()
	if err := o.gate.Kill(); err != nil {
		t.Fatal(err)
	}
	if out := o.command("groups", "show", "staff"); !strings.Contains(out, "users        anna, ben") {
		t.Errorf("the stopped gateway shows %s", out)
	}
	o.start()
	if !refused("ben", "group") {
		t.Error("the crash gave the budget back")
	}
	if after := spent(); after != before {
		t.Errorf("the group had spent %d, now %d", before, after)
	}
	o.command("groups", "update", "staff", "--budget", "0")
	o.command("users", "update", "anna", "--budget", "0.000001")
	if refused("ben", "group") {
		t.Error("a budget that was taken away refuses")
	}
	if !refused("anna", "user") {
		t.Error("a user's budget does not count what was spent before it was set")
	}
}
