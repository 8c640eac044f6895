package text_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/state/identity"
)

// ids are the names in a list.
func ids(list gjson.Result, field string) string {
	out := ""
	for _, m := range list.Array() {
		out += m.Get(field).String() + " "
	}
	return out
}

func TestModelsAreListedInThreeDialects(t *testing.T) {
	g := open(t)
	chat := g.do("GET", "/v1/models", "")
	if chat.get("object").String() != "list" || ids(chat.get("data"), "id") != "alpha beta gamma " || chat.get("data.0.object").String() != "model" ||
		!chat.get("data.0.created").Exists() ||
		chat.get("data.0.owned_by").String() != "sandbox" {
		t.Errorf("chat: %s", chat.body)
	}
	messages := g.do("GET", "/v1/models", "", "Anthropic-Version", "2023-06-01")
	if ids(messages.get("data"), "id") != "alpha beta gamma " || messages.get("data.0.type").String() != "model" || messages.get("first_id").String() != "alpha" ||
		messages.get("last_id").String() != "gamma" || messages.get("has_more").Bool() ||
		messages.get("data.0.display_name").String() == "" {
		t.Errorf("messages: %s", messages.body)
	}
	gemini := g.do("GET", "/v1beta/models", "")
	if ids(gemini.get("models"), "name") != "models/alpha models/beta models/gamma " ||
		gemini.get("nextPageToken").Exists() {
		t.Errorf("gemini: %s", gemini.body)
	}
}

func TestOneModelIsDescribedInThreeDialects(t *testing.T) {
	g := openWithout(t, "*")
	if r := g.do("GET", "/v1/models/beta", ""); r.get("id").String() != "beta" || r.get("object").String() != "model" {
		t.Errorf("chat: %s", r.body)
	}
	if r := g.do("GET", "/v1/models/beta", "", "Anthropic-Version", "x"); r.get("id").String() != "beta" ||
		r.get("type").String() != "model" {
		t.Errorf("messages: %s", r.body)
	}
	if r := g.do("GET", "/v1beta/models/beta", ""); r.get("name").String() != "models/beta" {
		t.Errorf("gemini: %s", r.body)
	}
	if r := g.do("GET", "/v1beta/models/beta:generateContent", ""); r.status != 405 || r.header.Get("Allow") != "POST" {
		t.Errorf("a method is no model: %d %s", r.status, r.body)
	}
	want(t, g.do("GET", "/v1/models/nope", ""), 404, "model_not_found")
	messages := g.do("GET", "/v1/models/nope", "", "Anthropic-Version", "x")
	want(t, messages, 404, "model_not_found")
	checkEnvelope(t, "messages", "messages", messages, 404)
	checkEnvelope(t, "gemini", "gemini", g.do("GET", "/v1beta/models/nope", ""), 404)
}

func TestModelsArePaged(t *testing.T) {
	g := open(t)
	for _, c := range []struct {
		query, ids string
		more       bool
	}{
		{"?limit=2", "alpha beta ", true},
		{"?limit=2&after_id=beta", "gamma ", false},
		{"?limit=1&after_id=alpha", "beta ", true},
		{"?limit=1&before_id=gamma", "beta ", true},
		{"?before_id=beta", "alpha ", false},
		{"?after_id=gamma", "", false},
		{"?limit=1000", "alpha beta gamma ", false},
	} {
		r := g.do("GET", "/v1/models"+c.query, "", "Anthropic-Version", "x")
		if r.status != 200 || ids(r.get("data"), "id") != c.ids || r.get("has_more").Bool() != c.more {
			t.Errorf("%s: %s", c.query, r.body)
		}
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "after_id=nope": "after_id", "before_id=nope": "before_id"} {
		r := g.do("GET", "/v1/models?"+query, "", "Anthropic-Version", "x")
		if r.status != 400 || r.get("error.param").String() != param {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	first := g.do("GET", "/v1beta/models?pageSize=2", "")
	second := g.do("GET", "/v1beta/models?pageSize=2&pageToken="+first.get("nextPageToken").String(), "")
	if ids(first.get("models"), "name")+ids(second.get("models"), "name") != "models/alpha models/beta models/gamma " ||
		second.get("nextPageToken").Exists() {
		t.Errorf("gemini: %s, %s", first.body, second.body)
	}
	for query, n := range map[string]int{"pageSize=0": 3, "pageSize=5000": 3} {
		if r := g.do("GET", "/v1beta/models?"+query, ""); len(r.get("models").Array()) != n {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
	for _, query := range []string{"pageSize=-1", "pageSize=x", "pageToken=nope"} {
		if r := g.do("GET", "/v1beta/models?"+query, ""); r.status != 400 {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

func TestAKeySeesTheModelsItMayUse(t *testing.T) {
	g := open(t)
	g.key("narrow", func(k *identity.Key) { k.Models = []string{"b*"} })
	g.key("chat", func(k *identity.Key) { k.Scopes = []string{"chat"} })
	if r := g.do("GET", "/v1/models", "", g.as("narrow")...); ids(r.get("data"), "id") != "beta " {
		t.Errorf("%s", r.body)
	}
	want(t, g.do("GET", "/v1/models/alpha", "", g.as("narrow")...), 403, "model_not_allowed")
	want(t, g.do("GET", "/v1/models", "", g.as("chat")...), 403, "permission_denied")
	if r := g.do("GET", "/v1beta/models?key="+g.secrets["narrow"], "", "Authorization", ""); ids(r.get("models"),
		"name") != "models/beta " {
		t.Errorf("%s", r.body)
	}
	want(t, g.do("GET", "/v1/models?key="+g.secrets["narrow"], "", "Authorization", ""), 401, "missing_api_key")
}
