package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/http/overload"
)

// The handlers are not called, so a reply with 405 and the methods of the route shows that the path was found.
func TestBaseAddressesWorkWithAndWithoutAVersion(t *testing.T) {
	s, _ := newServer(t, nil)
	for path, served := range map[string]string{
		"/chat/completions":                 "/v1/chat/completions",
		"/v1/v1/chat/completions":           "/v1/chat/completions",
		"/v1/v1/v1/chat/completions":        "/v1/chat/completions",
		"/v1beta/chat/completions":          "/v1/chat/completions",
		"/v1//chat/completions":             "/v1/chat/completions",
		"//v1/chat/completions":             "/v1/chat/completions",
		"//chat/completions":                "/v1/chat/completions",
		"/responses":                        "/v1/responses",
		"/responses/resp_1":                 "/v1/responses/resp_1",
		"/v1/v1/responses/input_tokens":     "/v1/responses/input_tokens",
		"/messages":                         "/v1/messages",
		"/v1/v1/messages/count_tokens":      "/v1/messages/count_tokens",
		"/completions":                      "/v1/completions",
		"/models":                           "/v1/models",
		"/models/a/b":                       "/v1/models/a/b",
		"/v1/v1beta/models/m:countTokens":   "/v1beta/models/m:countTokens",
		"/v1beta/v1beta/models/a/b:predict": "/v1beta/models/a/b:predict",
		"/models/m:generateContent":         "/v1/models/m:generateContent",
		"/conversations":                    "/v1/conversations",
	} {
		if located, _ := s.router.locate("POST", path); located != served {
			t.Errorf("%s: located at %s", path, located)
		}
		got, want := get(s, httptest.NewRequest("PUT", path, nil)), get(s, httptest.NewRequest("PUT", served, nil))
		if got.Code != 405 || got.Header().Get("Allow") != want.Header().Get("Allow") || got.Body.String() != want.Body.String() {
			t.Errorf("%s: %d %v %s", path, got.Code, got.Header(), got.Body)
		}
	}
}

func TestPathsOfStrangersAreLocatedAtABoundedCost(t *testing.T) {
	s, _ := newServer(t, nil)
	for _, path := range []string{
		strings.Repeat("/v1", 5) + "/models",
		strings.Repeat("/v1", 5000) + "/models",
		"/models/" + strings.Repeat("a/", 600),
	} {
		if located, found := s.router.locate("GET", path); found {
			t.Errorf("a path of %d bytes is located at one of %d", len(path), len(located))
		}
		if w := get(s, httptest.NewRequest("GET", path, nil)); w.Code != 404 {
			t.Errorf("a path of %d bytes: %d", len(path), w.Code)
		}
	}
}

func TestAnEncodedSlashDividesNoId(t *testing.T) {
	s, _ := newServer(t, nil)
	for _, path := range []string{
		"/responses/resp_1%2Fcancel", "/v1/v1/responses/resp_1%2fcancel", "/conversations/c%2Fitems",
	} {
		if w := get(s, httptest.NewRequest("PUT", path, nil)); w.Code != 404 {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}

func TestAPathWithoutItsVersionGetsTheErrorsOfItsShape(t *testing.T) {
	full := overload.New(overload.Limits{Requests: 1})
	s, _ := newServer(t, func(o *Options) { o.Overload = full })
	refused := func() *httptest.ResponseRecorder { return get(s, httptest.NewRequest("POST", "/v1/v1/messages", nil)) }
	unauthorized := refused()
	if _, _, err := full.Enter(httptest.NewRequest("GET", "/", nil)); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*httptest.ResponseRecorder{unauthorized, refused(), get(s, httptest.NewRequest("PUT", "/messages", nil))} {
		if !strings.HasPrefix(w.Body.String(), `{"type":"error","error":{`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

func TestAnUnknownPathNamesTheRightOne(t *testing.T) {
	s, _ := newServer(t, nil)
	for path, want := range map[string]string{
		"/v1/chat":                                 "/v1/chat/completions",
		"/v1/chat/completion":                      "/v1/chat/completions",
		"/v1/chat/completions/":                    "/v1/chat/completions",
		"/v1/chat/completions/chat/completions":    "/v1/chat/completions",
		"/openai/v1/chat/completions":              "/v1/chat/completions",
		"/openai/deployments/gpt/chat/completions": "/v1/chat/completions",
		"/v1/complete":                             "/v1/completions",
		"/V1/models":                               "/v1/models",
		"/v1/response":                             "/v1/responses",
		"/v1/message":                              "/v1/messages",
		"/v1/messages/count-tokens":                "/v1/messages/count_tokens",
		"/v1/model":                                "/v1/models",
		"/nowhere":                                 "",
		"/v1/audio/speech":                         "",
		"/favicon.ico":                             "",
		"/v1/":                                     "",
		"/" + strings.Repeat("chat/completions", 99): "/v1/chat/completions",
	} {
		w := get(s, httptest.NewRequest("POST", path, nil))
		message, _ := envelopeOf(t, path, w)["message"].(string)
		_, got, _ := strings.Cut(message, ", did you mean ")
		if w.Code != 404 || strings.TrimSuffix(got, "?") != want {
			t.Errorf("%.60s: %d, %q, want %q", path, w.Code, message, want)
		}
	}
}
