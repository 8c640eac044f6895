package embeddings_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const (
	openai = "/v1/embeddings"
	google = "/v1beta/models/google:batchEmbedContents"
)

// answer sends a reply of an upstream.
func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// TestRepliesOfTheSameShapePassUnchanged checks the bytes of the request, which keep members that the gateway does not
// know, and those of the reply, in which only the model has the client's name.
func TestRepliesOfTheSameShapePassUnchanged(t *testing.T) {
	const (
		openaiReply = `{ "object":"list","data":[{"object":"embedding","index":0,` +
			`"embedding":[0.10000000000000000001, 1e0]}],"model":"up","usage":{"prompt_tokens":3,"total_tokens":3},` +
			`"x":1}`
		googleReply = `{ "embeddings":[{"values":[0.50, 1.0]}],"usageMetadata":{"promptTokenCount":3} }`
	)
	g := start(t, func(w http.ResponseWriter, path, _ string) {
		if path == openai {
			answer(w, 200, openaiReply)
		} else {
			answer(w, 200, googleReply)
		}
	})
	r := g.post(openai, `{"model": "openai","input":"a" ,"extension":[1.0]}`)
	if want := strings.Replace(openaiReply, `"up"`, `"openai"`, 1); r.status != 200 || r.body != want {
		t.Errorf("got %d %s", r.status, r.body)
	}
	body := `{"requests":[{"content":{"parts":[{"text":"a"}]} , "new":1}]}`
	for _, version := range []string{"/v1beta", "/v1"} {
		if r := g.post(version+"/models/google:batchEmbedContents",
			`{"requests":[{"content":{"parts":[{"text":"a"}]} , "new":1}]}`); r.status != 200 ||
			r.body != googleReply {
			t.Errorf("%s: got %d %s", version, r.status, r.body)
		}
	}
	calls := g.calls()
	if calls[0] != openai+` {"model": "up","input":"a" ,"extension":[1.0]}` ||
		calls[1] != "/v1beta/models/up:batchEmbedContents "+
			`{"requests":[`+strings.TrimSuffix(strings.TrimPrefix(body, `{"requests":[`), `]}`)+`]}` {
		t.Errorf("the upstream got %q", calls)
	}
	if got := g.spent(); got != 9 {
		t.Errorf("charged %d, want 9", got)
	}
}

