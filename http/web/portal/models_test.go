package portal_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestModelsAreListedWithWhatTheyCanAndCost: a user sees the models with providers, APIs, limits and prices, finds them
// by any of these, and has a page for each with the settings of clients.
func TestModelsAreListedWithWhatTheyCanAndCost(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.expect(v.get("/account/models"), http.StatusOK, `href="/account/models/claude-sonnet-4-5"`)
	for _, text := range []string{"<bdi>anthropic</bdi>, <bdi>simulator</bdi>", `title="messages, native"`, "vision",
		"$3.00", "$15.00", "list price, not charged here", "free</td>", "$0.10 a second", "<code>odd-*</code>",
		`href="/chat?model=free"`} {
		if !strings.Contains(v.page, text) {
			t.Errorf("the list lacks %s", text)
		}
	}
	if strings.Contains(v.page, `href="/chat?model=film"`) {
		t.Error("a model of videos is offered to the chat")
	}
	for query, want := range map[string]string{"CLAUDE": "claude-sonnet-4-5", "vision": "claude-sonnet-4-5",
		"simulator": "film", "zzz": "No models found"} {
		v.expect(v.get("/account/models?q="+query), http.StatusOK, want)
		if query == "vision" && strings.Contains(v.page, "/account/models/film") {
			t.Errorf("%s finds a model that does not have it", query)
		}
	}
	v.expect(v.get("/account/models/claude-sonnet-4-5"), http.StatusOK, "the list of models 20")
	v.expect(v.get("/account/models/odd-one"), http.StatusOK, "No price is known")
	v.expect(v.get("/account/models/odd-one"), http.StatusOK, "aider --model openai/odd-one")
	v.expect(v.get("/account/models/none"), http.StatusNotFound, "Not found")
	v.expect(v.get("/chat?model=odd-one"), http.StatusOK, `value="odd-one"`)
}

// TestModelsThatACeilingForbidsAreNotListed: neither the list nor the page of a model shows them.
func TestModelsThatACeilingForbidsAreNotListed(t *testing.T) {
	h := newFixture(t)
	root := h.signedIn("root")
	path := fmt.Sprintf("/admin/users/%d", h.anna.ID)
	root.get(path)
	root.sentTo(root.post(path+"/ceiling", "scopes_rule", "all", "models_rule", "some", "models", "fr*", "budget", "",
		"window", "total", "create_keys", "yes"), path+"?done=ceiling_changed")
	v := h.signedIn("anna")
	v.expect(v.get("/account/models"), http.StatusOK, `href="/account/models/free"`)
	if strings.Contains(v.page, "claude-sonnet") {
		t.Error("a forbidden model is listed")
	}
	v.expect(v.get("/account/models/claude-sonnet-4-5"), http.StatusNotFound, "Not found")
}
