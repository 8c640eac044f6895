package text_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// dear is easy to add up by head: a micro-dollar for a token in, ten for one out.
var dear = &catalog.Price{Input: 1_000_000, Output: 10_000_000}

// priced assembles a gateway with an upstream whose models cost money, a key of
// user 7, whose account has credits, and one of user 8.
func priced(t *testing.T, credits int64, answer http.HandlerFunc, more ...func(*gateway)) (*gateway, *upstream) {
	t.Helper()
	u := newUpstream(t, answer)
	more = append(more, func(g *gateway) {
		g.provider(
			catalog.Provider{
				Name:    "vendor",
				Shape:   dialoguetest.Chat,
				BaseURL: u.URL + "/v1",
				APIKeys: []string{"secret"},
			},
			catalog.Model{Pattern: "dear", Price: dear},
		)
		g.models = append(
			g.models,
			catalog.Model{
				Pattern: "dear-sandbox",
				Price:   dear,
				Targets: []catalog.Route{{Provider: "sandbox", Model: "*"}},
			},
		)
	})
	g := open(t, more...)
	for _, user := range []string{"7", "8"} {
		g.key("user"+user, func(k *identity.Key) { k.User = user })
	}
	if credits > 0 {
		if err := g.runtime.Ledger().Credit(t.Context(), "7", credits, "test"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { g.books(t) })
	return g, u
}

// books waits until nothing is held and checks that the books balance.
func (g *gateway) books(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		b, err := g.runtime.Ledger().Balance(ctx, "7")
		if err == nil && b.Held == 0 && len(money.ListHolds(g.state.View(), "")) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still held: %+v, %v", b, err)
		}
	}
	if _, err := money.CheckLedger(ctx, g.state); err != nil {
		t.Error(err)
	}
}

// receipt is the receipt of a reply's request, once there is one.
func (g *gateway) receipt(t *testing.T, r reply) gjson.Result {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got := g.do("GET", "/v1/receipts/"+r.header.Get("X-Request-Id"), "", g.as("user7")...)
		if got.status == 200 {
			return gjson.ParseBytes(got.body)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no receipt: %d %s", got.status, got.body)
		}
	}
}

func askFor(model, more string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}]%s}`, model, more)
}

const wholeAnswer = `{"id":"c1","object":"chat.completion","created":1,"model":"dear","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`

func chunk(content string) string {
	return fmt.Sprintf(
		`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"dear","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`,
		content,
	)
}

const (
	lastChunk  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"dear","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usageChunk = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"dear","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":%d,"total_tokens":150}}`
)

// answerStream answers with chat chunks.
func answerStream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			io.WriteString(w, "data: "+e+"\n\n")
		}
	}
}

