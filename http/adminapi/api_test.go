package adminapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/actors/tokens"
	httpflow "stagedoor/http/flow"
	"stagedoor/http/settings"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/work"
)

// bench is an API whose state is a store in memory.
type bench struct {
	t        *testing.T
	api      *API
	state    *state.State
	ledger   *ledger.Client
	handler  http.Handler
	compiler *jsonschema.Compiler
	served   map[string]bool // routes ("METHOD /path") that have answered a test with success
	flow     *flow.Registry
	limiter  *throttle.Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	system := kittest.Start(t)
	registry, err := tokens.Start(tokens.Options{System: system, State: s, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	money, err := ledger.New(system, s)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, state: s, ledger: money, served: map[string]bool{}, flow: flow.New(time.Now)}
	b.limiter, err = throttle.Spawn(system, "p", throttle.Config{RequestsPerMinute: 60, MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	served := []*engine.Provider{{Spec: &catalog.Provider{Name: "up", Shape: "chat"}, Limiter: b.limiter}}
	look := &httpflow.Overview{Flow: b.flow, Serving: func() []*engine.Provider { return served }, Now: time.Now,
		SetPaused: b.setPaused,
		Pause:     func(string) (work.Pause, bool) { return work.Pause{Since: time.Unix(1000, 0)}, true },
		Tree:      func() ([]kit.ActorStats, kit.Stats) { return system.Actors(), system.Stats() }}
	b.api = New(Options{Logger: slog.New(slog.DiscardHandler), State: s, Registry: registry, Ledger: money,
		Link:   func(secret string) string { return "https://gateway.example/" + secret[:3] },
		Random: rand.Reader, Overview: look, Settings: fakeSettings{undone: new(bool)}})
	b.handler = b.api.Handler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.api.description()))
	if err != nil {
		t.Fatal(err)
	}
	b.compiler = jsonschema.NewCompiler()
	b.compiler.AssertFormat()
	if err := b.compiler.AddResource(descriptionURL, doc); err != nil {
		t.Fatal(err)
	}
	return b
}

const descriptionURL = "https://stagedoor.example/openapi.json"

// reply is a response with its decoded JSON body.
type reply struct {
	status int
	text   string
	json   map[string]any
}

func (r reply) get(path string) any {
	var v any = r.json
	for _, name := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			var i int
			fmt.Sscan(name, &i)
			if i >= len(at) {
				return nil
			}
			v = at[i]
		}
	}
	return v
}

func (r reply) say(path string) string { return fmt.Sprint(r.get(path)) }

// call sends a request and checks the reply against the OpenAPI description.
func (b *bench) call(method, path, body string, header ...string) reply {
	b.t.Helper()
	req := httptest.NewRequest(method, Prefix+path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, req)
	r := reply{status: w.Code, text: w.Body.String()}
	numbers := json.NewDecoder(strings.NewReader(r.text))
	numbers.UseNumber()
	if err := numbers.Decode(&r.json); err != nil {
		b.t.Fatalf("%s %s answered %d %s", method, path, w.Code, w.Body)
	}
	b.validate(method, path, r)
	return r
}

func (b *bench) validate(method, path string, r reply) {
	b.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	rt := b.route(method, path)
	if rt == nil {
		return
	}
	pointer := "#/components/responses/Failure/content/application~1json/schema"
	if r.status < 400 {
		if r.status != rt.status {
			b.t.Errorf("%s %s answered %d, described is %d", method, path, r.status, rt.status)
		}
		b.served[method+" "+rt.path] = true
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(Prefix + rt.path)
		pointer = fmt.Sprintf("#/paths/%s/%s/responses/%d/content/application~1json/schema", escaped,
			strings.ToLower(method), rt.status)
	}
	schema, err := b.compiler.Compile(descriptionURL + pointer)
	if err != nil {
		b.t.Fatalf("the schema of %s %s: %v", method, path, err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(r.text))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		b.t.Errorf("%s %s answered %s\nwhich is not as described: %v", method, path, r.text, err)
	}
}

// route returns the row of the table that path belongs to.
func (b *bench) route(method, path string) *route {
	for i := range b.api.routes {
		rt := &b.api.routes[i]
		have, want := strings.Split(path, "/"), strings.Split(rt.path, "/")
		same := rt.method == method && len(have) == len(want)
		for j := 0; same && j < len(want); j++ {
			same = have[j] == want[j] || strings.HasPrefix(want[j], "{")
		}
		if same {
			return rt
		}
	}
	return nil
}

func (b *bench) want(r reply, status int, fields ...any) reply {
	b.t.Helper()
	if r.status != status {
		b.t.Fatalf("answered %d, want %d: %s", r.status, status, r.text)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if got, want := r.say(fields[i].(string)), fmt.Sprint(fields[i+1]); got != want {
			b.t.Errorf("%s is %s, want %s: %s", fields[i], got, want, r.text)
		}
	}
	return r
}