// TestEitherDialectIsServedByUpstreamsOfTheOther covers base64, dimensions, purposes, token lists and losses.
func TestEitherDialectIsServedByUpstreamsOfTheOther(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, path, body string) {
		if path == openai {
			answer(
				w,
				200,
				`{"data":[{"index":1,"embedding":[3,4.0]},{"index":0,"embedding":[1.0,2]}],`+
					`"usage":{"prompt_tokens":5,"total_tokens":5}}`,
			)
		} else {
			answer(w, 200, `{"embeddings":[{"values":[3,4]},{"values":[0,1.0]}],`+
				`"usageMetadata":{"promptTokenCount":6}}`)
		}
	})
	r := g.post(
		openai,
		`{"model":"google","input":[[15339,1917],[15339]],"dimensions":2,"input_type":"query","user":"u",`+
			`"truncate":"END"}`,
	)
	if want := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.6,0.8]},` +
		`{"object":"embedding","index":1,"embedding":[0,1]}],` +
		`"model":"google","usage":{"prompt_tokens":6,"total_tokens":6}}`; r.status != 200 ||
		r.body != want ||
		r.header.Get("X-Stagedoor-Losses") != "user,truncate" {
		t.Errorf("got %d %s %v", r.status, r.body, r.header)
	}
	r = g.post(openai, `{"model":"google","input":["a","b"],"encoding_format":"base64"}`)
	if r.get("data.0.embedding").Str != "AABAQAAAgEA=" || r.get("data.1.embedding").Str != "AAAAAAAAgD8=" {
		t.Errorf("got %s", r.body)
	}
	r = g.post(
		"/v1beta/models/openai:batchEmbedContents",
		`{"requests":[{"model":"models/openai","content":{"parts":[{"text":"a"}]},"taskType":"CLUSTERING"},`+
			`{"content":{"parts":[{"text":"b"}]}}]}`,
	)
	if want := `{"embeddings":[{"values":[1.0,2]},{"values":[3,4.0]}],` +
		`"usageMetadata":{"promptTokenCount":5}}`; r.body != want ||
		r.header.Get("X-Stagedoor-Losses") != "taskType" {
		t.Errorf("got %d %s %v", r.status, r.body, r.header)
	}
	want := []string{
		`/v1beta/models/up:batchEmbedContents {"requests":[{"model":"models/up",` +
			`"content":{"parts":[{"text":"hello world"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":2},` +
			`{"model":"models/up","content":{"parts":[{"text":"hello"}]},"taskType":"RETRIEVAL_QUERY",` +
			`"outputDimensionality":2}]}`,
		`/v1beta/models/up:batchEmbedContents {"requests":[{"model":"models/up",` +
			`"content":{"parts":[{"text":"a"}]}},{"model":"models/up","content":{"parts":[{"text":"b"}]}}]}`,
		`/v1/embeddings {"model":"up","input":["a","b"],"encoding_format":"float"}`,
	}
	if got := g.calls(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the upstream got %q", got)
	}
	if got := g.spent(); got != 17 {
		t.Errorf("charged %d, want 17", got)
	}
}

// manyTexts is a request for n inputs, each of which is its number.
func manyTexts(n int) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strconv.Quote(strconv.Itoa(i))
	}
	return `{"model":"google","input":[` + strings.Join(texts, ",") + `]}`
}

// numbers answers a batch with the number that each text is.
func numbers(body string) string {
	var values []string
	gjson.Get(body, "requests").ForEach(func(_, v gjson.Result) bool {
		values = append(values, `{"values":[`+v.Get("content.parts.0.text").Str+`]}`)
		return true
	})
	return `{"embeddings":[` + strings.Join(values, ",") + `],"usageMetadata":{"promptTokenCount":` + strconv.Itoa(
		len(values),
	) + `}}`
}

// TestBatchesAreDividedAndJoinedInOrder also holds that at most eight calls run at a time, and that usage is summed.
func TestBatchesAreDividedAndJoinedInOrder(t *testing.T) {
	var running, most atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	g := start(t, func(w http.ResponseWriter, _, body string) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 8 {
			once.Do(func() { close(full) })
		}
		select {
		case <-full:
		case <-time.After(time.Minute):
		}
		answer(w, 200, numbers(body))
	})
	r := g.post(openai, manyTexts(2048))
	if r.status != 200 || r.get("data.#").Int() != 2048 || r.get("usage.total_tokens").Int() != 2048 {
		t.Fatalf("got %d %.200s", r.status, r.body)
	}
	for i, v := range r.get("data").Array() {
		if v.Get("index").Int() != int64(i) || v.Get("embedding.0").Int() != int64(i) {
			t.Fatalf("input %d: got %s", i, v)
		}
	}
	if n := len(g.calls()); n != 21 || most.Load() != 8 || g.spent() != 2048 {
		t.Errorf("%d calls, %d at a time, charged %d", n, most.Load(), g.spent())
	}
}

// TestCallsOfABatchReserveTheirOwnTokens: together they reserve no more than the request, so that a provider's limit of
// tokens does not hold up a request that fits.
func TestCallsOfABatchReserveTheirOwnTokens(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, _, body string) { answer(w, 200, numbers(body)) })
	if r := g.post(openai, strings.Replace(manyTexts(2048), "google", "slow", 1)); r.status != 200 ||
		len(g.calls()) != 21 {
		t.Errorf("got %d %.200s after %d calls", r.status, r.body, len(g.calls()))
	}
}

// TestADividedRequestNeedsOnlyOnePlaceAtItsProvider, because each call gives its permit back at its own end.
func TestADividedRequestNeedsOnlyOnePlaceAtItsProvider(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, _, body string) { answer(w, 200, numbers(body)) })
	r := g.post(openai, strings.Replace(manyTexts(250), "google", "single", 1))
	if r.status != 200 || r.get("data.#").Int() != 250 || len(g.calls()) != 3 {
		t.Errorf("got %d %.200s after %d calls", r.status, r.body, len(g.calls()))
	}
}

// TestTheFirstFailureOfABatchFailsTheRequest checks that no part of a reply is sent, and that other calls end.
func TestTheFirstFailureOfABatchFailsTheRequest(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, _, body string) {
		if strings.Contains(body, `"text":"150"`) {
			answer(w, 400, `{"error":{"code":400,"message":"input is too long","status":"INVALID_ARGUMENT"}}`)
			return
		}
		answer(w, 200, numbers(body))
	})
	r := g.post(openai, manyTexts(300))
	if r.status != 400 || r.get("error.message").Str != "input is too long" || g.spent() != 0 {
		t.Errorf("got %d %s, charged %d", r.status, r.body, g.spent())
	}
}

