package text_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/identity"
)

// An ask is how one shape asks for the same short answer.
type ask struct{ shape, path, body string }

var asks = []ask{
	{"chat", "/v1/chat/completions", `{"model":"alpha","messages":[{"role":"user","content":"hi"}]}`},
	{"responses", "/v1/responses", `{"model":"alpha","input":"hi"}`},
	{"completions", "/v1/completions", `{"model":"alpha","prompt":"hi"}`},
	{"messages", "/v1/messages", `{"model":"alpha","max_tokens":64,"messages":[{"role":"user","content":"hi"}]}`},
	{"gemini", "/v1beta/models/alpha:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
}

func TestEveryShapeAnswers(t *testing.T) {
	g := open(t)
	for _, a := range asks {
		r := g.do("POST", a.path, a.body)
		if r.status != 200 || r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Queue-Ms") == "" {
			t.Errorf("%s: %d %v %s", a.shape, r.status, r.header, r.body)
		}
		if id := r.header.Get("X-Request-Id"); id == "" || r.header.Get("Request-Id") != id {
			t.Errorf("%s: request ids %q and %q", a.shape, id, r.header.Get("Request-Id"))
		}
	}
	alias := g.do("POST", "/v1/models/alpha:generateContent", asks[4].body)
	if alias.status != 200 || !alias.get("candidates").Exists() {
		t.Errorf("the alias: %d %s", alias.status, alias.body)
	}
}

func TestEveryShapeStreams(t *testing.T) {
	g := open(t)
	for _, a := range asks {
		path, body := a.path, strings.Replace(a.body, "{", `{"stream":true,`, 1)
		if a.shape == "gemini" {
			path, body = "/v1beta/models/alpha:streamGenerateContent?alt=sse", a.body
		}
		r := g.do("POST", path, body)
		h := r.header
		if r.status != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-cache" ||
			h.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: %d %v", a.shape, r.status, h)
		}
		if len(r.events()) < 2 {
			t.Errorf("%s: %s", a.shape, r.body)
		}
	}
	array := g.do("POST", "/v1beta/models/alpha:streamGenerateContent", asks[4].body)
	if array.header.Get("Content-Type") != "application/json" || !gjson.ValidBytes(array.body) ||
		!gjson.ParseBytes(array.body).IsArray() {
		t.Errorf("without alt=sse: %v %s", array.header, array.body)
	}
}

// TestTheErrorIsThatOfTheFirstFailedCheck walks the order of decisions.md: each
// request breaks its rule and all that come after it.
func TestTheErrorIsThatOfTheFirstFailedCheck(t *testing.T) {
	g := open(t)
	g.key("none", func(k *identity.Key) { k.Scopes = []string{} })
	g.key("narrow", func(k *identity.Key) { k.Models = []string{"beta*"} })
	g.key("spent", func(k *identity.Key) { k.Limits.RPM = 1; k.Models = []string{"beta"} })
	if r := g.do("POST", asks[0].path, `{"model":"beta","messages":[{"role":"user","content":"hi"}]}`, g.as("spent")...); r.status != 200 {
		t.Fatalf("the spent key's only request: %d", r.status)
	}
	const path = "/v1/chat/completions"
	large := strings.Repeat(" ", 32<<20+1)
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"path", "PUT", "/v1/chat", large, []string{"Authorization", "", "Content-Type", "x/y"}, 404, "unknown_url"},
		{"method", "PUT", path, large, []string{"Authorization", "", "Content-Type", "x/y"}, 405, "method_not_allowed"},
		{"auth", "POST", path, large, []string{"Authorization", "", "Content-Type", "x/y"}, 401, "missing_api_key"},
		{"scope", "POST", path, large, append(g.as("none"), "Content-Type", "x/y"), 403, "permission_denied"},
		{"rate", "POST", path, large, append(g.as("spent"), "Content-Type", "x/y"), 429, "rate_limit_exceeded"},
		{"size", "POST", path, large, append(g.as("narrow"), "Content-Type", "x/y"), 413, "request_too_large"},
		{"media type", "POST", path, `{"a":`, append(g.as("narrow"), "Content-Type", "x/y"), 415,
			"unsupported_media_type"},
		{"syntax", "POST", path, `{"n":0,`, g.as("narrow"), 400, "invalid_json"},
		{"rules", "POST", path, `{"model":"nope","messages":[],"n":0}`, g.as("narrow"), 400, "invalid_value"},
		{"permission", "POST", path, strings.Replace(asks[0].body, "alpha", "nope", 1), g.as("narrow"), 403,
			"model_not_allowed"},
	} {
		want(t, g.do(c.method, c.path, c.body, c.headers...), c.status, c.code)
	}
}

