package text_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// TestEveryRequestHasAReceipt: also one without a user to charge, or that costs nothing
// (decisions, Ledger).
func TestEveryRequestHasAReceipt(t *testing.T) {
	const usage = `{"input_tokens":100,"output_tokens":50}`
	tests := []struct {
		name, key, model, more string
		answer                 http.HandlerFunc
		usage, reason          string
	}{
		{"a model without a price", "user7", "free", "", answerJSON(200, wholeAnswer), usage, "finished"},
		{
			"streamed",
			"user7",
			"free",
			`,"stream":true`,
			answerStream(
				chunk("a"),
				lastChunk,
				`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"free","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`,
				"[DONE]",
			),
			usage,
			"finished",
		},
		{
			"streamed, no usage reported",
			"user7",
			"free",
			`,"stream":true`,
			answerStream(chunk("a"), lastChunk, "[DONE]"),
			`{"output_tokens":2,"estimated":true}`,
			"finished",
		},
		{"a key without a user", "all", "dear", "", answerJSON(200, wholeAnswer), usage, "finished"},
		{
			"refused by the upstream",
			"all",
			"dear",
			"",
			answerJSON(400, `{"error":{"message":"no","type":"invalid_request_error"}}`),
			`{}`,
			"refused",
		},
		{"failed", "user7", "free", "", answerJSON(500, `{"error":{"message":"no"}}`), `{}`, "upstream_failed"},
		{"a free model beside dear ones", "user7", "mixed", "", answerJSON(200, wholeAnswer), usage, "finished"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := priced(t, 10_000, tt.answer, freeModels)
			r := g.do("POST", "/v1/chat/completions", askFor(tt.model, tt.more), g.as(tt.key)...)
			got := g.do("GET", "/v1/receipts/"+r.header.Get("X-Request-Id"), "", g.as(tt.key)...)
			if got.status != 200 {
				t.Fatalf("got %d %s for %d %s", got.status, got.body, r.status, r.body)
			}
			for field, want := range map[string]string{"object": "receipt", "request_id": r.header.Get("X-Request-Id"), "model": tt.model, "provider": "vendor",
				"usage": tt.usage, "prices": "[]", "hold": "0", "held": "0", "charged": "0", "end_reason": tt.reason,
				"settlement": "none", "key": "key_" + tt.key} {
				if have := got.get(field); have.String() != want {
					t.Errorf("%s is %s, want %s", field, have.Raw, want)
				}
			}
			if began, ended := got.get("began").Time(), got.get("ended").Time(); began.IsZero() ||
				ended.Before(began) ||
				got.get("attempts").Int() < 1 {
				t.Errorf("got %s", got.body)
			}
		})
	}
}

// freeModels are served by the vendor of priced for nothing: one whose every target
// is free, and one that costs something elsewhere.
func freeModels(g *gateway) {
	free := new(catalog.Price)
	g.models = append(
		g.models,
		catalog.Model{Pattern: "free", Targets: []catalog.Route{{Provider: "vendor", Model: "*"}}},
		catalog.Model{
			Pattern: "mixed",
			Price:   dear,
			Targets: []catalog.Route{
				{Provider: "vendor", Model: "*", Weight: 1_000_000, Price: free},
				{Provider: "sandbox", Model: "*"},
			},
		},
	)
}

func TestReceiptsOfWhatCostNothingAreTheirOwners(t *testing.T) {
	g, _ := priced(t, 0, answerJSON(200, wholeAnswer), freeModels)
	g.key("second7", func(k *identity.Key) { k.User = "7" })
	for key, model := range map[string]string{"user7": "free", "all": "dear"} {
		r := g.do("POST", "/v1/chat/completions", askFor(model, ""), append(g.as(key), "X-Request-Id", "of-"+key)...)
		if r.status != 200 {
			t.Fatalf("got %d %s", r.status, r.body)
		}
	}
	tests := []struct {
		key, request string
		status       int
	}{
		{"user7", "of-user7", 200},
		{"second7", "of-user7", 200}, // another key of the user's
		{"user8", "of-user7", 404},
		{"all", "of-user7", 404},
		{"all", "of-all", 200},
		{"user7", "of-all", 404},
	}
	for _, tt := range tests {
		if r := g.do("GET", "/v1/receipts/"+tt.request, "", g.as(tt.key)...); r.status != tt.status {
			t.Errorf("%s of %s: got %d %s", tt.request, tt.key, r.status, r.body)
		}
	}
}