func TestPaidRequestHasAReceipt(t *testing.T) {
	tests := []struct {
		name, body string
		answer     http.HandlerFunc
		charged    int64
		usage      string
		flags      string
	}{
		{
			"whole",
			askFor("dear", `,"max_tokens":60`),
			answerJSON(200, wholeAnswer),
			600,
			`{"input_tokens":100,"output_tokens":50}`,
			"",
		},
		{
			"streamed",
			askFor("dear", `,"max_tokens":60,"stream":true`),
			answerStream(chunk("a"), chunk("b"), lastChunk, fmt.Sprintf(usageChunk, 50), "[DONE]"),
			600,
			`{"input_tokens":100,"output_tokens":50}`,
			"",
		},
		{
			"streamed, DONE forgotten",
			askFor("dear", `,"max_tokens":60,"stream":true`),
			answerStream(chunk("a"), lastChunk, fmt.Sprintf(usageChunk, 50)),
			600,
			`{"input_tokens":100,"output_tokens":50}`,
			"",
		},
		{
			"streamed, absurd usage",
			askFor("dear", `,"max_tokens":10,"stream":true`),
			answerStream(chunk("a"), chunk("b"), chunk("c"), lastChunk, fmt.Sprintf(usageChunk, 8193), "[DONE]"),
			100 + 81_920,
			`{"input_tokens":100,"output_tokens":8192,"estimated":true}`,
			`["usage_absurd","over_hold","overrun"]`,
		},
		{
			"streamed, a limit that the provider ignored",
			askFor("dear", `,"max_completion_tokens":1,"stream":true`),
			answerStream(chunk("a"), lastChunk, fmt.Sprintf(usageChunk, 5000), "[DONE]"),
			50_100,
			`{"input_tokens":100,"output_tokens":5000}`,
			`["over_hold","overrun"]`,
		},
		{
			"streamed, negative usage",
			askFor("dear", `,"max_tokens":10,"stream":true`),
			answerStream(chunk("a"), chunk("b"), chunk("c"), lastChunk, fmt.Sprintf(usageChunk, -50), "[DONE]"),
			130,
			`{"input_tokens":100,"output_tokens":3,"estimated":true}`,
			`["usage_negative","over_hold"]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := priced(t, 10_000, tt.answer)
			r := g.do("POST", "/v1/chat/completions", tt.body, g.as("user7")...)
			if r.status != 200 {
				t.Fatalf("got %d %s", r.status, r.body)
			}
			got := g.receipt(t, r)
			if a := money.FindAccount(g.state.View(), "7"); a.Spent != tt.charged {
				t.Errorf("spent %d, want %d", a.Spent, tt.charged)
			}
			if got.Get("charged").Int() != tt.charged || got.Get("usage").Raw != tt.usage || got.Get("flags").Raw != tt.flags || got.Get("end_reason").String() != "finished" ||
				got.Get("provider").String() != "vendor" || got.Get("model").String() != "dear" ||
				got.Get("attempts").Int() != 1 ||
				got.Get("key").String() != "key_user7" ||
				got.Get("held").Int() < 30 ||
				got.Get("prices.#").Int() != 2 {
				t.Errorf("got %s", got.Raw)
			}
		})
	}
}

// TestFailedRequestHasItsReceiptAtOnce: a settlement without a charge delays no reply,
// and a request for its receipt waits until it is written.
func TestFailedRequestHasItsReceiptAtOnce(t *testing.T) {
	g, _ := priced(t, 10_000, answerJSON(400, `{"error":{"message":"no","type":"invalid_request_error"}}`))
	r := g.do("POST", "/v1/chat/completions", askFor("dear", `,"max_tokens":60`), g.as("user7")...)
	if r.status != 400 {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	got := g.do("GET", "/v1/receipts/"+r.header.Get("X-Request-Id"), "", g.as("user7")...)
	if got.status != 200 || got.get("end_reason").String() != "refused" || got.get("charged").Int() != 0 ||
		got.get("held").Int() == 0 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// TestReceiptOfARunningRequestIsNotWaitedFor beyond a moment.
func TestReceiptOfARunningRequestIsNotWaitedFor(t *testing.T) {
	asked, done := make(chan struct{}), make(chan struct{})
	g, _ := priced(t, 10_000, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-done
		answerJSON(200, wholeAnswer)(w, r)
	})
	go func() {
		<-asked
		want(t, g.do("GET", "/v1/receipts/slow", "", g.as("user7")...), 404, "not_found")
		close(done)
	}()
	r := g.do(
		"POST",
		"/v1/chat/completions",
		askFor("dear", `,"max_tokens":60`),
		append(g.as("user7"), "X-Request-Id", "slow")...)
	if r.status != 200 {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

func TestReceiptsAreTheirOwners(t *testing.T) {
	g, _ := priced(t, 10_000, answerJSON(200, wholeAnswer))
	r := g.do(
		"POST",
		"/v1/chat/completions",
		askFor("dear", `,"max_tokens":60`),
		append(g.as("user7"), "X-Request-Id", "mine")...)
	g.receipt(t, r)
	g.do(
		"POST",
		"/v1/chat/completions",
		askFor("dear", `,"max_tokens":60`),
		append(g.as("user7"), "X-Request-Id", "mine")...)
	again := g.receipt(t, r)
	if again.Get("earlier.#").Int() != 1 || again.Get("hold").Int() <= again.Get("earlier.0.hold").Int() ||
		money.FindAccount(g.state.View(), "7").Spent != 1200 {
		t.Errorf("two requests of one id are charged both: %s, %+v", again.Raw, money.FindAccount(g.state.View(), "7"))
	}
	for _, key := range []string{"user8", "all"} {
		want(t, g.do("GET", "/v1/receipts/mine", "", g.as(key)...), 404, "not_found")
	}
	want(t, g.do("GET", "/v1/receipts/other", "", g.as("user7")...), 404, "not_found")
	want(t, g.do("GET", "/v1/receipts/mine", "", "Authorization", "Bearer no"), 401, "invalid_api_key")
}

func TestNothingIsChargedWhereNothingIsPriced(t *testing.T) {
	g, _ := priced(t, 0, answerJSON(200, wholeAnswer))
	for _, r := range []reply{
		g.do("POST", "/v1/chat/completions", askFor("alpha", ""), g.as("user7")...), // a free model
		g.do("POST", "/v1/chat/completions", askFor("dear", "")),                    // a key without a user
	} {
		if r.status != 200 {
			t.Errorf("got %d %s", r.status, r.body)
		}
	}
	if a := money.ListAccounts(g.state.View()); len(a) != 0 {
		t.Errorf("got %+v", a)
	}
}

// TestRequestsWithoutAPriceAreCounted: with their tokens, whether their key has a user or not,
// and each request once.
func TestRequestsWithoutAPriceAreCounted(t *testing.T) {
	g, _ := priced(t, 10_000, answerJSON(200, wholeAnswer))
	g.do("POST", "/v1/chat/completions", askFor("alpha", ""), g.as("user7")...) // a free model
	g.do("POST", "/v1/chat/completions", askFor("dear", ""))                    // a key without a user
	g.do("POST", "/v1/chat/completions", askFor("dear", `,"max_tokens":60`), g.as("user7")...)
	var rows []money.UsageRow
	for late := time.Now().Add(time.Minute); len(rows) < 3 && time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		var err error
		rows, err = money.QueryUsage(t.Context(), g.state,
			money.UsageQuery{From: time.Now(), To: time.Now(), Per: money.PerAccount | money.PerKey | money.PerModel})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(rows) != 3 {
		t.Fatalf("got %+v", rows)
	}
	for _, row := range rows {
		switch row.Account + " " + row.Model {
		case "7 alpha", "key:key_all dear", "7 dear":
		default:
			t.Errorf("got %+v", row)
		}
		if row.Requests != 1 || row.InputTokens == 0 || row.OutputTokens == 0 ||
			(row.Amount > 0) != (row.Account == "7" && row.Model == "dear") {
			t.Errorf("got %+v", row)
		}
	}
}

// TestARequestBeyondTheBalanceIsRefused: before the upstream hears of it, in every shape, and
// gets X-Should-Retry: false.
func TestARequestBeyondTheBalanceIsRefused(t *testing.T) {
	g, u := priced(t, 50, answerJSON(200, wholeAnswer))
	requests := []struct{ path, body string }{
		{"/v1/chat/completions", askFor("dear", `,"max_tokens":60`)},
		{"/v1/chat/completions", askFor("dear", `,"max_tokens":60,"stream":true`)},
		{"/v1/chat/completions", askFor("dear", "")},
		{"/v1/completions", `{"model":"dear","prompt":"hello","max_tokens":60}`},
		{"/v1/messages", askFor("dear", `,"max_tokens":60`)},
		{"/v1/responses", `{"model":"dear","input":"hello","max_output_tokens":60}`},
		{"/v1/responses", `{"model":"dear","input":"hello","max_output_tokens":60,"background":true}`},
		{"/v1/responses", `{"model":"dear","input":"hello","max_output_tokens":60,"background":true,"stream":true}`},
	}
	for _, rq := range requests {
		r := g.do("POST", rq.path, rq.body, g.as("user7")...)
		want(t, r, 429, "insufficient_quota")
		if r.get("error.type").String() != "insufficient_quota" || r.header.Get("X-Should-Retry") != "false" ||
			r.header.Get("Retry-After") != "" {
			t.Errorf("%s: got %v %s", rq.path, r.header, r.body)
		}
	}
	if calls := u.all(); len(calls) != 0 {
		t.Errorf("the upstream was asked %d times", len(calls))
	}
	r := g.do(
		"POST",
		"/v1beta/models/dear:generateContent",
		`{"contents":[{"role":"user","parts":[{"text":"hello"}]}],"generationConfig":{"maxOutputTokens":60}}`,
		g.as("user7")...)
	if r.status != 429 {
		t.Errorf("the third shape: got %d %s", r.status, r.body)
	}
}

func TestFailuresAreChargedByWhatWasDelivered(t *testing.T) {
	cut := func(events ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answerStream(events...)(w, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	tests := []struct {
		name    string
		stream  bool
		answer  http.HandlerFunc
		charged bool
		reason  string
	}{
		{
			"refused by the upstream",
			false,
			answerJSON(400, `{"error":{"message":"no","type":"invalid_request_error"}}`),
			false,
			"refused",
		},
		{"failed at once", false, answerJSON(500, `{"error":{"message":"no"}}`), false, "upstream_failed"},
		{
			"an error as the first event",
			true,
			answerStream(`{"error":{"message":"no","type":"server_error"}}`),
			false,
			"upstream_failed",
		},
		{"reset midway", true, cut(chunk("a"), chunk("b")), true, "upstream_failed"},
		{"ended midway", true, answerStream(chunk("a"), chunk("b")), true, "upstream_failed"},
		{
			"an error midway",
			true,
			answerStream(chunk("a"), chunk("b"), `{"error":{"message":"no","type":"server_error"}}`),
			true,
			"upstream_failed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := priced(t, 10_000, tt.answer)
			r := g.do(
				"POST",
				"/v1/chat/completions",
				askFor("dear", fmt.Sprintf(`,"max_tokens":60,"stream":%v`, tt.stream)),
				g.as("user7")...)
			got := g.receipt(t, r)
			if charged := got.Get("charged").Int(); (charged > 0) != tt.charged || charged > 60 ||
				got.Get("end_reason").String() != tt.reason {
				t.Errorf("got %s for %d %s", got.Raw, r.status, r.body)
			}
		})
	}
}

// TestAClientThatLeavesPaysForWhatWasDelivered: over a real connection, cut by the client.
func TestAClientThatLeavesPaysForWhatWasDelivered(t *testing.T) {
	g, _ := priced(t, 10_000, func(w http.ResponseWriter, r *http.Request) {
		answerStream(chunk("one"), chunk("two"))(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	front := httptest.NewServer(g.server.Handler())
	defer front.Close()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	q, err := http.NewRequestWithContext(ctx, "POST", front.URL+"/v1/chat/completions",
		strings.NewReader(askFor("dear", `,"max_tokens":60,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+g.secrets["user7"])
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "two") {
			break
		}
	}
	leave()
	got := g.receipt(t, reply{header: res.Header})
	if got.Get("end_reason").String() != "client_left" || got.Get("usage.output_tokens").Int() != 2 ||
		got.Get("charged").Int() < 20 {
		t.Errorf("got %s", got.Raw)
	}
}