func TestAModelWithoutAProviderIsNotFound(t *testing.T) {
	g := openWithout(t, "*")
	for _, a := range asks {
		r := g.do("POST", strings.Replace(a.path, "alpha", "nope", 1), strings.Replace(a.body, "alpha", "nope", 1))
		want(t, r, 404, "model_not_found")
		if p := r.get("error.param").String(); p != "model" {
			t.Errorf("%s: param %q", a.shape, p)
		}
	}
}

// openWithout is open without one of the sandbox's models.
func openWithout(t *testing.T, pattern string) *gateway {
	return open(t, func(g *gateway) { g.without = pattern })
}

func TestEveryErrorHasTheWholeEnvelope(t *testing.T) {
	g := open(t)
	g.key("none", func(k *identity.Key) { k.Scopes = []string{} })
	broken := []struct {
		name    string
		status  int
		body    func(a ask) string
		headers []string
	}{
		{"no key", 401, func(a ask) string { return a.body }, []string{"Authorization", ""}},
		{"no scope", 403, func(a ask) string { return a.body }, g.as("none")},
		{"no JSON", 400, func(ask) string { return "nothing" }, nil},
		{"media type", 415, func(a ask) string { return a.body }, []string{"Content-Type", "text/plain"}},
		{"encoding", 415, func(a ask) string { return a.body }, []string{"Content-Encoding", "gzip"}},
		{"too large", 413, func(ask) string { return strings.Repeat(" ", 32<<20+1) }, nil},
		{"upstream", 503, func(a ask) string { return a.body }, []string{"X-Sandbox", "status=503"}},
	}
	for _, a := range asks {
		replies := map[string]reply{
			"unknown path": g.do("POST", a.path+"/x/y", a.body),
			"method":       g.do("PATCH", a.path, a.body),
		}
		statuses := map[string]int{"unknown path": 404, "method": 405}
		for _, b := range broken {
			replies[b.name], statuses[b.name] = g.do("POST", a.path, b.body(a), b.headers...), b.status
		}
		for name, r := range replies {
			checkEnvelope(t, a.shape+", "+name, a.shape, r, statuses[name])
		}
	}
}

func checkEnvelope(t *testing.T, name, shape string, r reply, status int) {
	t.Helper()
	if r.status != status || r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Request-Id") == "" ||
		r.header.Get("Request-Id") == "" {
		t.Errorf("%s: %d %v", name, r.status, r.header)
	}
	e := r.get("error")
	for _, key := range []string{"message", "type", "param", "code"} {
		if !e.Get(key).Exists() {
			t.Errorf("%s: no %s in %s", name, key, r.body)
		}
	}
	if r.get("request_id").Exists() || r.get("upstream").Exists() {
		t.Errorf("%s: more than the envelope: %s", name, r.body)
	}
	switch shape {
	case "messages":
		if r.get("type").String() != "error" {
			t.Errorf("%s: no type error: %s", name, r.body)
		}
	case "gemini":
		if e.Get("code").Int() != int64(status) || e.Get("status").String() == "" {
			t.Errorf("%s: code and status of %s", name, r.body)
		}
	}
	switch status {
	case 401:
		if r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	case 405:
		if r.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", name)
		}
	}
}

