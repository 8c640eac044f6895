package portal_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

// TestModelsAreListedWithWhatTheyCanAndCost: a user sees the models with providers, APIs, limits and prices, finds them
// by any of these, and has a page for each with the settings of clients.
func TestModelsAreListedWithWhatTheyCanAndCost(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.expect(v.get("/account/models"), http.StatusOK, `href="/account/models/claude-sonnet-4-5"`)
	for _, text := range []string{"<bdi>anthropic</bdi></span>", `title="messages, native"`, "vision",
		"$3.00", "$15.00", "list price, not charged here", "free</td>", "$0.10 a second", "<code>odd-*</code>",
		`href="/chat?model=free"`} {
		if !strings.Contains(v.page, text) {
			t.Errorf("the list lacks %s", text)
		}
	}
	if strings.Contains(v.page, "Add model") {
		t.Error("a user who cannot add models is offered to")
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
	v.expect(v.get("/account/models?kind=video"), http.StatusOK, "/account/models/film")
	if strings.Contains(v.page, `href="/account/models/claude-sonnet-4-5"`) {
		t.Error("the models of videos have one of text")
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

// TestModelsShowWhatWasMeasured: a model has its speed, is found on the map, and is sorted by what is known of it.
func TestModelsShowWhatWasMeasured(t *testing.T) {
	h := newFixture(t)
	now := h.overview.Now()
	registry := flow.New(func() time.Time { return now })
	h.overview.Flow = registry
	for model, first := range map[string]time.Duration{"free": time.Second, "claude-sonnet-4-5": 2 * time.Second} {
		q := registry.Begin(t.Context(), flow.About{ID: "r", Model: model, Stream: true}, nil)
		q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "simulator"}})
		q.Sent(1, now)
		now = now.Add(first)
		q.Progress(1)
		now = now.Add(2 * time.Second)
		q.End(flow.Result{Usage: dialogue.Usage{OutputTotal: 84}})
		q.Record()
	}
	v := h.signedIn("root")
	v.expect(v.get("/account/models?sort=first"), http.StatusOK, "Fast and cheap is top left")
	for _, text := range []string{"2.0", `class="number rate">42<svg`, `text-anchor="start">free</text>`, "Add model"} {
		if !strings.Contains(v.page, text) {
			t.Errorf("the page lacks %s", text)
		}
	}
	table := v.page[strings.Index(v.page, "<tbody>"):]
	if strings.Index(table, "models/free") > strings.Index(table, "models/claude-sonnet-4-5") {
		t.Error("the slower model comes first")
	}
	v.expect(v.get("/account/models/free"), http.StatusOK, "Measured in the last hour")
}