// TestStreamWithoutEndIsExtended: a reply longer than what was held at first.
func TestStreamWithoutEndIsExtended(t *testing.T) {
	var events []string
	for range 3000 {
		events = append(events, chunk("word"))
	}
	events = append(events, lastChunk, fmt.Sprintf(usageChunk, 3000), "[DONE]")
	g, _ := priced(t, 1_000_000, answerStream(events...))
	r := g.do("POST", "/v1/chat/completions", askFor("dear", `,"stream":true`), g.as("user7")...)
	got := g.receipt(t, r)
	if got.Get("end_reason").String() != "finished" || got.Get("charged").Int() != 100+30_000 ||
		got.Get("held").Int() < 30_000 ||
		got.Get("held").Int() > 60_000 {
		t.Errorf("got %s", got.Raw)
	}
}

// TestStreamEndsWithTheBalance: as one that has reached its length, in every shape
// whose requests need not say how long that is, with the usage that is charged.
// Messages must say it, so all of one is held or it is refused.
func TestStreamEndsWithTheBalance(t *testing.T) {
	var events []string
	for range 3000 {
		events = append(events, chunk("word"))
	}
	events = append(events, lastChunk, fmt.Sprintf(usageChunk, 3000), "[DONE]")
	tests := []struct {
		path, body string
		piece      string // of the answer
		finish     string // in the stream
		end        string // of the stream
	}{
		{
			"/v1/chat/completions",
			askFor("dear", `,"stream":true,"stream_options":{"include_usage":true}`),
			`"content":"word"`,
			`"finish_reason":"length"`,
			"data: [DONE]\n\n",
		},
		{
			"/v1/responses",
			`{"model":"dear","input":"hello","stream":true}`,
			`"delta":"word"`,
			`"reason":"max_output_tokens"`,
			"",
		},
		{
			"/v1beta/models/dear:streamGenerateContent?alt=sse",
			`{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`,
			`"text":"word"`,
			`"MAX_TOKENS"`,
			"",
		},
		{
			"/v1beta/models/dear:streamGenerateContent",
			`{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`,
			`"text":"word"`,
			`"MAX_TOKENS"`,
			"]",
		},
		{
			"/v1/completions",
			`{"model":"dear","prompt":"hello","stream":true}`,
			`"text":"word"`,
			`"finish_reason":"length"`,
			"data: [DONE]\n\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			g, _ := priced(t, 15_000, answerStream(events...))
			r := g.do("POST", tt.path, tt.body, g.as("user7")...)
			body := string(r.body)
			if r.status != 200 || !strings.Contains(compactSpaces(body), tt.finish) ||
				!strings.HasSuffix(body, tt.end) ||
				strings.Contains(body, `"error":{`) {
				t.Errorf("got %d ... %s", r.status, body[max(0, len(body)-600):])
			}
			got := g.receipt(t, r)
			if n := strings.Count(compactSpaces(body), tt.piece); n < 1200 || n > 1700 {
				t.Errorf("%d words were delivered, want about 1500", n)
			}
			if got.Get("end_reason").String() != "balance_exhausted" || got.Get("charged").Int() < 12_000 ||
				got.Get("charged").Int() > 15_100 {
				t.Errorf("got %s", got.Raw)
			}
		})
	}
}