func TestKeyLimitsAreReportedAndEnforced(t *testing.T) {
	g := open(t)
	g.key("limited", func(k *identity.Key) { k.Limits = identity.Limits{RPM: 2, TPM: 100_000} })
	r := g.do("POST", asks[0].path, asks[0].body, g.as("limited")...)
	for name, value := range map[string]string{
		"X-Ratelimit-Limit-Requests": "2", "X-Ratelimit-Remaining-Requests": "1", "X-Ratelimit-Limit-Tokens": "100000",
	} {
		if got := r.header.Get(name); got != value {
			t.Errorf("%s: got %q, want %q", name, got, value)
		}
	}
	// Half of the minute's two requests is free again after 30 s, of which some may have passed on a busy machine.
	if reset, err := time.ParseDuration(r.header.Get("X-Ratelimit-Reset-Requests")); err != nil ||
		reset <= 20*time.Second || reset > 30*time.Second {
		t.Errorf("X-Ratelimit-Reset-Requests: %v, %v", reset, err)
	}
	if r.header.Get("X-Ratelimit-Remaining-Tokens") == "" || r.header.Get("X-Ratelimit-Reset-Tokens") == "" {
		t.Errorf("tokens: %v", r.header)
	}
	g.do("POST", asks[0].path, asks[0].body, g.as("limited")...)
	r = g.do("POST", asks[0].path, asks[0].body, g.as("limited")...)
	want(t, r, 429, "rate_limit_exceeded")
	if wait, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || wait < 20 || wait > 30 {
		t.Errorf("Retry-After %d, %v", wait, err)
	}
	if r.header.Get("X-Ratelimit-Remaining-Requests") != "0" {
		t.Errorf("the refused one: %v", r.header)
	}
	if free := g.do("POST", asks[0].path, asks[0].body); free.header.Get("X-Ratelimit-Limit-Requests") != "" {
		t.Errorf("a key without limits gets headers of limits: %v", free.header)
	}
}

func TestRetryAfterIsAtMostAMinute(t *testing.T) {
	g := open(t)
	g.key("slow", func(k *identity.Key) { k.Limits.TPM = 10 })
	body := `{"model":"alpha","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`
	g.do("POST", asks[3].path, body, g.as("slow")...)
	r := g.do("POST", asks[3].path, body, g.as("slow")...)
	want(t, r, 429, "rate_limit_exceeded")
	if wait := r.header.Get("Retry-After"); wait == "" || len(wait) > 2 || wait > "60" {
		t.Errorf("Retry-After %q", wait)
	}
}

// A reply without the header is constrained to a schema, so a request without a schema gets the header, also from the
// sandbox.
func TestTheSandboxReportsASchemaThatIsMissing(t *testing.T) {
	g := open(t)
	for path, body := range map[string]string{
		"/v1/chat/completions": `"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema"@}`,
		"/v1/messages": `"max_tokens":9,"messages":[{"role":"user","content":"hi"}],` +
			`"output_config":{"format":{"type":"json_schema"@}}`,
		"/v1/responses": `"input":"hi","text":{"format":{"type":"json_schema","name":"n"@}}`,
	} {
		given := `,"schema":{"type":"object"}`
		if path == "/v1/chat/completions" {
			given = `,"json_schema":{"name":"n"` + given + `}`
		}
		for schema, degraded := range map[string]string{"": "json_schema_missing_schema", given: ""} {
			r := g.do("POST", path, `{"model":"alpha",`+strings.Replace(body, "@", schema, 1)+`}`)
			if got := r.header.Get("X-Structured-Output-Degraded"); r.status != 200 || got != degraded {
				t.Errorf("%s with %q: %d, degraded %q", path, schema, r.status, got)
			}
		}
	}
}

func TestABrokenRequestIsGivenBackToItsKey(t *testing.T) {
	g := open(t)
	g.key("one", func(k *identity.Key) { k.Limits.Concurrency = 1 })
	for range 3 { // each would be refused if the one before still counted
		r := g.do("POST", asks[0].path, asks[0].body, append(g.as("one"), "X-Sandbox", "status=400")...)
		want(t, r, 400, "sandbox_400")
	}
}

