package text_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/kept"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/share"
)

const mib = 1 << 20

// TestStoredContentCountsAsMemoryOfItsOwner: a request of a hundred bytes may read 32 MiB of the store, so an owner
// whose share of the memory is used up reads nothing of it, and the memory is free again after each reply.
func TestStoredContentCountsAsMemoryOfItsOwner(t *testing.T) {
	pool := share.New(share.Memory, 64*mib, 1)
	g := open(t, func(g *gateway) { g.memory = pool })
	const item = `{"type":"message","id":"msg_kept","role":"user","content":"%s"}`
	long := fmt.Sprintf(item, strings.Repeat("x", mib))
	response := g.create(`{"model":"alpha","input":[` + long + `]}`).get("id").Str
	background := g.create(`{"model":"alpha","input":"hi","background":true,"stream":true}`).events()[0].
		Get("response.id").Str
	conversation := g.do("POST", "/v1/conversations", `{"items":[`+long+`]}`).get("id").Str
	repeated := func() reply {
		return g.do("POST", "/v1/chat/completions", `{"model":"alpha","messages":[{"role":"user","content":"hi"}]}`,
			"Idempotency-Key", "k")
	}
	want(t, repeated(), 200, "")
	g.later.Store(int64(kept.Keep)) // from now on the reply is read from the store
	g.kept.Sweep()
	g.later.Store(0)
	get := func(path string) func() reply { return func() reply { return g.do("GET", path, "") } }
	post := func(path, body string) func() reply { return func() reply { return g.do("POST", path, body) } }
	reads := map[string]func() reply{
		"a response":        get("/v1/responses/" + response),
		"its input":         get("/v1/responses/" + response + "/input_items?limit=1"),
		"a stream":          get("/v1/responses/" + background + "?stream=true"),
		"a cancelled one":   post("/v1/responses/"+background+"/cancel", ""),
		"items":             get("/v1/conversations/" + conversation + "/items"),
		"an item":           get("/v1/conversations/" + conversation + "/items/msg_kept"),
		"a repeated reply":  repeated,
		"a chain":           post("/v1/responses", continuing("previous_response_id", response)),
		"a conversation":    post("/v1/responses", continuing("conversation", conversation)),
		"an item by its id": post("/v1/responses", referring("msg_kept", 1)),
	}
	const owner = "key:key_all"
	pool.Adopt(owner, 32*mib)
	for name, read := range reads {
		if r := read(); r.status != 429 || r.get("error.code").Str != "memory_share_exceeded" {
			t.Errorf("%s without memory: %d %.200s", name, r.status, r.body)
		}
	}
	pool.Give(owner, 32*mib)
	for name, read := range reads {
		r := read()
		for late := time.Now().Add(10 * time.Second); pool.Used() > 0 && time.Now().Before(late); {
			time.Sleep(time.Millisecond) // an attempt ends shortly after its reply
		}
		if r.status != 200 || pool.Used() != 0 {
			t.Errorf("%s: %d %.200s, and %d bytes are held", name, r.status, r.body, pool.Used())
		}
	}
}

// continuing returns a request that names what it continues.
func continuing(member, id string) string {
	return fmt.Sprintf(`{"model":"alpha","store":false,"input":"hi",%q:%q}`, member, id)
}

// referring returns a request with as many references to one item.
func referring(id string, times int) string {
	references := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"type":"item_reference","id":%q},`, id), times), ",")
	return `{"model":"alpha","store":false,"input":[` + references + `]}`
}

// TestAFewReferencesMakeNoLongRequest: a request may name a stored item many times, and is refused where it would be
// longer with the items than a request may be.
func TestAFewReferencesMakeNoLongRequest(t *testing.T) {
	u := newUpstream(t, answerJSON(200, wholeAnswer))
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: u.URL + "/v1"},
			catalog.Model{Pattern: "dear"})
	})
	g.create(`{"model":"dear","input":[{"type":"message","id":"msg_long","role":"user","content":"` +
		strings.Repeat("x", 5*mib) + `"}]}`)
	asked := len(u.all())
	as := func(times int) string { return strings.Replace(referring("msg_long", times), "alpha", "dear", 1) }
	for name, r := range map[string]reply{
		"a request":      g.do("POST", "/v1/responses", as(7)),
		"a conversation": g.do("POST", "/v1/conversations", strings.Replace(as(7), "input", "items", 1)),
	} {
		if r.status != 400 || !strings.Contains(r.get("error.message").Str, "32 MiB with the items that it refers to") {
			t.Errorf("%s: %d %.200s", name, r.status, r.body)
		}
	}
	if n := len(u.all()); n != asked {
		t.Errorf("the provider was asked %d times", n-asked)
	}
	want(t, g.do("POST", "/v1/responses", as(2)), 200, "")
	if sent := u.all()[asked].body; len(sent) < 10*mib {
		t.Errorf("two references to 5 MiB became a request of %d bytes", len(sent))
	}
}