// TestOneIDForSeveralFreeRequests: the newest first, as with those that were paid.
func TestOneIDForSeveralFreeRequests(t *testing.T) {
	g, _ := priced(t, 0, answerJSON(200, wholeAnswer), freeModels)
	for _, model := range []string{"free", "alpha"} {
		g.do("POST", "/v1/chat/completions", askFor(model, ""), append(g.as("user7"), "X-Request-Id", "twice")...)
	}
	r := g.do("GET", "/v1/receipts/twice", "", g.as("user7")...)
	if r.get("model").String() != "alpha" || r.get("earlier.#").Int() != 1 ||
		r.get("earlier.0.model").String() != "free" ||
		r.get("earlier.0.settlement").String() != "none" {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// TestReceiptOfARunningFreeRequest: there is none before its end.
func TestReceiptOfARunningFreeRequest(t *testing.T) {
	asked, done := make(chan struct{}), make(chan struct{})
	g, _ := priced(t, 0, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-done
		answerJSON(200, wholeAnswer)(w, r)
	}, freeModels)
	go func() {
		<-asked
		want(t, g.do("GET", "/v1/receipts/slow", "", g.as("user7")...), 404, "not_found")
		close(done)
	}()
	g.do("POST", "/v1/chat/completions", askFor("free", ""), append(g.as("user7"), "X-Request-Id", "slow")...)
	if r := g.do("GET", "/v1/receipts/slow", "", g.as("user7")...); r.status != 200 {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// TestAPaidReceiptIsNeverReportedAsFree: when it was folded away it is gone, and not
// replaced by what is remembered of the request.
func TestAPaidReceiptIsNeverReportedAsFree(t *testing.T) {
	g, _ := priced(t, 10_000, answerJSON(200, wholeAnswer))
	r := g.do("POST", "/v1/chat/completions", askFor("dear", `,"max_tokens":60`), g.as("user7")...)
	got := g.receipt(t, r)
	if got.Get("settlement").String() != "charged" {
		t.Errorf("got %s", got.Raw)
	}
	g.later.Store(int64(25 * time.Hour)) // beyond the least time that receipts are kept
	if _, err := money.Fold(context.Background(), g.state, time.Now().Add(time.Minute), 1000); err != nil {
		t.Fatal(err)
	}
	want(t, g.do("GET", "/v1/receipts/"+r.header.Get("X-Request-Id"), "", g.as("user7")...), 404, "not_found")
}

// A receipt of a request that was not charged says what it would cost by the list of models, or that its price is not
// known. It never looks as if the request had been free.
func TestAnUnchargedReceiptSaysWhatTheRequestWouldCost(t *testing.T) {
	u := newUpstream(t, answerJSON(200, wholeAnswer))
	flex := newUpstream(t, answerJSON(200, strings.Replace(wholeAnswer, "{", `{"service_tier":"flex",`, 1)))
	g, _ := priced(t, 0, answerJSON(200, wholeAnswer), func(g *gateway) {
		g.provider(catalog.Provider{Name: "flex", Shape: dialoguetest.Chat, Vendor: "openai", BaseURL: flex.URL +
			"/v1"},
			catalog.Model{Pattern: "gpt-5"})
		g.provider(catalog.Provider{Name: "openai", Shape: dialoguetest.Chat, Vendor: "openai", BaseURL: u.URL + "/v1"},
			catalog.Model{Pattern: "gpt-5-2025-08-07"})
		g.models = append(g.models,
			catalog.Model{Pattern: "unknown", Targets: []catalog.Route{{Provider: "vendor", Model: "*"}}},
			catalog.Model{Pattern: "gift", Price: new(catalog.Price),
				Targets: []catalog.Route{{Provider: "vendor", Model: "*"}}})
	})
	for model, want := range map[string]string{
		"unknown":          `["price_unknown"]  `,
		"gift":             `  `,
		"gpt-5":            ` 313 ` + catalog.Builtin().Version, // half of it, rounded up
		"gpt-5-2025-08-07": ` 625 ` + catalog.Builtin().Version, // 100 tokens at 1.25 and 50 at 10 dollars a million
	} {
		r := g.do("POST", "/v1/chat/completions", askFor(model, ""), g.as("user7")...)
		got := g.do("GET", "/v1/receipts/"+r.header.Get("X-Request-Id"), "", g.as("user7")...)
		if s := got.get("flags").Raw + " " + got.get("list_cost").Raw + " " + got.get("catalog").Str; s != want {
			t.Errorf("%s: flags, cost and catalogue %q, want %q in %s", model, s, want, got.body)
		}
		if got.get("charged").Int() != 0 || got.get("settlement").Str != "none" {
			t.Errorf("%s is charged: %s", model, got.body)
		}
	}
}
