package portal_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

var liveToken = regexp.MustCompile(`data-token="([^"]*)"`)

func TestThePageOfVideosIsForEverybody(t *testing.T) {
	h := newFixture(t)
	v := h.visitor()
	v.expect(v.get("/live"), http.StatusOK, `data-token=""`)
	if !strings.Contains(v.page, "Gateway key") || strings.Contains(v.page, "Sign out") {
		t.Errorf("the page without a user is\n%s", v.page)
	}
	v = h.signedIn("anna")
	res := v.get("/live")
	v.expect(res, http.StatusOK, "Sign out")
	if find(liveToken, v.page) == "" || !strings.Contains(v.page, `<option value="film" label="$0.10 a second"`) {
		t.Errorf("the page of anna is\n%s", v.page)
	}
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") ||
		!strings.Contains(policy, "connect-src 'self';") {
		t.Errorf("policy %q", policy)
	}
	res = h.visitor().get("/signin/link")
	if policy := res.Header.Get("Content-Security-Policy"); strings.Contains(policy, "script") {
		t.Errorf("a page without a script has policy %q", policy)
	}
}

func TestThePageActsForWhoIsSignedInAndItsOwnFormsOnly(t *testing.T) {
	h := newFixture(t)
	anna, root := h.signedIn("anna"), h.signedIn("root")
	anna.get("/live")
	token := find(liveToken, anna.page)
	anna.expect(anna.get("/chat"), http.StatusOK, `<option value="free" label="free"`)
	asks := find(liveToken, anna.page)
	anna.expect(anna.get("/images"), http.StatusOK, `<option value="still" label="$0.04 a picture" data-exact="1">`)
	for _, inexact := range []string{`"print" label="$0.05 a picture">`, `"etching" label="$0.06 a picture">`} {
		anna.expect(anna.get("/images"), http.StatusOK, inexact) // a fallback is dearer, and tokens have a price too
	}
	makes := find(liveToken, anna.page)
	root.get("/live")
	foreign := find(liveToken, root.page)
	for _, test := range []struct {
		name, method, path, token string
		visitor                   *visitor
		header                    http.Header
		status                    int
		served                    string // "": nothing is
	}{
		{"list", "GET", "/live/videos?limit=2", "", anna, nil, 204,
			"GET /v1/videos?limit=2 by anna may [videos]: <nil>"},
		{"content", "GET", "/live/videos/video_1/content?variant=thumbnail", "", anna, nil, 204,
			"GET /v1/videos/video_1/content?variant=thumbnail by anna may [videos]: <nil>"},
		{"receipt", "GET", "/live/receipts/video_1", "", anna, nil, 204,
			"GET /v1/receipts/video_1 by anna may [videos]: <nil>"},
		{"create", "POST", "/live/videos", token, anna, nil, 204, "POST /v1/videos by anna may [videos]: <nil>"},
		{"remix", "POST", "/live/videos/video_1/remix", token, anna, nil, 204,
			"POST /v1/videos/video_1/remix by anna may [videos]: <nil>"},
		{"delete", "DELETE", "/live/videos/video_1", token, anna, nil, 204,
			"DELETE /v1/videos/video_1 by anna may [videos]: <nil>"},
		{"a key beside the session", "GET", "/live/videos", "", anna, http.Header{"Authorization": {"Bearer sd-other"}},
			204, "GET /v1/videos by anna may [videos]: <nil>"},
		{"no token", "POST", "/live/videos", "", anna, nil, 403, ""},
		{"another session's token", "POST", "/live/videos", foreign, anna, nil, 403, ""},
		{"another site", "POST", "/live/videos", token, anna, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403, ""},
		{"delete without a token", "DELETE", "/live/videos/video_1", "", anna, nil, 403, ""},
		{"signed out", "GET", "/live/videos", "", h.visitor(), nil, 401, ""},
		{"signed out, with a token", "POST", "/live/videos", token, h.visitor(), nil, 401, ""},
		{"signed out, with a key", "GET", "/live/videos", "", h.visitor(),
			http.Header{"Authorization": {"Bearer sd-other"}},
			401, ""},
		{"what else there is", "POST", "/live/chat/completions", token, anna, nil, 404, ""},
		{"a question", "POST", "/chat/api/chat/completions", asks, anna, nil, 204,
			"POST /v1/chat/completions by anna may [chat responses]: <nil>"},
		{"its receipt", "GET", "/chat/api/receipts/req_1", "", anna, nil, 204,
			"GET /v1/receipts/req_1 by anna may [chat responses]: <nil>"},
		{"a kept chat", "POST", "/chat/api/conversations", asks, anna, nil, 204,
			"POST /v1/conversations by anna may [chat responses]: <nil>"},
		{"its items", "GET", "/chat/api/conversations/conv_1/items", "", anna, nil, 204,
			"GET /v1/conversations/conv_1/items by anna may [chat responses]: <nil>"},
		{"its deletion", "DELETE", "/chat/api/conversations/conv_1", asks, anna, nil, 204,
			"DELETE /v1/conversations/conv_1 by anna may [chat responses]: <nil>"},
		{"its deletion without a token", "DELETE", "/chat/api/conversations/conv_1", "", anna, nil, 403, ""},
		{"a picture", "POST", "/images/api/images/generations", makes, anna, nil, 204,
			"POST /v1/images/generations by anna may [images responses]: <nil>"},
		{"an edit", "POST", "/images/api/images/edits", makes, anna, nil, 204,
			"POST /v1/images/edits by anna may [images responses]: <nil>"},
		{"a picture without a token", "POST", "/images/api/images/generations", "", anna, nil, 403, ""},
		{"a picture with the token of the chat", "POST", "/images/api/images/generations", asks, anna, nil, 403, ""},
		{"a picture without a session", "POST", "/images/api/images/generations", makes, h.visitor(), nil, 401, ""},
		{"a list without a session", "GET", "/images/api/conversations", "", h.visitor(), nil, 401, ""},
		{"a price without a session", "GET", "/live/price?model=film&seconds=4", "", h.visitor(), nil, 401, ""},
		{"a queue without a session", "GET", "/live/queue", "", h.visitor(), nil, 401, ""},
		{"a question without a token", "POST", "/chat/api/chat/completions", "", anna, nil, 403, ""},
		{"a question with the token of another page", "POST", "/chat/api/chat/completions", token, anna, nil, 403, ""},
		{"a question without a session", "POST", "/chat/api/chat/completions", asks, h.visitor(), nil, 401, ""},
		{"another route with the token of the chat", "POST", "/chat/api/responses", asks, anna, nil, 404, ""},
		{"edits", "POST", "/live/videos/edits", token, anna, nil, 404, ""},
	} {
		h.forwards = nil
		r := httptest.NewRequest(test.method, origin+test.path, nil)
		for name, values := range test.header {
			r.Header[name] = values
		}
		if test.token != "" {
			r.Header.Set("X-Stagedoor-Form", test.token)
		}
		for name, value := range test.visitor.cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		want := []string{test.served}
		if test.served == "" {
			want = nil
		}
		if got := strings.ReplaceAll(strings.Join(h.forwards, "\n"), origin, ""); w.Code != test.status ||
			got != strings.Join(want, "\n") {
			t.Errorf("%s: %d, want %d; served %q, want %q", test.name, w.Code, test.status, got, want)
		}
	}
}