func compactSpaces(s string) string { return strings.ReplaceAll(s, ": ", ":") }

// TestParallelRequestsCannotOverdraw: a hundred requests with balance for ten.
func TestParallelRequestsCannotOverdraw(t *testing.T) {
	release := make(chan struct{})
	g, u := priced(t, 10_000, func(w http.ResponseWriter, r *http.Request) {
		<-release
		answerJSON(200, wholeAnswer)(w, r)
	})
	refused := make(chan int, 100)
	go func() {
		for range 91 { // who was admitted waits until all others are refused
			<-refused
		}
		close(release)
	}()
	ok := make(chan int, 100)
	parallel(100, 1, func(int, int) {
		// Held: 100 tokens out and about 25 in, so between nine and ten of them.
		switch r := g.do("POST", "/v1/chat/completions", askFor("dear", `,"max_tokens":100`), g.as("user7")...); r.status {
		case 200:
			ok <- 1
		case 429:
			refused <- 1
		default:
			t.Errorf("got %d %s", r.status, r.body)
		}
	})
	if n := len(u.all()); n != len(ok) || n != 9 {
		t.Errorf("%d requests reached the upstream, %d were answered; there was money for nine", n, len(ok))
	}
}

// TestBackgroundResponseIsCharged although no client waits for it.
func TestBackgroundResponseIsCharged(t *testing.T) {
	g, _ := priced(t, 1_000_000, answerStream(chunk("a"), lastChunk, fmt.Sprintf(usageChunk, 50), "[DONE]"))
	r := g.do("POST", "/v1/responses", `{"model":"dear","input":"hello","background":true}`, g.as("user7")...)
	if r.status != 200 {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	if got := g.receipt(t, r); got.Get("charged").Int() != 600 || got.Get("end_reason").String() != "finished" {
		t.Errorf("got %s", got.Raw)
	}
}

// TestSandboxIsChargedToo: a price is a price, also without an upstream, and in
// one piece or many the same.
func TestSandboxIsChargedToo(t *testing.T) {
	g, _ := priced(t, 1_000_000, answerJSON(500, ""))
	var charged []int64
	for _, more := range []string{`,"max_tokens":100`, `,"max_tokens":100,"stream":true`} {
		r := g.do("POST", "/v1/chat/completions", askFor("dear-sandbox", more), g.as("user7")...)
		if r.status != 200 {
			t.Fatalf("got %d %s", r.status, r.body)
		}
		charged = append(charged, g.receipt(t, r).Get("charged").Int())
	}
	if charged[0] <= 0 || charged[0] != charged[1] {
		t.Errorf("got %v", charged)
	}
}

// TestWhatAClientAsksForDoesNotLowerItsBill: several prompts and best_of are several answers,
// in the hold and in the bill.
func TestWhatAClientAsksForDoesNotLowerItsBill(t *testing.T) {
	prompts := strings.TrimSuffix(strings.Repeat(`"a",`, 500), ",")
	tests := []struct {
		name, body string
		out, held  int64
	}{
		{"500 prompts", `{"model":"old","max_tokens":10,"prompt":[` + prompts + `]}`, 16_000, 50_000},
		{"best_of", `{"model":"old","max_tokens":10,"best_of":20,"prompt":"a"}`, 4_000, 2_000},
		{"prompts, each several times", `{"model":"old","max_tokens":10,"n":3,"prompt":["a","b"]}`, 60, 600},
		{"token lists are prompts", `{"model":"old","max_tokens":10,"prompt":[[1,2],[3]]}`, 20, 200},
		{"one list of tokens is one prompt", `{"model":"old","max_tokens":10,"prompt":[1,2,3]}`, 10, 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := fmt.Sprintf(
				`{"id":"c","object":"text_completion","created":1,"model":"old","choices":[{"index":0,"text":"hi","finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":%d,"total_tokens":1}}`,
				tt.out,
			)
			u := newUpstream(t, answerJSON(200, answer))
			g, _ := priced(t, 10_000_000, nil, func(g *gateway) {
				g.provider(
					catalog.Provider{
						Name:    "old",
						Shape:   dialoguetest.Completions,
						BaseURL: u.URL + "/v1",
						APIKeys: []string{"k"},
					},
					catalog.Model{Pattern: "old", Price: dear, MaxOutputTokens: 1000},
				)
			})
			r := g.do("POST", "/v1/completions", tt.body, g.as("user7")...)
			if r.status != 200 {
				t.Fatalf("got %d %s", r.status, r.body)
			}
			got := g.receipt(t, r)
			if got.Get("charged").Int() != 500+10*tt.out || got.Get("held").Int() < tt.held ||
				got.Get("held").Int() > tt.held+3_000 {
				t.Errorf("charged %d and held %d, want %d and about %d: %s", got.Get("charged").Int(),
					got.Get("held").Int(), 500+10*tt.out, tt.held, got.Raw)
			}
		})
	}
}

