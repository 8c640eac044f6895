package portal_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

// hits asks the search of the pages' script.
func (v *visitor) hits(text string) (names []string) {
	v.t.Helper()
	res := v.get("/search.json?" + url.Values{"q": {text}}.Encode())
	var hits []pages.Hit
	if err := json.Unmarshal([]byte(v.page), &hits); err != nil || res.StatusCode != http.StatusOK || hits == nil {
		v.t.Fatalf("%d, %v: %s", res.StatusCode, err, v.page)
	}
	for _, h := range hits {
		names = append(names, h.Kind+" "+h.Name)
	}
	return names
}

func TestTheSearchFindsWhatTheUserMaySee(t *testing.T) {
	h := newFixture(t)
	h.team()
	*h.requests = *logOf(10)
	for _, k := range []tokens.NewKey{{User: h.anna.ID, Name: "annas laptop"}, {User: h.root.ID, Name: "roots laptop"}} {
		if _, _, err := h.registry.CreateKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	anna, root := h.signedIn("anna"), h.signedIn("root")
	for _, c := range []struct{ text, anna, root string }{
		{"usa", "Page Usage", "Page Usage"}, {"spend", "", "Page Spend"},
		{"SONNET", "Model claude-sonnet-4-5", "Model claude-sonnet-4-5"}, {"anna@example", "", "User anna"},
		{"team@", "", "Group team@home"}, {"annas lap", "Key annas laptop", "Key annas laptop"}, {"roots lap", "", "Key roots laptop"},
		{"req_10", "Request req_10", "Request req_10"}, {"req_1:", "", ""}, {"nothing like it", "", ""},
		{"req_09", "", ""},
	} {
		if got := strings.Join(anna.hits(c.text), ", "); got != c.anna {
			t.Errorf("anna finds %q with %q", got, c.text)
		}
		if got := strings.Join(root.hits(c.text), ", "); got != c.root {
			t.Errorf("root finds %q with %q", got, c.text)
		}
	}
	anna.expect(anna.get("/search?q=laptop"), http.StatusOK, "annas laptop")
	anna.expect(anna.get("/search"), http.StatusOK, `href="/account/usage"`)
	if strings.Contains(anna.page, `href="/admin`) {
		t.Error("anna finds pages of administrators")
	}
	anna.expect(anna.get("/search?q=%3Cb%3E"), http.StatusOK, "Nothing found")
	stranger := h.visitor()
	stranger.sentTo(stranger.get("/search?q=x"), "/signin?next=%2Fsearch%3Fq%3Dx")
}

// One search returns few hits of each kind, whatever is typed, and a log that fails does not fail it.
func TestTheWorkOfASearchIsBounded(t *testing.T) {
	h := newFixture(t)
	*h.requests = *logOf(100)
	root := h.signedIn("root")
	if n := len(root.hits("req_00")); n > 6 {
		t.Errorf("%d hits", n)
	}
	root.hits(strings.Repeat("ä", 5000))
	root.hits("\xff\x00")
	h.requests.err = context.DeadlineExceeded
	if len(root.hits("requests")) == 0 {
		t.Error("a log that fails takes the pages from the search")
	}
}
