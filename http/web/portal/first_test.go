package portal_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// TestFirstPageShowsAddressAndKeyAndAnswers: before there is a user, the page at / has the address and the first key in
// the settings of every client, and a browser without a script gets the answer to its question.
func TestFirstPageShowsAddressAndKeyAndAnswers(t *testing.T) {
	h := newEmptyFixture(t)
	h.firstKey, h.reply = "sd-first", `{"choices": [{"message": {"content": "a <b>ghost</b> light"}}]}`
	v := h.visitor()
	res := v.get("/")
	v.expect(res, http.StatusOK, `<code id="key">sd-first</code>`)
	for _, text := range []string{"<code>" + origin + "</code>", "ANTHROPIC_AUTH_TOKEN=sd-first",
		"<option selected>gpt-4",
		"ANTHROPIC_BASE_URL=" + origin} {
		if !strings.Contains(v.page, text) {
			t.Errorf("the page lacks %s", text)
		}
	}
	if res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("caches may keep the key: %v", res.Header)
	}
	v.expect(v.post("/ask", "question", "why?", "model", "small"), http.StatusOK, "a &lt;b&gt;ghost&lt;/b&gt; light")
	v.expect(v.get("/"), http.StatusOK, "streams in here")
	h.reply = `{"error": {"message": "no such <model>"}}`
	v.expect(v.post("/ask", "question", "why?", "model", "none"), http.StatusOK, "no such &lt;model&gt;")
	if len(h.forwards) != 2 || !strings.HasPrefix(h.forwards[0], "POST /v1/chat/completions") {
		t.Errorf("the API got %q", h.forwards)
	}
	v.get("/")
	v.expect(v.post("/ask", "token", "x", "question", "why?"), http.StatusForbidden, "start again")
	if h.firstKey = ""; len(h.forwards) != 2 {
		t.Error("a form of another browser was answered")
	}
}

// TestTheQuestionOfTheFirstPageKeepsItsRequestID: without an id, neither the log nor a receipt could be found for it.
func TestTheQuestionOfTheFirstPageKeepsItsRequestID(t *testing.T) {
	h := newEmptyFixture(t)
	h.firstKey = "sd-first"
	v := h.visitor()
	v.get("/")
	v.post("/ask", "question", "why?", "model", "small")
	if len(h.ids) != 1 || h.ids[0] != "id of /ask" {
		t.Errorf("the API was asked with the ids %q", h.ids)
	}
}

// TestFirstPageWithoutTheKeyOffersNoQuestion: a browser that may not see the key gets the settings without it.
func TestFirstPageWithoutTheKeyOffersNoQuestion(t *testing.T) {
	v := newEmptyFixture(t).visitor()
	v.expect(v.get("/"), http.StatusOK, "YOUR_KEY")
	if strings.Contains(v.page, `id="ask"`) || strings.Contains(v.page, `id="key"`) {
		t.Errorf("the page is\n%s", v.page)
	}
}

// TestFirstPageIsTheSignInOnceThereAreUsers: nothing of the first page is shown then.
func TestFirstPageIsTheSignInOnceThereAreUsers(t *testing.T) {
	h := newFixture(t)
	h.firstKey = "sd-first"
	h.visitor().sentTo(h.visitor().get("/"), "/signin")
	v := h.signedIn("anna")
	v.sentTo(v.get("/"), "/account")
	v.get("/account")
	v.expect(v.post("/ask", "question", "why?"), http.StatusForbidden, "start again")
}

