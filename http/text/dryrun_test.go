package text_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state/identity"
)

const (
	providerKey    = "sk-the-providers-own-key"
	providerHeader = "an-account-of-the-operator"
)

// everyShape assembles a gateway with one provider for each text shape, whose model is to-SHAPE. The upstream refuses
// every request.
func everyShape(t *testing.T, price *catalog.Price) (*gateway, *upstream) {
	u := newUpstream(t, answerJSON(400, `{"error":{"message":"no","type":"invalid_request_error"}}`))
	g := open(t, func(g *gateway) {
		for _, s := range registry.All {
			g.provider(catalog.Provider{Name: "at-" + string(s.Name), Shape: s.Name, BaseURL: u.URL + "/operators-path",
				APIKeys: []string{providerKey, providerKey + "-2"},
				Headers: map[string]string{"X-Account": providerHeader}},
				catalog.Model{Pattern: "to-" + string(s.Name), Price: price})
		}
	})
	g.key("payer", func(k *identity.Key) { k.User = "7" })
	if err := g.runtime.Ledger().Credit(t.Context(), "7", 1_000_000_000, "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.books(t) })
	return g, u
}

// lines returns the sample requests in a shape.
func lines(t *testing.T, s *shapes.Shape) (all []string) {
	f, err := os.Open("../../providers/shapes/registry/testdata/" + string(s.Name) + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for scan.Buffer(nil, 1<<20); scan.Scan(); {
		all = append(all, scan.Text())
	}
	return all
}

// addressed returns the path and the body of a sample for a model, and the query that says the same to /v1/translate.
func addressed(s *shapes.Shape, line, model string) (path, query, body string) {
	query = "?from=" + string(s.Name)
	if s.Read != nil {
		return "/v1beta/models/" + model + ":generateContent", query + "&model=" + model, line
	}
	body, _ = sjson.Set(line, "model", model)
	_, path, _ = strings.Cut(s.Routes[0].Pattern, " ")
	return path, query, body
}

// TestADryRunIsWhatTheUpstreamGets sends every sample request of every shape to a provider of every shape: dry by the
// header, dry to /v1/translate, and then for real.
func TestADryRunIsWhatTheUpstreamGets(t *testing.T) {
	g, u := everyShape(t, nil)
	compared, tried, wanted := 0, 0, 400
	if testing.Short() {
		wanted /= 4
	}
	for _, in := range registry.All {
		for _, line := range lines(t, in) {
			for _, out := range registry.All {
				if tried++; testing.Short() && tried%3 != 0 {
					continue
				}
				path, query, body := addressed(in, line, "to-"+string(out.Name))
				from := len(u.all())
				dry := g.do("POST", path, body, "X-Dry-Run", "1")
				translated := g.do("POST", "/v1/translate"+query, body)
				if n := len(u.all()) - from; n != 0 {
					t.Fatalf("a dry run made %d calls", n)
				}
				real := g.do("POST", path, body)
				calls := u.all()[from:]
				if dry.status != 200 {
					if len(calls) > 0 || !bytes.Equal(dry.body, real.body) || !bytes.Equal(translated.body, real.body) {
						t.Errorf("%s to %s: %s\nthe dry run is %s, the real one %s", in.Name, out.Name, line, dry.body,
							real.body)
					}
					continue
				}
				if !bytes.Equal(dry.body, translated.body) {
					t.Errorf("%s to %s: %s\nis %s\nand translated %s", in.Name, out.Name, line, dry.body,
						translated.body)
				}
				if len(calls) == 0 {
					t.Fatalf("%s to %s: the real request was not sent: %s", in.Name, out.Name, real.body)
				}
				sent := dry.get("requests").Array()
				i := slices.IndexFunc(sent, func(r gjson.Result) bool {
					return r.Get("body").Raw == string(calls[0].body)
				})
				if i < 0 {
					t.Errorf("%s to %s: sent\n%s\nbut the dry run says\n%s", in.Name, out.Name, calls[0].body, dry.body)
					continue
				}
				sameCall(t, sent[i], &calls[0])
				for _, secret := range []string{providerKey, providerHeader, "operators-path", hostOf(u)} {
					if bytes.Contains(dry.body, []byte(secret)) {
						t.Fatalf("the dry run shows %s: %s", secret, dry.body)
					}
				}
				if dry.get("provider").Str != "at-"+string(out.Name) || dry.get("model").Str != "to-"+string(out.Name) {
					t.Errorf("the wrong provider or model: %s", dry.body)
				}
				lost := strings.Split(real.header.Get("X-Stagedoor-Losses"), ",")
				if lost[0] != "" && len(lost) != len(dry.get("losses").Array()) {
					t.Errorf("the losses of %s are %v", dry.body, lost)
				}
				compared++
			}
		}
	}
	if compared < wanted {
		t.Errorf("only %d requests were compared", compared)
	}
}

func hostOf(u *upstream) string {
	address, _ := url.Parse(u.URL)
	return address.Host
}

// sameCall compares what a dry run says of a call with the call.
func sameCall(t *testing.T, dry gjson.Result, real *call) {
	t.Helper()
	if path := "/operators-path" + dry.Get("path").Str; path != real.path {
		t.Errorf("the path is %s, but was %s", path, real.path)
	}
	redacted := 0
	dry.Get("headers").ForEach(func(name, v gjson.Result) bool {
		if strings.Contains(v.Str, "[redacted]") {
			redacted++
		} else if got := real.header.Get(name.Str); got != v.Str {
			t.Errorf("the header %s is %q, but was %q", name.Str, v.Str, got)
		}
		return true
	})
	if redacted != 2 { // the key and the configured header
		t.Errorf("%d headers are redacted: %s", redacted, dry.Get("headers").Raw)
	}
	for name := range real.header {
		if name != "Content-Length" && name != "Accept-Encoding" &&
			!dry.Get("headers."+strings.ToLower(name)).Exists() {
			t.Errorf("the header %s is missing", name)
		}
	}
}

// TestADryRunSpendsNothing, and says what the real request would hold.
func TestADryRunSpendsNothing(t *testing.T) {
	g, u := everyShape(t, dear)
	before, err := g.runtime.Ledger().Balance(t.Context(), "7")
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"model":"to-messages","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	r := g.do("POST", "/v1/chat/completions", body, append(g.as("payer"), "X-Dry-Run", "1")...)
	if hold := r.get("estimated_hold").Int(); hold < 1000 || hold > 1100 {
		t.Errorf("got %d %s", r.status, r.body)
	}
	if r := g.do("POST", "/v1/responses", `{"model":"to-chat","input":"hi","background":true}`,
		append(g.as("payer"), "X-Dry-Run", "1")...); r.status != 200 || r.get("requests.0.body.stream").Raw != "true" {
		t.Errorf("a background response is %d %s", r.status, r.body)
	}
	after, err := g.runtime.Ledger().Balance(t.Context(), "7")
	if err != nil || before != after {
		t.Errorf("the account was %+v and is %+v, %v", before, after, err)
	}
	if n := len(u.all()); n > 0 {
		t.Errorf("%d calls were made", n)
	}
	id := r.header.Get("X-Request-Id")
	if r := g.do("GET", "/v1/receipts/"+id, "", g.as("payer")...); r.status != 404 {
		t.Errorf("there is a receipt: %s", r.body)
	}
	if shown := len(g.flow.Recent()); shown != 0 {
		t.Errorf("actors/flow shows %d requests", shown)
	}
}

// TestEveryCallOfADividedRequestIsInItsDryRun: prompts of a list are calls of their own, and choices that the target
// makes one by one are the same call several times.
func TestEveryCallOfADividedRequestIsInItsDryRun(t *testing.T) {
	g, _ := everyShape(t, nil)
	r := g.do("POST", "/v1/translate", `{"model":"to-messages","prompt":["a","b","c"],"n":2,"max_tokens":5}`)
	if r.get("requests.#").Int() != 3 {
		t.Fatalf("got %s", r.body)
	}
	for i, prompt := range []string{"a", "b", "c"} {
		call := r.get("requests").Array()[i]
		if call.Get("times").Int() != 2 || !strings.Contains(call.Get("body.messages").Raw, `"`+prompt+`"`) {
			t.Errorf("call %d is %s", i, call.Raw)
		}
	}
}

// TestTranslateFindsTheShapes covers detection, ?from, ?to and their mistakes.
func TestTranslateFindsTheShapes(t *testing.T) {
	g, _ := everyShape(t, nil)
	const turns = `[{"role":"user","content":"hi"}]`
	for _, c := range []struct {
		name, query, body string
		headers           []string
		shape             string // of the upstream's request
		passes            bool
	}{
		{"chat", "", `{"model":"to-chat","messages":[{"role":"user","content":"hi"}]}`, nil, "chat", true},
		{"messages by a member", "", `{"model":"to-messages","max_tokens":9,"system":"s","messages":` + turns + `}`,
			nil, "messages", true},
		{"messages by a header", "", `{"model":"to-messages","max_tokens":9,"messages":` + turns + `}`,
			[]string{"anthropic-version", "2023-06-01"}, "messages", true},
		{"responses", "", `{"model":"to-responses","input":"hi","prompt_cache_key":"x"}`, nil, "responses", true},
		{"completions", "", `{"model":"to-completions","prompt":"hi"}`, nil, "completions", true},
		{"gemini", "?model=to-gemini", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, nil, "gemini", true},
		{"another target", "?to=messages", `{"model":"to-chat","messages":[{"role":"user","content":"hi"}]}`, nil,
			"messages", false},
		{"a target without an upstream", "?to=gemini", `{"model":"alpha","messages":` + turns + `}`, nil,
			"gemini", false},
	} {
		r := g.do("POST", "/v1/translate"+c.query, c.body, c.headers...)
		if r.status != 200 || r.get("shape").Str != c.shape || r.get("passthrough").Bool() != c.passes ||
			r.get("requests.#").Int() != 1 {
			t.Errorf("%s: got %d %s", c.name, r.status, r.body)
		}
	}
	r := g.do("POST", "/v1/translate", `{"model":"alpha","messages":[{"role":"user","content":"hi"}]}`)
	if !r.get("simulated").Bool() || r.get("requests.#").Int() != 0 {
		t.Errorf("the simulator gets %s", r.body)
	}
	r = g.do("POST", "/v1/translate?model=to-chat&stream=true", `{"contents":[{"parts":[{"text":"hi"}]}]}`)
	if !r.get("requests.0.body.stream").Bool() {
		t.Errorf("a stream is %s", r.body)
	}
	chat := `{"model":"to-chat","messages":[{"role":"user","content":"hi"}]}`
	for query, param := range map[string]string{"?from=images": "from", "?to=nothing": "to", "?from=gemini": "model"} {
		r := g.do("POST", "/v1/translate"+query, chat)
		if r.status != 400 || !strings.Contains(string(r.body), param) {
			t.Errorf("%s: got %d %s", query, r.status, r.body)
		}
	}
	r = g.do("POST", "/v1/translate", `{"model":"to-chat"}`)
	if r.status != 400 || r.get("error.param").Str != "from" {
		t.Errorf("a body of no shape: %d %s", r.status, r.body)
	}
	if r := g.do("POST", "/v1/translate", `{"model":`); r.status != 400 || r.get("error.code").Str != "invalid_json" {
		t.Errorf("broken JSON: %d %s", r.status, r.body)
	}
}

// TestADryRunIsCheckedAsTheRealRequest: by its key, scope, rate, rules and model.
func TestADryRunIsCheckedAsTheRealRequest(t *testing.T) {
	g, _ := everyShape(t, nil)
	g.key("narrow", func(k *identity.Key) { k.Scopes = []string{"messages"} })
	g.key("slow", func(k *identity.Key) { k.Limits.RPM = 1 })
	const chat = `{"model":"to-chat","messages":[{"role":"user","content":"hi"}]}`
	for _, path := range []string{"/v1/translate", "/v1/chat/completions"} {
		dry := func(body string, headers ...string) reply {
			return g.do("POST", path, body, append(headers, "X-Dry-Run", "1")...)
		}
		want(t, dry(chat, "Authorization", ""), 401, "missing_api_key")
		want(t, dry(chat, "Authorization", "Bearer sd-unknown"), 401, "invalid_api_key")
		want(t, dry(chat, g.as("narrow")...), 403, "permission_denied")
		want(t, dry(strings.Replace(chat, "to-chat", "nothing/x", 1), g.as("all")...), 200, "")
		want(t, dry(strings.Replace(chat, `"hi"`, `7`, 1)), 400, "invalid_value")
	}
	if r := g.do("POST", "/v1/translate", chat, g.as("slow")...); r.status != 200 {
		t.Errorf("got %d %s", r.status, r.body)
	}
	if r := g.do("POST", "/v1/translate", chat, g.as("slow")...); r.status != 429 {
		t.Errorf("the second request of a key with one a minute is %d %s", r.status, r.body)
	}
}

// TestRoutesWithoutADryRunRefuseTheHeader, because their requests would be done.
func TestRoutesWithoutADryRunRefuseTheHeader(t *testing.T) {
	g, u := everyShape(t, nil)
	const body = `{"model":"to-messages","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	for _, path := range []string{"/v1/messages/count_tokens", "/v1/responses/resp_1/cancel"} {
		want(t, g.do("POST", path, body, "X-Dry-Run", "1"), 400, "dry_run_unsupported")
	}
	want(t, g.do("POST", "/v1/messages", body, "X-Dry-Run", "maybe"), 400, "invalid_value")
	if n := len(u.all()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	if g.do("POST", "/v1/messages", body, "X-Dry-Run", "0"); len(u.all()) == 0 {
		t.Error("X-Dry-Run: 0 kept the request from being sent")
	}
	if r := g.do("GET", "/v1/models", "", "X-Dry-Run", "1"); r.status != http.StatusOK {
		t.Errorf("a GET is %d %s", r.status, r.body)
	}
}