// spend charges a request to a key.
func (b *bench) spend(account, key, request, model string, amount int64) {
	b.t.Helper()
	ctx := b.t.Context()
	h, err := b.ledger.Hold(ctx, ledger.Ask{Account: account, RequestID: request, Amount: amount, Key: key,
		Model: model})
	if err != nil {
		b.t.Fatal(err)
	}
	err = h.Settle(ctx, ledger.Settlement{Amount: amount, Reason: "finished",
		Receipt: &money.Receipt{Model: model, Provider: "p",
			Prices: []money.PriceRow{{What: "input", Quantity: 1, Price: amount, Per: 1}},
			Usage:  money.ReceiptUsage{Input: 10, Output: 5}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// The test does everything that an operator does. It validates each reply against the description
// and checks that no route is left out.
// logoFile returns a small PNG file.
func logoFile(t *testing.T) []byte {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 20, 20))); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestEveryRouteAnswersAsDescribed(t *testing.T) {
	b := newBench(t)
	u := b.want(b.call("POST", "/users", `{"username":"anna","email":"anna@example.com","password":"a long password"}`),
		201,
		"username", "anna", "status", 1, "balance.available", 0, "password", "<nil>")
	id := u.say("id")
	b.want(b.call("POST", "/users", `{"username":"ben"}`), 201)
	if p := b.call("POST", "/users", `{"username":"carl"}`).say("password"); len(p) != 20 {
		t.Errorf("the password that was made up is %q", p)
	}
	b.want(b.call("GET", "/users?limit=2", ""), 200, "data.0.username", "anna", "data.1.username", "ben", "next", "2")
	b.want(b.call("GET", "/users?after=2", ""), 200, "data.0.username", "carl", "next", "<nil>")
	b.want(b.call("GET", "/users?username=ANNA", ""), 200, "data.0.id", id)
	b.want(b.call("PATCH", "/users/"+id, `{"email":"","status":2}`), 200, "email", "", "status", 2)
	b.want(b.call("PATCH", "/users/"+id, `{"status":1,"admin":true,"reset_second_factor":true}`), 200,
		"status", 1, "admin", true, "second_factor", false, "seen", "<nil>")
	b.want(b.call("GET", "/users/"+id, ""), 200, "username", "anna")
	b.want(b.call("DELETE", "/users/"+id+"/sessions", ""), 200, "id", id)
	b.want(b.call("POST", "/users/"+id+"/link", ""), 201, "url", "https://gateway.example/li_")
	b.want(b.call("POST", "/users/99/link", ""), 404, "error.message", "there is no such user")
	b.want(b.call("DELETE", "/users/3", ""), 200, "status", 2)
	b.want(b.call("POST", "/users/"+id+"/developer-tokens", `{"name":"laptop"}`), 201, "user", "anna", "name", "laptop")
	b.want(b.call("POST", "/users/99/developer-tokens", `{"name":"laptop"}`), 404, "error.message",
		"there is no such user")
	b.want(b.call("POST", "/users/3/link", ""), 409, "error.code", "user_disabled")
	b.want(b.call("POST", "/users/3/erase", ""), 200, "status", 2, "email", "", "username", "carl", "remaining", 0)
	b.want(b.call("PATCH", "/users/3", `{"status":1}`), 404, "error.message", "there is no such user")
	b.want(b.call("POST", "/users/99/erase", ""), 404, "error.message", "there is no such user")

	b.want(b.call("POST", "/invitations", `{"username":"anna"}`), 409, "error.param", "username")
	b.want(b.call("POST", "/invitations", `{}`), 400, "error.param", "username")
	b.want(b.call("POST", "/invitations", `{"email":"x","admin":true}`), 400, "error.param", "email")
	b.want(b.call("POST", "/invitations", `{"username":"dora","group":9}`), 400, "error.param", "group")
	i := b.want(b.call("POST", "/invitations", `{"email":"dora@example.com","admin":true}`), 201, "admin", true,
		"url", "https://gateway.example/li_", "by", "")
	b.want(b.call("GET", "/invitations", ""), 200, "data.0.email", "dora@example.com", "data.0.url", "<nil>")
	second := b.want(b.call("POST", "/invitations", `{"email":"emil@example.com"}`), 201).say("id")
	b.want(b.call("GET", "/invitations?limit=1", ""), 200, "data.0.id", i.say("id"), "next", i.say("id"))
	b.want(b.call("GET", "/invitations?limit=1&after="+i.say("id"), ""), 200, "data.0.id", second, "next", "<nil>")
	b.want(b.call("DELETE", "/invitations/"+i.say("id"), ""), 200, "email", "dora@example.com")
	b.want(b.call("DELETE", "/invitations/"+i.say("id"), ""), 404, "error.message", "there is no such invitation")

	g := b.want(b.call("POST", "/groups", `{"name":"staff","ceiling":{"scopes":["chat"],"budget":{"amount":900,"window":"day"},"create_keys":false}}`), 201,
		"name", "staff", "ceiling.scopes", "[chat]", "ceiling.models", "<nil>", "ceiling.budget.amount", 900,
		"ceiling.create_keys", false, "members", 0).
		say("id")
	b.want(b.call("POST", "/groups", `{"name":"guests"}`), 201, "ceiling.create_keys", true, "ceiling.scopes", "<nil>")
	b.want(b.call("PATCH", "/groups/"+g, `{"ceiling":{"budget":{"amount":1000}}}`), 200, "ceiling.budget.amount", 1000,
		"ceiling.budget.window", "day",
		"ceiling.scopes", "[chat]", "ceiling.create_keys", false, "name", "staff")
	b.want(b.call("PATCH", "/groups/"+g, `{"name":"crew","ceiling":null}`), 200, "ceiling.budget", "<nil>",
		"ceiling.scopes", "<nil>", "ceiling.create_keys", true, "name", "crew")
	b.want(b.call("POST", "/groups/"+g+"/members", `{"user":"ANNA"}`), 200, "members", 1)
	b.want(b.call("POST", "/groups/"+g+"/members", `{"user":"anna"}`), 200, "members", 1)
	b.want(b.call("POST", "/groups/2/members", `{"user":"anna"}`), 400, "error.param", "user")
	b.want(b.call("GET", "/groups/"+g+"/members", ""), 200, "data.0.username", "anna", "next", "<nil>")
	b.want(b.call("PUT", "/groups/2/leads/anna", ""), 404, "error.param", "user")
	b.want(b.call("PUT", "/groups/"+g+"/leads/anna", ""), 200, "name", "crew")
	b.want(b.call("GET", "/groups/"+g+"/members", ""), 200, "data.0.lead", true)
	b.want(b.call("DELETE", "/groups/"+g+"/leads/anna", ""), 200, "name", "crew")
	b.want(b.call("GET", "/groups/"+g+"/members", ""), 200, "data.0.lead", false)
	b.want(b.call("GET", "/users/"+id, ""), 200, "group.name", "crew", "ceiling.budget", "<nil>")
	b.want(b.call("DELETE", "/groups/"+g, ""), 409, "error.code", "has_members")
	b.want(b.call("DELETE", "/groups/2/members/anna", ""), 404, "error.param", "user")
	b.want(b.call("DELETE", "/groups/"+g+"/members/anna", ""), 200, "members", 0)
	b.want(b.call("GET", "/groups?name=CREW", ""), 200, "data.0.id", g)
	b.want(b.call("GET", "/groups?limit=1", ""), 200, "data.0.id", g, "next", g)
	b.want(b.call("DELETE", "/groups/"+g, ""), 200, "name", "crew")
	b.want(b.call("GET", "/groups/2", ""), 200, "name", "guests")
	b.want(b.call("PATCH", "/users/"+id, `{"ceiling":{"models":["m*"],"budget":{"amount":70}}}`), 200, "ceiling.models",
		"[m*]", "ceiling.budget.amount", 70,
		"ceiling.budget.window", "total", "email", "", "admin", true)
	b.want(b.call("PATCH", "/users/"+id, `{"ceiling":{"models":null,"create_keys":false}}`), 200, "ceiling.models",
		"<nil>", "ceiling.budget.amount", 70, "ceiling.create_keys", false)
	b.want(b.call("PATCH", "/users/"+id, `{"ceiling":null}`), 200, "ceiling.budget", "<nil>", "ceiling.create_keys",
		true)

	k := b.want(
		b.call("POST", "/keys", `{"user":"Anna","name":"laptop","scopes":["chat"],"models":["m*"],"limits":{"rpm":60},
		"budget":{"amount":5000,"window":"month"},"allow_ips":["192.0.2.1"],"expires":"2126-01-02T15:04:05Z"}`),
		201,
		"user",
		"anna",
		"state",
		"active",
		"budget.amount",
		5000,
		"budget.window",
		"month",
		"limits.rpm",
		60,
		"allow_ips.0",
		"192.0.2.1/32",
		"expires",
		"2126-01-02T15:04:05Z",
	)
	key := k.say("id")
	if secret := k.say("key"); !strings.HasPrefix(secret, k.say("prefix")) ||
		strings.Contains(b.call("GET", "/keys/"+key, "").text, secret) {
		t.Errorf("the secret %q is not what was made, or is shown again", secret)
	}
	free := b.want(b.call("POST", "/keys", ``), 201, "scopes", "<nil>", "user", "").say("id")
	b.want(b.call("PATCH", "/keys/"+key, `{"scopes":null,"models":[],"expires":null,"allow_ips":[],"enabled":false}`),
		200,
		"scopes", "<nil>", "models", "[]", "expires", "<nil>", "allow_ips", "[]", "state", "disabled", "budget.amount",
		5000, "name", "laptop", "on_disconnect", "<nil>")
	b.want(b.call("PATCH", "/keys/"+key, `{"on_disconnect":"finish"}`), 200, "on_disconnect", "finish")
	b.want(b.call("PATCH", "/keys/"+key, `{"on_disconnect":null}`), 200, "on_disconnect", "<nil>")
	b.want(b.call("PATCH", "/keys/"+key, `{"limits":{"tpm":900,"concurrency":null},"budget":{"amount":6}}`), 200,
		"limits.rpm", 60, "limits.tpm", 900,
		"limits.concurrency", "<nil>", "budget.amount", 6, "budget.window", "month", "disabled_by", "operator")
	b.want(b.call("PATCH", "/keys/"+key, `{"limits":{"tpm":0},"budget":{"window":"day"}}`), 200, "limits.rpm", 60,
		"limits.tpm", "<nil>", "budget.amount", 6, "budget.window", "day")
	b.want(b.call("PATCH", "/keys/"+key, `{"budget":null,"enabled":true,"name":"desk"}`), 200, "budget", "<nil>",
		"state", "active", "name", "desk", "limits.rpm", 60)
	again := b.want(b.call("POST", "/keys/"+key+"/secret", `{"overlap_seconds":60}`), 200, "id", key, "name", "desk")
	if again.say("key") == k.say("key") || again.get("previous_secret_until") == nil {
		t.Errorf("the key was not rotated: %s", again.text)
	}
	b.want(b.call("POST", "/keys/"+key+"/secret", `{"overlap_seconds":0}`), 200, "previous_secret_until", "<nil>")
	b.want(b.call("POST", "/keys/"+key+"/secret", `{"overlap_seconds":2592001}`), 400, "error.param",
		"overlap_seconds")
	b.want(b.call("POST", "/keys/key_none/secret", ""), 404, "error.param", "id")
	b.want(b.call("GET", "/keys?user=anna", ""), 200, "data.0.id", key, "next", "<nil>")
	b.want(b.call("GET", "/keys?limit=1", ""), 200, "next", key)
	b.want(b.call("GET", "/keys?limit=1&after="+key, ""), 200, "data.0.id", free)
	b.want(b.call("DELETE", "/keys/"+free, ""), 200, "state", "revoked")
	b.want(b.call("GET", "/keys?state=live", ""), 200, "data.0.id", key, "data.1", "<nil>")

	b.want(b.call("POST", "/accounts/anna/credits", `{"amount":1000000,"reason":"invoice 7","id":"inv-7"}`), 200,
		"available", 1000000, "repeated", false)
	b.want(b.call("POST", "/accounts/anna/credits", `{"amount":1000000}`, "Idempotency-Key", "inv-7"), 200, "available",
		1000000, "repeated", true)
	b.want(b.call("POST", "/accounts/anna/credits", `{"amount":-1,"id":"fix"}`), 200, "available", 999999, "repeated",
		false)
	b.want(b.call("POST", "/accounts/anna/credits", `{"amount":-1,"id":"fix"}`), 200, "available", 999999, "repeated",
		true)
	b.spend("anna", key, "req_1", "m1", 1234)
	b.spend("anna", key, "req_2", "m2", 1)
	b.want(b.call("GET", "/accounts/anna", ""), 200, "credits", 999999, "spent", 1235, "held", 0, "available", 998764)
	b.want(b.call("GET", "/accounts", ""), 200, "data.0.account", "anna", "data.0.spent", 1235)
	b.want(b.call("GET", "/keys/"+key, ""), 200, "spent.total", 1235, "spent.day", 1235, "spent.requests", 2)

	b.want(b.call("GET", "/receipts?user=anna&limit=1", ""), 200, "data.0.request_id", "req_2", "data.0.charged", 1)
	next := b.call("GET", "/receipts?limit=1", "").say("next")
	b.want(b.call("GET", "/receipts?limit=1&after="+next, ""), 200, "data.0.request_id", "req_1", "data.0.charged",
		1234)
	b.want(b.call("GET", "/receipts?key="+key+"&from=2000-01-01", ""), 200, "data.1.request_id", "req_1", "next",
		"<nil>")
	b.want(b.call("GET", "/receipts?to=2000-01-01T00:00:00Z", ""), 200, "data", "[]")
	b.want(b.call("GET", "/receipts/req_1", ""), 200, "data.0.account", "anna", "data.0.prices.0.price", 1234)
	b.want(b.call("GET", "/usage", ""), 200, "data.0.model", "m1", "data.0.amount", 1234, "data.1.amount", 1,
		"total.amount", 1235, "total.requests", 2)
	b.want(b.call("GET", "/usage?per=user,key&user=anna", ""), 200, "data.0.user", "anna", "data.0.key", key,
		"data.0.amount", 1235, "data.0.day", "<nil>")

	codes := b.want(b.call("POST", "/redeem-codes", `{"count":2,"amount":500}`), 201, "data.0.state", "open",
		"data.1.amount", 500)
	first, second := codes.say("data.0.id"), codes.say("data.1.id")
	b.want(b.call("DELETE", "/redeem-codes/"+first, ""), 200, "state", "cancelled")
	if _, err := b.ledger.Redeem(t.Context(), "anna", codes.say("data.0.code")); err == nil {
		t.Error("a cancelled code was redeemed")
	}
	if _, err := b.ledger.Redeem(t.Context(), "anna", codes.say("data.1.code")); err != nil {
		t.Error(err)
	}
	b.want(b.call("GET", "/redeem-codes?state=used", ""), 200, "data.0.id", second, "data.0.used_by", "anna", "data.1",
		"<nil>")
	b.want(b.call("DELETE", "/redeem-codes/"+second, ""), 409, "error.code", "already_used")

	app := b.want(b.call("POST", "/apps", `{"owner":"anna","name":"Weather","redirect_uri":"https://w.example/cb"}`),
		201, "owner", "anna")
	rotated := b.want(b.call("POST", "/apps/"+app.say("id")+"/secret", ""), 200, "client_id", app.get("client_id"))
	if rotated.get("client_secret") == app.get("client_secret") || rotated.get("previous_secret_until") == nil {
		t.Errorf("the secret was not rotated: %s", rotated.text)
	}
	b.want(b.call("GET", "/apps?owner=anna", ""), 200, "data.0.name", "Weather", "data.0.client_secret", "<nil>")
	b.want(b.call("DELETE", "/apps/1/secret/previous", ""), 200, "previous_secret_until", "<nil>", "users", 0)
	b.want(b.call("POST", "/apps/1/secret", `{"overlap_seconds":0}`), 200, "previous_secret_until", "<nil>")
	b.want(b.call("POST", "/apps/1/secret", `{"overlap_seconds":-1}`), 400, "error.param", "overlap_seconds")
	b.want(b.call("PATCH", "/apps/1", `{"name":"Wind","redirect_uris":["https://a.example/","https://b.example/"],`+
		`"logo":"`+base64.StdEncoding.EncodeToString(logoFile(t))+`"}`), 200,
		"name", "Wind", "redirect_uri", "https://a.example/",
		"redirect_uris.1", "https://b.example/", "logo", true)
	b.want(b.call("PATCH", "/apps/1", `{"logo":null,"enabled":false}`), 200, "logo", false)
	b.want(b.call("PATCH", "/apps/1", `{"logo":""}`), 400, "error.param", "logo")
	b.want(b.call("PATCH", "/apps/1", `{"logo":"eA=="}`), 400, "error.param", "logo")
	b.want(b.call("PATCH", "/apps/1", `{"redirect_uris":[]}`), 400, "error.param", "redirect_uris")
	b.want(b.call("PATCH", "/apps/1", `{"enabled":true}`), 200, "disabled", "<nil>")
	b.want(b.call("PATCH", "/apps/99", `{}`), 404, "error.message", "there is no such app")
	b.want(b.call("DELETE", "/apps/1", ""), 200)
	if b.call("GET", "/apps/1", "").get("disabled") == nil {
		t.Error("a deleted app is not disabled")
	}
	b.want(b.call("GET", "/audit?limit=1&action=app.change", ""), 200, "data.0.changes.0.field", "disabled")
	b.want(b.call("GET", "/audit?limit=1&action=app.remove", ""), 200, "data", "[]")
	b.want(b.call("POST", "/apps/1/erase", ""), 200, "name", "Wind")
	b.want(b.call("POST", "/apps/1/erase", ""), 404, "error.message", "there is no such app")
	b.want(b.call("GET", "/audit?limit=1&action=app.remove", ""), 200, "data.0.target.name", "Wind")
	b.want(b.call("GET", "/audit?action=code.change&target="+first, ""), 200, "data.0.action", "code.change",
		"data.0.changes.0.field", "cancelled", "data.0.changes.0.before", "<nil>", "next", "<nil>")
	b.tryFlow()
	for _, rt := range b.api.routes {
		if !b.served[rt.method+" "+rt.path] {
			t.Errorf("%s %s was not tried", rt.method, rt.path)
		}
	}
}

// tryFlow exercises the routes of requests in flight with one running and one queued request.
func (b *bench) tryFlow() {
	t := b.t
	plan := []catalog.Candidate{{Provider: &catalog.Provider{Name: "up"}, Model: "m-upstream"}}
	begin := func(id string) (*flow.Request, context.Context) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := b.flow.Begin(ctx, flow.About{ID: id, Shape: "chat", Model: "m1", Key: "key_1", Stream: true}, cancel)
		r.Attempt(&plan[0])
		r.Enter(flow.Queued)
		return r, ctx
	}
	first, _ := begin("req_a")
	permit, err := b.limiter.Acquire(t.Context(), throttle.Ask{ID: "req_a", Owner: "key:key_1"})
	if err != nil {
		t.Fatal(err)
	}
	first.Enter(flow.Waiting)
	first.Progress(7)
	second, ctx := begin("req_b")
	left := make(chan error)
	go func() {
		_, err := b.limiter.Acquire(ctx, throttle.Ask{ID: "req_b", Owner: "key:key_1"})
		second.End(flow.Result{Status: 503, Code: "cancelled_by_operator"})
		left <- err
	}()
	for queued := false; !queued; {
		waiters, err := b.limiter.Queue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		queued = len(waiters) == 1
	}
	b.want(b.call("GET", "/flow", ""), 200, "load.in_flight", 2, "load.phases.queued", 1, "load.providers.0.in_flight",
		2, "matching", 2,
		"data.0.id", "req_a", "data.0.phase", "replying", "data.0.output_tokens", 7, "data.1.queue_position", 1,
		"data.0.upstream_model", "m-upstream")
	b.want(b.call("GET", "/flow?phase=queued&sort=new&limit=1&model=m&key=key_1&provider=up", ""), 200, "matching", 1,
		"data.0.id", "req_b", "data.1", "<nil>")
	b.want(b.call("GET", "/flow?model=other", ""), 200, "matching", 0, "data", "[]", "load.in_flight", 2)
	b.want(b.call("GET", "/providers", ""), 200, "data.0.name", "up", "data.0.queued", 1, "data.0.queues.0.owner",
		"key:key_1", "data.0.places", 1, "data.0.requests.limit", 60)
	b.want(b.call("DELETE", "/flow/requests/req_b", ""), 202, "id", "req_b")
	if err := <-left; !errors.Is(err, flow.Cancelled) {
		t.Errorf("the request that was cancelled met %v", err)
	}
	b.want(b.call("DELETE", "/flow/requests/req_b", ""), 409, "error.code", "already_ended")
	b.want(b.call("GET", "/flow/requests", ""), 200, "data.0.id", "req_b", "data.0.result.status", 503, "data.1",
		"<nil>")
	b.want(b.call("GET", "/flow/requests?failed=false&limit=500", ""), 200, "data.0.id", "req_b")
	b.want(b.call("GET", "/flow/requests/req_a", ""), 200, "steps.0.phase", "starting", "steps.1.phase", "queued",
		"steps.3.phase", "replying", "result", "<nil>")
	b.want(b.call("GET", "/flow/requests/none", ""), 404)
	b.want(b.call("POST", "/providers/up/pause", ""), 200, "paused", true, "paused_since", "1970-01-01T00:16:40Z")
	b.want(b.call("POST", "/providers/up/resume", "{}"), 200, "paused", false, "paused_since", "<nil>")
	b.want(b.call("POST", "/providers/up/pause", `{"for":1}`), 400)
	b.want(b.call("POST", "/providers/down/pause", ""), 404)
	b.want(b.call("GET", "/providers/up", ""), 200, "in_flight", 1, "granted", 1)
	b.want(b.call("GET", "/providers/down", ""), 404)
	b.trySettings()
	b.want(b.call("GET", "/actors", ""), 200, "actors.0.parent", "", "dead_letters", "[]")
	permit.Release(throttle.Outcome{})
	first.End(flow.Result{Usage: dialogue.NoUsage})
	b.want(b.call("GET", "/flow", ""), 200, "load.in_flight", 0, "load.ended", 2, "load.failed", 1,
		"load.output_tokens", 7)
}

// setPaused replaces Runtime.SetPaused.
func (b *bench) setPaused(_ context.Context, name string, paused bool) error {
	switch {
	case name != "up":
		return state.ErrNotFound
	case paused:
		b.limiter.Pause()
	default:
		b.limiter.Resume()
	}
	return nil
}

// TestAnErasureCountsRequestsInFlight shows that pictures are not forgotten before the last request that may make one
// has ended.
func TestAnErasureCountsRequestsInFlight(t *testing.T) {
	b := newBench(t)
	var forgotten []string
	b.api.Forget = func(owner string) error { forgotten = append(forgotten, owner); return nil }
	b.want(b.call("POST", "/users", `{"username":"anna"}`), 201)
	begin := func(about flow.About) *flow.Request {
		return b.flow.Begin(t.Context(), about, func(error) {})
	}
	picture := begin(flow.About{ID: "req_1", Owner: "user:anna"})
	begin(flow.About{ID: "req_2", Owner: "user:ben"})
	begin(flow.About{ID: "req_3", Owner: "user:anna", Work: true}) // the state has it
	b.want(b.call("POST", "/users/1/erase", ""), 200, "remaining", 1)
	if forgotten != nil {
		t.Errorf("forgotten while a request is in flight: %v", forgotten)
	}
	picture.End(flow.Result{})
	b.want(b.call("POST", "/users/1/erase", ""), 200, "remaining", 0)
	if !slices.Equal(forgotten, []string{"user:anna"}) {
		t.Errorf("forgotten: %v", forgotten)
	}
}

func TestFlowRoutesNeedARunningGateway(t *testing.T) {
	b := newBench(t)
	b.api.Overview, b.api.Settings = nil, nil
	b.want(b.call("GET", "/configuration", ""), 503, "error.code", "not_running")
	b.want(b.call("GET", "/flow", ""), 503, "error.code", "not_running")
}

func TestMistakesAreNamed(t *testing.T) {
	b := newBench(t)
	b.want(b.call("POST", "/users", `{"username":"anna"}`), 201)
	key := b.call("POST", "/keys", `{"user":"anna"}`).say("id")
	for _, c := range []struct {
		ask, body string
		status    int
		param     string
	}{
		{"POST /users", `{"username":"x","passwort":"y"}`, 400, "passwort"},
		{"POST /users", `{"username":"x","username":"y"}`, 400, "username"},
		{"POST /users", `{"Username":"x"}`, 400, "Username"},
		{"POST /users", `{"username":7}`, 400, "username"},
		{"POST /users", `{"username":"x","password":"short"}`, 400, "password"},
		{"POST /users", `{}`, 400, "username"},
		{"POST /users", `[`, 400, ""},
		{"POST /users", `{"username":"a b"}`, 400, "username"},
		{"POST /users", `{"username":"ANNA"}`, 409, "username"},
		{"GET /users?limt=1", ``, 400, "limt"},
		{"GET /users?limit=501", ``, 400, "limit"},
		{"GET /users?limit=1&limit=2", ``, 400, "limit"},
		{"GET /users?after=x", ``, 400, "after"},
		{"GET /users?after=99", ``, 400, "after"},
		{"GET /invitations?after=lnk_x", ``, 400, "after"},
		{"GET /users/99", ``, 404, "id"},
		{"GET /users/x", ``, 404, "id"},
		{"PATCH /users/1", `{"status":3}`, 400, "status"},
		{"PATCH /users/1", `{"email":null}`, 400, "email"},
		{"PATCH /users/1", `{"ceiling":{"create_keys":null}}`, 400, "ceiling.create_keys"},
		{"PATCH /users/1", `{"ceiling":{"scopes":["x"]}}`, 400, "scopes"},
		{"PATCH /users/1", `{"ceiling":{"budget":{"window":"day"}}}`, 400, "budget"},
		{"POST /groups", `{}`, 400, "name"},
		{"POST /groups", `{"name":"a b"}`, 400, "name"},
		{"POST /groups", `{"name":"x","ceiling":{"models":[""]}}`, 400, "models"},
		{"PATCH /groups/9", `{"name":"x"}`, 404, "id"},
		{"GET /groups/x", ``, 404, "id"},
		{"GET /groups/9/members", ``, 404, "id"},
		{"POST /groups/9/members", `{"user":"anna"}`, 404, "id"},
		{"POST /groups/9/members", `{}`, 400, "user"},
		{"PATCH /keys/key_x", `{"name":null}`, 400, "name"},
		{"PATCH /keys/key_x", `{"budget":{"amount":null}}`, 400, "budget.amount"},
		{"PATCH /keys/key_x", `{"budget":{"amount":0}}`, 400, "budget.amount"},
		{"PATCH /keys/key_x", `{"limits":{"rpm":-1}}`, 400, "limits.rpm"},
		{"PATCH /users/1", `{"username":"b"}`, 400, "username"},
		{"POST /keys", `{"user":"unknown"}`, 404, "user"},
		{"POST /keys", `{"scopes":["fly"]}`, 400, "scopes"},
		{"POST /keys", `{"scopes":[7]}`, 400, "scopes[0]"},
		{"POST /keys", `{"limits":{"rpm":-1}}`, 400, "limits.rpm"},
		{"POST /keys", `{"limits":{"rps":1}}`, 400, "limits.rps"},
		{"POST /keys", `{"budget":{"amount":0}}`, 400, "budget.amount"},
		{"POST /keys", `{"budget":{"amount":1.5}}`, 400, "budget.amount"},
		{"POST /keys", `{"budget":{"amount":5,"windw":"day"}}`, 400, "budget.windw"},
		{"POST /keys", `{"budget":{"amount":5,"window":"week"}}`, 400, "budget"},
		{"POST /keys", `{"allow_ips":["x"]}`, 400, "allow_ips"},
		{"POST /keys", `{"on_disconnect":"stay"}`, 400, "on_disconnect"},
		{"POST /keys", `{"on_disconnect":""}`, 400, "on_disconnect"},
		{"PATCH /keys/key_x", `{"on_disconnect":""}`, 400, "on_disconnect"},
		{"POST /keys", `{"expires":"2001-01-01T00:00:00Z"}`, 400, "expires"},
		{"POST /keys", `{"expires":"tomorrow"}`, 400, "expires"},
		{"PATCH /keys/key_x", `{}`, 404, "id"},
		{"GET /keys?after=x", ``, 400, "after"},
		{"GET /keys?state=dead", ``, 400, "state"},
		{"POST /accounts/anna/credits", `{"amount":0}`, 400, "amount"},
		{"POST /accounts/anna/credits", `{"amount":1000000000000001}`, 400, "amount"},
		{"POST /accounts/anna/credits", `{"amount":-5}`, 409, "amount"},
		{"POST /accounts/anna/credits", `{"amount":5,"id":"a b"}`, 400, "id"},
		{"POST /accounts/anna/credits", `{"amount":5,"reason":"\u0000"}`, 400, "reason"},
		{"POST /accounts/unknown/credits", `{"amount":5}`, 404, "account"},
		{"GET /accounts/unknown", ``, 404, "account"},
		{"POST /redeem-codes", `{"amount":5,"count":1001}`, 400, "count"},
		{"POST /redeem-codes", `{"count":1}`, 400, "amount"},
		{"DELETE /redeem-codes/x", ``, 404, "id"},
		{"POST /apps", `{"owner":"anna","name":"x","redirect_uri":"http://evil.example/"}`, 400, "redirect_uri"},
		{"POST /apps", `{"owner":"unknown","name":"x","redirect_uri":"https://x.example/"}`, 404, "owner"},
		{"POST /apps", `{"owner":"anna","name":"x"}`, 400, "redirect_uri"},
		{"GET /receipts/none", ``, 404, "request_id"},
		{"GET /receipts?from=yesterday", ``, 400, "from"},
		{"GET /usage?per=week", ``, 400, "per"},
		{"GET /usage?from=2020-01-01&to=2022-01-01", ``, 400, "from"},
		{"GET /usage?from=2020-01-02&to=2020-01-01", ``, 400, "from"},
	} {
		t.Run(c.ask+" "+c.body, func(t *testing.T) {
			b.t = t
			method, path, _ := strings.Cut(c.ask, " ")
			r := b.call(method, path, c.body)
			param := c.param
			if param == "" {
				param = "<nil>"
			}
			b.want(r, c.status, "error.param", param)
		})
	}
	b.t = t
	b.want(b.call("POST", "/users", "x=1", "Content-Type", "application/x-www-form-urlencoded"), 415)
	b.want(b.call("POST", "/users", `{"username":"`+strings.Repeat("x", maxBody)+`"}`), 413)
	// refused because of its Content-Length, before it is read
	b.want(b.call("POST", "/users", strings.Repeat("x", maxBody+1), "Content-Type", "text/plain"), 413)
	b.want(b.call("POST", "/accounts/anna/credits", `{"amount":5,"id":"one"}`), 200)
	b.want(b.call("POST", "/accounts/anna/credits", `{"amount":6,"id":"one"}`), 409, "error.param", "id")
	b.want(b.call("DELETE", "/keys/"+key, ""), 200)
	b.want(b.call("PATCH", "/keys/"+key, `{"enabled":true}`), 400, "error.param", "id")
}

// The description has what validators of OpenAPI check first, and every schema in it compiles.
func TestDescriptionIsOpenAPI(t *testing.T) {
	b := newBench(t)
	var doc struct {
		OpenAPI string                               `json:"openapi"`
		Info    struct{ Title, Version string }      `json:"info"`
		Paths   map[string]map[string]map[string]any `json:"paths"`
		Parts   struct{ Schemas map[string]any }     `json:"components"`
	}
	if err := json.Unmarshal(b.api.description(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Title == "" || doc.Info.Version == "" {
		t.Errorf("the head is %+v", doc.Info)
	}
	names, described := map[any]bool{}, 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			described++
			if names[op["operationId"]] || op["summary"] == "" || op["responses"] == nil {
				t.Errorf("%s %s is described by %v", method, path, op)
			}
			names[op["operationId"]] = true
			if path != descriptionPath && b.route(strings.ToUpper(method), strings.TrimPrefix(path, Prefix)) == nil {
				t.Errorf("%s %s is described and not served", method, path)
			}
		}
	}
	if described != len(b.api.routes)+1 {
		t.Errorf("%d operations are described, %d served", described, len(b.api.routes)+1)
	}
	for name := range doc.Parts.Schemas {
		if _, err := b.compiler.Compile(descriptionURL + "#/components/schemas/" + name); err != nil {
			t.Error(err)
		}
	}
	if bytes.Contains(b.api.description(), []byte(`"enum":[]`)) || bytes.Contains(b.api.description(),
		[]byte(`"properties":{},"required"`)) {
		t.Error("something is described by nothing")
	}
}

// fakeSettings stands for the configuration: a change with one edit is fine, and one without has a mistake.
type fakeSettings struct {
	settings.Store
	undone *bool
}

func (fakeSettings) Status() (settings.Status, error) {
	return settings.Status{File: "f.yaml", Version: "v1", Place: "file", Undo: &settings.LastSaved{By: "anna"}}, nil
}

func (fakeSettings) Review(d settings.Draft) (settings.Review, error) {
	r := settings.Review{Version: "v1", Place: "file", Mistakes: []string{}, Warnings: []string{},
		Diff: []settings.Line{{Sign: "+", Text: "x"}}, Addresses: map[string]string{"p": "http://host/v1"}}
	r.Conflict = d.Version == "v0"
	if len(d.Edits) == 0 {
		r.Mistakes = []string{"edits: expected 1"}
	}
	return r, nil
}

func (f fakeSettings) Save(_ context.Context, d settings.Draft, by string) (settings.Review, error) {
	r, err := f.Review(d)
	if r.Saved = by == byAPI; d.Version == "off" {
		err = settings.ErrOff
	}
	return r, err
}

func (f fakeSettings) Undo(context.Context, string) (settings.Review, error) {
	if *f.undone {
		return settings.Review{}, settings.ErrNoUndo
	}
	*f.undone = true
	return f.Review(settings.Draft{Edits: make([]settings.Edit, 1)})
}

// stuckSettings has an earlier configuration that cannot be put in force any more.
type stuckSettings struct{ settings.Store }

func (stuckSettings) Undo(context.Context, string) (settings.Review, error) {
	return settings.Review{Mistakes: []string{"models.m: is wrong"}}, nil
}

// TestAnUndoThatFailedIsAnError that says why, as a change that is not saved.
func TestAnUndoThatFailedIsAnError(t *testing.T) {
	b := newBench(t)
	b.api.Settings = stuckSettings{}
	b.want(b.call("POST", "/configuration/undo", "{}"), 409, "error.code", "nothing_to_undo")
}

func (f fakeSettings) Test(_ context.Context, provider string, _ *settings.Draft) ([]settings.Check, error) {
	if provider != "up" {
		return nil, state.ErrNotFound
	}
	return []settings.Check{{Name: "provider up", Status: "ok", Detail: "answered 200"}}, nil
}

func (b *bench) trySettings() {
	b.want(b.call("GET", "/configuration", ""), 200, "version", "v1", "undo.by", "anna")
	edit := `"edits":[{"path":["models","m","list"],"value":["x"]}]}`
	b.want(b.call("POST", "/configuration/review", "{"+edit), 200, "diff.0.sign", "+", "addresses.p", "http://host/v1")
	b.want(b.call("POST", "/configuration/review", `{"edits":[],"more":1}`), 400)
	b.want(b.call("POST", "/configuration/changes", "{"+edit), 200, "saved", true)
	b.want(b.call("POST", "/configuration/changes", `{"version":"v0",`+edit), 409, "error.code",
		"configuration_changed")
	b.want(b.call("POST", "/configuration/changes", `{"version":"off",`+edit), 403, "error.code", "permission_denied")
	b.want(b.call("POST", "/configuration/changes", `{"edits":[]}`), 400, "error.param", "edits")
	b.want(b.call("POST", "/configuration/undo", "{}"), 200, "version", "v1")
	b.want(b.call("POST", "/configuration/undo", "{}"), 409, "error.code", "nothing_to_undo")
	b.want(b.call("POST", "/providers/up/test", "{}"), 200, "data.0.status", "ok")
	b.want(b.call("POST", "/providers/down/test", "{}"), 404)
}