// TestUsageThatIsNotReportedIsEstimated charges the gateway's own count and says so.
func TestUsageThatIsNotReportedIsEstimated(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, path, _ string) {
		if path == openai {
			answer(w, 200, `{"data":[{"embedding":[1]}]}`)
		} else {
			answer(w, 200, `{"embeddings":[{"values":[1]}]}`)
		}
	})
	r := g.post(openai, `{"model":"google","input":"hello world"}`)
	if r.get("usage.prompt_tokens").Int() != 2 || r.header.Get("X-Stagedoor-Estimate") != "tokens" {
		t.Errorf("got %s %v", r.body, r.header)
	}
	id := r.header.Get("X-Request-Id")
	if r := g.post(openai, `{"model":"openai","input":[1,2,3]}`); r.status != 200 || g.spent() != 5 {
		t.Errorf("got %s, charged %d", r.body, g.spent())
	}
	q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/receipts/"+id, nil)
	q.Header.Set("Authorization", "Bearer sd-test")
	w := httptest.NewRecorder()
	g.server.ServeHTTP(w, q)
	if body := w.Body.String(); !gjson.Get(body, "usage.estimated").Bool() ||
		gjson.Get(body, "usage.input_tokens").Int() != 2 {
		t.Errorf("the receipt is %s", body)
	}
}

// A token in a list may take two bytes, and text of that length counts as half a token.
func TestTheHoldCoversListsOfTokens(t *testing.T) {
	var g *gateway
	var held atomic.Int64
	g = start(t, func(w http.ResponseWriter, _, _ string) {
		b, err := g.runtime.Ledger().Balance(context.Background(), "7")
		if err != nil {
			t.Error(err)
		}
		held.Store(b.Held)
		answer(w, 200, `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":1000}}`)
	})
	r := g.post(openai, `{"model":"openai","input":[1`+strings.Repeat(",1", 999)+`]}`)
	if r.status != 200 || g.spent() != 1000 {
		t.Fatalf("%d %s, spent %d", r.status, r.body, g.spent())
	}
	if held.Load() < 1000 {
		t.Errorf("%d micro-dollars were held for a request that costs 1000", held.Load())
	}
}

// A provider that chooses the model is charged by its choice, whether its reply passes unchanged or is translated.
func TestTheModelThatAReplyNamesIsCharged(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, _, _ string) {
		answer(w, 200, `{"data":[{"index":0,"embedding":[1]}],"model":"text-embedding-3-small",`+
			`"usage":{"prompt_tokens":1000,"total_tokens":1000}}`)
	})
	r := g.post(openai, `{"model":"router","input":"a"}`)
	if r.status != 200 || g.spent() != 20 {
		t.Errorf("passed: %d %s, spent %d", r.status, r.body, g.spent())
	}
	r = g.post(strings.Replace(google, "google", "router", 1),
		`{"requests":[{"model":"models/router","content":{"parts":[{"text":"a"}]}}]}`)
	if r.status != 200 || g.spent() != 40 {
		t.Errorf("translated: %d %s, spent %d", r.status, r.body, g.spent())
	}
}

// TestAClientThatLeavesPaysForTheAcceptedPrompt and nothing before the upstream has accepted it.
func TestAClientThatLeavesPaysForTheAcceptedPrompt(t *testing.T) {
	for name, want := range map[string]int64{"accepted": 2, "not accepted": 0} {
		t.Run(name, func(t *testing.T) {
			reached, left := make(chan struct{}), make(chan struct{})
			g := start(t, func(w http.ResponseWriter, _, _ string) {
				if want > 0 {
					answer(w, 200, `{"embeddings":[`)
					w.(http.Flusher).Flush()
				}
				close(reached)
				<-left
			})
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				<-reached
				for want > 0 && g.runtime.Engine().InFlight() > 0 && ctx.Err() == nil {
					time.Sleep(20 * time.Millisecond) // until the gateway has read the status
					leave()
				}
				leave()
			}()
			if res, err := g.open(ctx, "sd-test", openai, `{"model":"google","input":"hello world"}`); err == nil {
				res.Body.Close()
			}
			got := g.spent()
			close(left)
			if got != want {
				t.Errorf("charged %d, want %d", got, want)
			}
		})
	}
}