// Claude Code sends a system role inside messages with its default models. No request is refused
// for it: the role is passed on, or its text is folded into the user's turn.
func TestASystemRoleInsideMessagesIsNeverRefused(t *testing.T) {
	up := newUpstream(t, answerJSON(200, `{"id":"msg_1","type":"message","role":"assistant","model":"m",`+
		`"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","stop_sequence":null,`+
		`"usage":{"input_tokens":1,"output_tokens":1}}`))
	no := false
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Messages, BaseURL: up.URL},
			catalog.Model{Pattern: "refuses", Capabilities: &catalog.CapabilityOverrides{SystemTurns: &no}},
			catalog.Model{Pattern: "accepts"})
	})
	body := `{"model":"%s","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}`
	for i, c := range []struct{ model, content, losses string }{
		{"accepts", "b", ""},
		{"refuses", "<system-reminder>\nb\n</system-reminder>", "system:folded"},
	} {
		r := g.do("POST", "/v1/messages", fmt.Sprintf(body, c.model))
		if r.status != 200 || r.header.Get("X-Stagedoor-Losses") != c.losses {
			t.Errorf("%s: %d %s, losses %q", c.model, r.status, r.body, r.header.Get("X-Stagedoor-Losses"))
		}
		sent := gjson.GetBytes(up.all()[i].body, "messages|@reverse|0.content")
		if text := cmp.Or(sent.Get("1.text").Str, sent.Str); text != c.content {
			t.Errorf("%s: the upstream got %s", c.model, sent.Raw)
		}
	}
	for _, model := range []string{"alpha", "beta"} {
		if r := g.do("POST", "/v1/messages", fmt.Sprintf(body, model)); r.status != 200 {
			t.Errorf("%s: %d %s", model, r.status, r.body)
		}
	}
	bad := g.do("POST", "/v1/messages", `{"model":"alpha","max_tokens":5,"messages":[{"role":"robot","content":"b"}]}`)
	want(t, bad, 400, "invalid_value")
}

func TestUpstreamErrorsGiveNothingAway(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		answerJSON(
			400,
			`{"error":{"message":"bad request to http://`+r.Host+`/v1 with key provider-key-0123","type":"invalid_request_error","param":"messages","code":"bad"}}`,
		)(w, r)
	})
	g := open(t, func(g *gateway) {
		g.provider(
			catalog.Provider{
				Name:    "up",
				Shape:   dialoguetest.Chat,
				BaseURL: up.URL + "/v1",
				APIKeys: []string{"provider-key-0123"},
			},
			catalog.Model{Pattern: "m"},
		)
	})
	r := g.do("POST", asks[0].path, strings.Replace(asks[0].body, "alpha", "m", 1))
	want(t, r, 400, "bad")
	if got := r.get("error.message").String(); got != "bad request to http://[redacted]/v1 with key [redacted]" {
		t.Errorf("got %q", got)
	}
}