func TestBudgetOfAKeyWithoutAUserCounts(t *testing.T) {
	g, _ := priced(t, 0, answerJSON(200, wholeAnswer))
	g.key("lonely", func(k *identity.Key) { k.Budget = 1000 })
	body := askFor("dear", `,"max_tokens":60`)
	r := g.do("POST", "/v1/chat/completions", body, g.as("lonely")...)
	if r.status != 200 {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	if got := g.do("GET", "/v1/receipts/"+r.header.Get("X-Request-Id"), "", g.as("lonely")...); got.get("charged").
		Int() !=
		600 {
		t.Errorf("the receipt says %s", got.body)
	}
	want(t, g.do("POST", "/v1/chat/completions", body, g.as("lonely")...), 429, "insufficient_quota")
}

// A key without the scopes of a request reads its own receipts only, not those of its
// user's other keys.
func TestKeyReadsReceiptsThatItsScopesCover(t *testing.T) {
	g, _ := priced(t, 1_000_000, answerJSON(200, wholeAnswer))
	for name, scopes := range map[string][]string{"models": {"models"}, "chat": {"chat"},
		"makes": {"chat", "responses", "completions", "messages", "generate", "images", "imagegen", "embeddings"}} {
		g.key(name, func(k *identity.Key) { k.User, k.Scopes = "7", scopes })
	}
	paid := g.do("POST", "/v1/chat/completions", askFor("dear", ""), g.as("user7")...)
	g.receipt(t, paid)
	free := g.do("POST", "/v1/chat/completions", askFor("alpha", ""), g.as("user7")...)
	own := g.do("POST", "/v1/chat/completions", askFor("dear", ""), g.as("chat")...)
	g.receipt(t, own)
	for _, r := range []reply{paid, free} {
		path := "/v1/receipts/" + r.header.Get("X-Request-Id")
		for name, status := range map[string]int{"user7": 200, "makes": 200, "models": 404, "chat": 404} {
			if got := g.do("GET", path, "", g.as(name)...); got.status != status {
				t.Errorf("the key %s gets %d, want %d: %s", name, got.status, status, got.body)
			}
		}
	}
	if got := g.do("GET", "/v1/receipts/"+own.header.Get("X-Request-Id"), "", g.as("chat")...); got.status != 200 {
		t.Errorf("a key's own receipt: %d %s", got.status, got.body)
	}
}

// TestTranslatedCompletionsAreChargedForEveryPrompt: a provider without completions is called
// once for each prompt, and each of these calls is held and charged.
func TestTranslatedCompletionsAreChargedForEveryPrompt(t *testing.T) {
	g, _ := priced(t, 100_000, answerJSON(200, wholeAnswer))
	r := g.do("POST", "/v1/completions", `{"model":"dear","max_tokens":60,"prompt":["a","b","c"]}`, g.as("user7")...)
	if r.status != 200 {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	got := g.receipt(t, r)
	if got.Get("charged").Int() != 3*600 || got.Get("held").Int() < 3*600 || got.Get("held").Int() > 3*600+100 {
		t.Errorf("got %s", got.Raw)
	}
	// Such a provider has no best_of, so that is refused before anything is spent.
	r = g.do("POST", "/v1/completions", `{"model":"dear","max_tokens":60,"best_of":4,"prompt":"a"}`, g.as("user7")...)
	if spent := money.FindAccount(g.state.View(), "7").Spent; r.status != 400 || spent != 3*600 {
		t.Errorf("best_of: got %d %s, spent %d", r.status, r.body, spent)
	}
}