// TestFailuresAreTriedAgainAndThenFree: the same request has the same vectors.
func TestFailuresAreTriedAgainAndThenFree(t *testing.T) {
	var calls atomic.Int32
	g := start(t, func(w http.ResponseWriter, _, _ string) {
		if calls.Add(1)%2 == 1 {
			answer(w, 200, `{"data":[{"embedding":[1`) // cut off
			return
		}
		answer(w, 500, `{"error":{"message":"out of sk-secret GPUs"}}`)
	})
	r := g.post(openai, `{"model":"openai","input":"a"}`)
	if r.status != 500 || calls.Load() != 2 || strings.Contains(r.body, "sk-secret") || g.spent() != 0 {
		t.Errorf("got %d %s after %d calls, charged %d", r.status, r.body, calls.Load(), g.spent())
	}
}

// TestARequestNeverFallsBackToAnotherModel, whose vectors cannot be compared with those of the first one. It does
// move to another provider of the same model.
func TestARequestNeverFallsBackToAnotherModel(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, path, body string) {
		if path == openai {
			answer(w, 503, `{"error":{"message":"busy"}}`)
			return
		}
		answer(w, 200, numbers(body))
	})
	r := g.post(openai, `{"model":"pair","input":"7"}`)
	calls := g.calls()
	if r.status != 200 || r.get("data.0.embedding.0").Int() != 7 ||
		!strings.HasPrefix(calls[len(calls)-1], "/v1beta/models/one:") {
		t.Errorf("got %d %s after %q", r.status, r.body, calls)
	}
	for _, call := range calls {
		if strings.Contains(call, "two") || strings.Contains(call, "messages") {
			t.Errorf("the upstream got %q", call)
		}
	}
}

// TestWeightsChooseAmongDeploymentsOfOneModel, because clients compare the vectors of different requests.
func TestWeightsChooseAmongDeploymentsOfOneModel(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, path, body string) {
		if path == openai {
			answer(w, 200, `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":1}}`)
		} else {
			answer(w, 200, numbers(body))
		}
	})
	for range 32 {
		if r := g.post(openai, `{"model":"weighted","input":"7"}`); r.status != 200 {
			t.Fatalf("got %d %s", r.status, r.body)
		}
	}
	paths := map[string]int{}
	for _, call := range g.calls() {
		paths[strings.Fields(call)[0]]++
		if strings.Contains(call, "two") {
			t.Fatalf("the upstream got %q", call)
		}
	}
	if len(paths) != 2 {
		t.Errorf("32 requests went to %v", paths)
	}
}