// TestFirstPageShowsNoHostileHost: the header Host is chosen by clients and readers copy the address into shells.
func TestFirstPageShowsNoHostileHost(t *testing.T) {
	h := newEmptyFixture(t)
	for host, want := range map[string]string{"box.local:8080": "http://box.local:8080",
		"[::1]:8080":   "http://[::1]:8080",
		"a'$(reboot)'": origin, `a"><b>`: origin, "a b": origin, "-a": origin, strings.Repeat("a", 300): origin} {
		r := httptest.NewRequest(http.MethodGet, origin+"/", nil)
		r.Host, r.TLS = host, nil
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		if body := w.Body.String(); !strings.Contains(body, "<code>"+want+"</code>") ||
			!strings.Contains(body, "ANTHROPIC_BASE_URL="+want+"\n") || strings.Contains(body, "reboot") {
			t.Errorf("%q: not %s", host, want)
		}
	}
}

// TestEveryLinkOfTheFirstPageLeadsSomewhere: to the chat and the models over the sign-in, which says how to get the
// first account as long as there is none.
func TestEveryLinkOfTheFirstPageLeadsSomewhere(t *testing.T) {
	h := newEmptyFixture(t)
	h.firstKey = "sd-first"
	v := h.visitor()
	v.expect(v.get("/"), http.StatusOK, "Next steps")
	first := v.page
	for _, path := range []string{"/signin?next=/chat", "/signin?next=/account/models", "/signin?next=/admin", "/live",
		"/docs/README.md", "/docs/quickstart.md", "/docs/clients/README.md"} {
		if !strings.Contains(first, `href="`+path+`"`) {
			t.Errorf("there is no link to %s", path)
		}
		want := ""
		if strings.HasPrefix(path, "/signin") {
			want = "There is no account yet. The one-time link"
		}
		v.expect(v.get(path), http.StatusOK, want)
	}
	h = newFixture(t)
	v = h.visitor()
	if v.expect(v.get("/signin?next=/chat"), http.StatusOK, ""); strings.Contains(v.page, "no account yet") {
		t.Error("the sign-in page offers a first account, and there are accounts")
	}
	v.sentTo(v.post("/signin", "username", "anna", "password", password, "next", "/chat"), "/chat")
}

// TestDocumentsAreServedAsText: the pages link to documents, which are in the program.
func TestDocumentsAreServedAsText(t *testing.T) {
	v := newEmptyFixture(t).visitor()
	for path, text := range map[string]string{"/docs/": "# ", "/docs/clients/README.md": "# Clients",
		"/docs/errors.md": "# "} {
		res := v.get(path)
		v.expect(res, http.StatusOK, text)
		if res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s is %s", path, res.Header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/docs/none.md", "/docs/docs.go", "/docs/..%2fREADME.md", "/docs/clients"} {
		v.expect(v.get(path), http.StatusNotFound, "Not found")
	}
}

// TestConnectShowsTheSettingsOfEveryClient: the page of a signed-in user has them without a key, the page of a new key
// with it. The first request with a key is shown, and those of pages are not.
func TestConnectShowsTheSettingsOfEveryClient(t *testing.T) {
	h := newFixture(t)
	v := h.signedIn("anna")
	v.expect(v.get("/connect"), http.StatusOK, "ANTHROPIC_AUTH_TOKEN=YOUR_KEY")
	log := func(key, owner string) {
		h.requests.all = append(h.requests.all, requestlog.Record{At: 1, Began: time.Now(), Key: key, KeyName: "laptop",
			App: "curl/8.5", Owner: string(state.OwnerOf("", owner))})
	}
	log("chat_1", "anna")
	log("key_2", "root")
	v.expect(v.get("/connect"), http.StatusOK, "Waiting for the first request")
	log("key_1", "anna")
	v.expect(v.get("/connect"), http.StatusOK, "Requests arrive")
	v.expect(v.get("/connect"), http.StatusOK, "<bdi>curl/8.5</bdi>")
	h.requests.off = true
	if v.get("/connect"); strings.Contains(v.page, "Waiting") || strings.Contains(v.page, "data-fresh") {
		t.Error("the page waits for a request although none is logged")
	}
	h.requests.off = false
	v.get("/account/keys")
	v.expect(v.post("/account/keys", "name", "laptop"), http.StatusOK, "ANTHROPIC_AUTH_TOKEN=sd-")
}
