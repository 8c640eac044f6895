package text_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/identity"
)

func TestTokensAreEstimatedIfNoProviderCountsThem(t *testing.T) {
	g := open(t)
	for _, c := range []struct{ path, body, field string }{
		{"/v1/messages/count_tokens", `{"model":"alpha","messages":[{"role":"user","content":"count these words"}]}`,
			"input_tokens"},
		{"/v1/messages/count_tokens?beta=true", `{"model":"alpha","max_tokens":5,"messages":[{"role":"user","content":"count these words"}]}`, "input_tokens"},
		{"/v1beta/models/alpha:countTokens", `{"contents":[{"parts":[{"text":"count these words"}]}]}`, "totalTokens"},
		{"/v1beta/models/alpha:countTokens", `{"generateContentRequest":{"model":"models/alpha","contents":[{"parts":[{"text":"count these words"}]}]}}`, "totalTokens"},
		{"/v1/responses/input_tokens", `{"model":"alpha","input":"count these words"}`, "input_tokens"},
	} {
		r := g.do("POST", c.path, c.body)
		if r.status != 200 || r.header.Get("X-Stagedoor-Estimate") != "tokens" || r.get(c.field).Int() < 3 {
			t.Errorf("%s: %d %v %s", c.path, r.status, r.header, r.body)
		}
	}
}

func TestCountsKeepTheRulesOfRequests(t *testing.T) {
	g := openWithout(t, "*")
	g.key("none", func(k *identity.Key) { k.Scopes = []string{} })
	g.key("one", func(k *identity.Key) { k.Limits.RPM = 1 })
	const path, good = "/v1/messages/count_tokens", `{"model":"alpha","messages":[{"role":"user","content":"hi"}]}`
	want(t, g.do("POST", path, good, "Authorization", ""), 401, "missing_api_key")
	want(t, g.do("POST", path, good, g.as("none")...), 403, "permission_denied")
	want(t, g.do("POST", path, `{"model":"alpha"}`), 400, "missing_required_parameter")
	want(t, g.do("POST", path, strings.Replace(good, "alpha", "nope", 1)), 404, "model_not_found")
	g.do("POST", path, good, g.as("one")...)
	want(t, g.do("POST", path, good, g.as("one")...), 429, "rate_limit_exceeded")
	both := g.do("POST", "/v1beta/models/alpha:countTokens", `{"contents":[],"generateContentRequest":{}}`)
	if both.status != 400 || both.get("error.status").String() != "INVALID_ARGUMENT" {
		t.Errorf("%d %s", both.status, both.body)
	}
}

func TestTheHistoryOfAResponseCounts(t *testing.T) {
	g := open(t)
	id := g.create(`{"model":"alpha","input":"` + strings.Repeat("many words ", 50) + `"}`).get("id").String()
	body := fmt.Sprintf(`{"model":"alpha","input":"hi","previous_response_id":%q}`, id)
	if n := g.do("POST", "/v1/responses/input_tokens", body).get("input_tokens").Int(); n < 100 {
		t.Errorf("%d tokens", n)
	}
	want(t,
		g.do("POST", "/v1/responses/input_tokens", `{"model":"alpha","input":"hi","previous_response_id":"resp_none"}`),
		404, "previous_response_not_found")
}

func TestAProviderOfTheShapeCountsItself(t *testing.T) {
	for _, c := range []struct {
		shape                        dialogue.Shape
		base, path, body             string
		upstreamPath, reply, inside  string
		modelPath, model, wantsReply string
	}{
		{dialoguetest.Messages, "", "/v1/messages/count_tokens",
			`{"model":"m","system":"s","messages":[{"role":"user","content":"hi"}]}`,
			"/v1/messages/count_tokens", `{"input_tokens":77}`, "system", "model", "upstream-m", `{"input_tokens":77}`},
		{dialoguetest.Gemini, "", "/v1beta/models/m:countTokens",
			`{"generateContentRequest":{"model":"models/m","systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"parts":[{"text":"hi"}]}]}}`,
			"/v1beta/models/upstream-m:countTokens", `{"totalTokens":77,"promptTokensDetails":[]}`,
			"generateContentRequest.systemInstruction",
			"generateContentRequest.model", "models/upstream-m", `{"totalTokens":77,"promptTokensDetails":[]}`},
	} {
		up := newUpstream(t, answerJSON(200, c.reply))
		g := open(t, func(g *gateway) {
			g.specs = append(g.specs,
				catalog.Provider{Name: "up", Shape: c.shape, BaseURL: up.URL, APIKeys: []string{"upstream-key"}})
			g.models = append(g.models,
				catalog.Model{Pattern: "m", Targets: []catalog.Route{{Provider: "up", Model: "upstream-m"}}})
		})
		r := g.do("POST", c.path, c.body)
		if r.status != 200 || r.header.Get("X-Stagedoor-Estimate") != "" || string(r.body) != c.wantsReply {
			t.Errorf("%s: %d %v %s", c.shape, r.status, r.header, r.body)
		}
		calls := up.all()
		if len(calls) != 1 || calls[0].path != c.upstreamPath {
			t.Fatalf("%s: upstream calls %+v", c.shape, calls)
		}
		body := calls[0].body
		if gjson.GetBytes(body, c.modelPath).String() != c.model || !gjson.GetBytes(body, c.inside).Exists() ||
			gjson.GetBytes(body, "max_tokens").Exists() {
			t.Errorf("%s: the upstream was asked %s", c.shape, body)
		}
		if strings.Contains(fmt.Sprint(calls[0].header), g.secrets["all"]) ||
			!strings.Contains(fmt.Sprint(calls[0].header), "upstream-key") {
			t.Errorf("%s: upstream headers %v", c.shape, calls[0].header)
		}
	}
}

func TestAProviderThatCannotCountIsNotHeldAgainstAnybody(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"refusal":  {404, `{"error":{"message":"no such path"}}`},
		"trouble":  {500, `{}`},
		"nonsense": {200, `{"hello":"world"}`},
		"no JSON":  {200, `<html>`},
	} {
		up := newUpstream(t, answerJSON(answer.status, answer.body))
		g := open(t, func(g *gateway) {
			g.provider(catalog.Provider{Name: "up", Shape: dialoguetest.Messages, BaseURL: up.URL},
				catalog.Model{Pattern: "m"})
		})
		r := g.do("POST", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
		if r.status != 200 || r.header.Get("X-Stagedoor-Estimate") != "tokens" || r.get("input_tokens").Int() < 1 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}