// TestLargeRepliesAreStreamed: the client reads the beginning of a reply whose end the upstream keeps back until
// then. A reply that breaks off afterwards is cut off for the client, too, and costs nothing.
func TestLargeRepliesAreStreamed(t *testing.T) {
	begin, read := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[`+strings.Repeat("0.5,",
		200_000), make(
		chan bool,
	)
	g := start(t, func(w http.ResponseWriter, _, _ string) {
		answer(w, 200, begin)
		w.(http.Flusher).Flush()
		if <-read {
			_, _ = io.WriteString(w, `1]}],"model":"up","usage":{"prompt_tokens":9,"total_tokens":9}}`)
		}
	})
	for _, whole := range []bool{true, false} {
		res, err := g.open(t.Context(), "sd-test", openai, `{"model":"openai","input":"a"}`)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 256<<10)
		if _, err := io.ReadFull(res.Body, first); err != nil || !strings.HasPrefix(begin, string(first)) {
			t.Fatalf("%v", err)
		}
		read <- whole
		rest, err := io.ReadAll(res.Body)
		res.Body.Close()
		if whole &&
			(err != nil || !strings.HasSuffix(string(rest), `"model":"openai","usage":{"prompt_tokens":9,`+
				`"total_tokens":9}}`)) ||
			!whole && err == nil {
			t.Errorf("whole %v: got %v, ... %.80s", whole, err, rest[max(0, len(rest)-80):])
		}
	}
	if got := g.spent(); got != 9 {
		t.Errorf("charged %d, want 9", got)
	}
}

// TestErrorsAreInTheEnvelopeOfTheDialect and name field and rule.
func TestErrorsAreInTheEnvelopeOfTheDialect(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, _, _ string) { answer(w, 500, `{}`) })
	long := `{"model":"sandbox","dimensions":1,"input":"` + strings.Repeat("word ", 100) + `"}`
	for _, tt := range []struct {
		key, path, body string
		status          int
		param, google   string
	}{
		{"sd-test", openai, `{"model":"openai","input":["a",""]}`, 400, "input.1", ""},
		{"sd-test", openai, `{"model":"text","input":"a"}`, 400, "model", ""},
		{"sd-test", openai, `{"model":"unknown","input":"a"}`, 404, "model", ""},
		{"sd-test", openai, `{"Model":"openai","input":"a"}`, 400, "Model", ""},
		{"sd-test", openai, `[`, 400, "", ""},
		{"sd-test", openai, `{"model":"google","input":[[99999999]]}`, 400, "input", ""},
		{"sd-wrong", openai, `{}`, 401, "", ""},
		{"sd-narrow", openai, `{}`, 403, "", ""},
		{"sd-models", openai, `{"model":"openai","input":"a"}`, 403, "model", ""},
		{"sd-limited", openai, long, 200, "", ""}, // a limit that is full of credit lets one request pass
		{"sd-limited", openai, long, 429, "", ""},
		{"sd-narrow", google, `{}`, 403, "", "PERMISSION_DENIED"},
		{"sd-test", google, `{"requests":[{}]}`, 400, "requests.0.content", "INVALID_ARGUMENT"},
		{"sd-test", "/v1beta/models/openai:embedContent",
			`{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}`,
			400, "content.parts.0", "INVALID_ARGUMENT"},
		{"sd-test", "/v1beta/models/google:asyncBatchEmbedContent", `{}`, 404, "", "NOT_FOUND"},
	} {
		r := g.postAs(tt.key, tt.path, tt.body)
		if r.status != tt.status || r.get("error.param").Str != tt.param || r.get("error.status").Str != tt.google ||
			(r.get("error.message").Str == "") != (tt.status == 200) {
			t.Errorf("%s %.60s as %s: got %d %s", tt.path, tt.body, tt.key, r.status, r.body)
		}
	}
	if n := len(g.calls()); n != 0 {
		t.Errorf("the upstream got %q", g.calls())
	}
}

// TestTheSandboxAnswersInBothDialects with the same vectors for the same inputs.
func TestTheSandboxAnswersInBothDialects(t *testing.T) {
	g := start(t, nil)
	a := g.post(openai, `{"model":"sandbox","input":["hello","x"],"dimensions":8}`)
	b := g.post("/v1beta/models/sandbox:embedContent",
		`{"content":{"parts":[{"text":"hello"}]},"outputDimensionality":8}`)
	if a.status != 200 || a.get("data.0.embedding").Raw == "" ||
		a.get("data.0.embedding").Raw != b.get("embedding.values").Raw {
		t.Errorf("got %s and %s", a.body, b.body)
	}
	if r := g.post(openai, `{"model":"sandbox","input":"[sandbox: status=429]"}`); r.status != 429 {
		t.Errorf("an ordered fault: got %d %s", r.status, r.body)
	}
}

// TestCallsAreTraced checks the span of a call, whose parent is that of the request.
func TestCallsAreTraced(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, _, body string) { answer(w, 200, numbers(body)) })
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	ctx, span := tracer.Start(t.Context(), "request")
	q := httptest.NewRequestWithContext(ctx, http.MethodPost, openai,
		strings.NewReader(`{"model":"google","input":"7"}`))
	q.Header.Set("Authorization", "Bearer sd-test")
	g.handler(httptest.NewRecorder(), q)
	span.End()
	for _, s := range recorder.Ended() {
		if s.Name() != "embeddings up" {
			continue
		}
		got := map[string]string{}
		for _, a := range s.Attributes() {
			got[string(a.Key)] = a.Value.String()
		}
		if got["gen_ai.operation.name"] != "embeddings" || got["gen_ai.provider.name"] != "gcp.gemini" ||
			got["gen_ai.usage.input_tokens"] != "1" ||
			s.Parent().SpanID() != span.SpanContext().SpanID() {
			t.Errorf("the call has %v", got)
		}
		return
	}
	t.Error("there is no span of the call")
}

// TestRepeatedRequestForEmbeddingsIsNotMadeAgain: a repeat with the same key gets the same bytes and is not charged.
func TestRepeatedRequestForEmbeddingsIsNotMadeAgain(t *testing.T) {
	g := start(t, func(w http.ResponseWriter, _, _ string) {
		answer(w, 200, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"up",`+
			`"usage":{"prompt_tokens":3,"total_tokens":3}}`)
	})
	var bodies []string
	for _, input := range []string{"a", "a", "b"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+openai,
			strings.NewReader(`{"model":"openai","input":"`+input+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer sd-test")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "k")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, fmt.Sprint(res.StatusCode, string(b)))
	}
	if bodies[0] != bodies[1] || !strings.HasPrefix(bodies[0], "200") || !strings.HasPrefix(bodies[2], "409") ||
		len(g.calls()) != 1 || g.spent() != 3 {
		t.Errorf("got %q after %d calls", bodies, len(g.calls()))
	}
}