func TestEveryRequestLeavesOneLine(t *testing.T) {
	g := open(t)
	g.key("none", func(k *identity.Key) { k.Scopes = []string{} })
	g.do("POST", asks[0].path, asks[0].body, "X-Request-Id", "r-answered")
	g.do("POST", asks[0].path, asks[0].body, "X-Request-Id", "r-refused", "Authorization", "Bearer unknown-secret")
	g.do("POST", asks[0].path, `{"model":"alpha"}`, "X-Request-Id", "r-invalid")
	g.do("POST", asks[0].path, asks[0].body, "X-Request-Id", "r-failed", "X-Sandbox", "status=500")
	g.do("POST", asks[0].path, strings.Replace(asks[0].body, "{", `{"stream":true,`, 1), "X-Request-Id", "r-broken",
		"X-Sandbox", "error=2")
	g.do("GET", "/v1beta/models?key="+g.secrets["all"], "", "X-Request-Id", "r-list", "Authorization", "")
	g.do("GET", "/v1/none%0A%1B[31m", "", "X-Request-Id", "r-path")
	g.do("GET", "/healthz", "", "X-Request-Id", "r-health")
	g.do("POST", asks[0].path, asks[0].body, append(g.as("none"), "X-Request-Id", "r-scope")...)
	want := map[string]int64{
		"r-scope":    403,
		"r-answered": 200,
		"r-refused":  401,
		"r-invalid":  400,
		"r-failed":   500,
		"r-broken":   500,
		"r-list":     200,
		"r-path":     404,
	}
	lines := g.log.lines()
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}
	for _, l := range lines {
		id := l.Get("request_id").String()
		if l.Get("status").Int() != want[id] || !l.Get("duration").Exists() || !l.Get("path").Exists() ||
			!l.Get("method").Exists() {
			t.Errorf("%s: %s, want status %d", id, l.Raw, want[id])
		}
		if failed := l.Get("status").Int() >= 400 && id != "r-path"; failed != (l.Get("error").String() != "") ||
			strings.Count(l.Raw, `"error":`) > 1 {
			t.Errorf("%s: a failure's line has its name once, others none: %s", id, l.Raw)
		}
		if n := l.Get("input_tokens"); n.Exists() && n.Int() < 0 || strings.Contains(l.Raw, `""`) {
			t.Errorf("%s: the line tells what is not known: %s", id, l.Raw)
		}
		for _, secret := range []string{g.secrets["all"], "unknown-secret", `"hi"`} {
			if strings.Contains(l.Raw, secret) {
				t.Errorf("%s: the line holds %q", id, secret)
			}
		}
	}
	if line := lines[0]; line.Get("provider").String() != "sandbox" || line.Get("key").String() != "key_all" ||
		line.Get("model").String() != "alpha" ||
		line.Get("output_tokens").Int() == 0 {
		t.Errorf("an answered request: %s", line.Raw)
	}
	if line := lines[len(lines)-1]; line.Get("key").String() != "key_none" {
		t.Errorf("a known key that may not do this is not named: %s", line.Raw)
	}
}

// TestRepliesDoNotMixUnderLoad has many requests at once, each of which
// must get its own words back.
func TestRepliesDoNotMixUnderLoad(t *testing.T) {
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	up.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answerJSON(
			400,
			`{"error":{"message":`+gjson.GetBytes(body,
				"messages.0.content").Raw+`,"type":"t","param":null,"code":null}}`,
		)(w, r)
	})
	g := open(t, func(g *gateway) {
		g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Chat, BaseURL: up.URL}, catalog.Model{Pattern: "m"})
	})
	parallel(16, 8, func(worker, i int) {
		marker := fmt.Sprintf("marker %d-%d ", worker, i) + strings.Repeat("x", 9000+worker)
		r := g.do("POST", asks[0].path, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, marker))
		if got := r.get("error.message").String(); !strings.HasPrefix(marker, strings.TrimSuffix(got, "...")) ||
			len(got) < 1000 {
			t.Errorf("worker %d got %.40q", worker, got)
		}
	})
}

// A user gets one turn in each round at a provider, however many keys it has.
func TestKeysOfOneUserShareItsTurnsAtAProvider(t *testing.T) {
	g := open(t)
	keys := map[string]string{"first": "alice", "second": "alice", "single": ""}
	for name, user := range keys {
		g.key(name, func(k *identity.Key) { k.User = user })
	}
	if err := g.runtime.SetPaused(t.Context(), "sandbox", true); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for name := range keys {
		wg.Go(func() { g.do("POST", asks[0].path, asks[0].body, g.as(name)...) })
	}
	var owners []string
	for len(owners) < len(keys) {
		waiters, err := g.runtime.Providers()[0].Limiter.Queue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		owners = nil
		for _, w := range waiters {
			owners = append(owners, w.Owner)
		}
	}
	if err := g.runtime.SetPaused(t.Context(), "sandbox", false); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	slices.Sort(owners)
	if !slices.Equal(owners, []string{"key:key_single", "user:alice", "user:alice"}) {
		t.Errorf("turns are taken by %q", owners)
	}
}
