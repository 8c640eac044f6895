package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAliasesAreWholeSegmentsAndTheLongestCounts(t *testing.T) {
	h := aliased(
		[]Alias{{"/vendor", "/imagegen"}, {"/vendor/v1/vendor-v3", "/imagegen/v1/imagegen-v3"}},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, r.URL.RequestURI())
		}),
	)
	for path, want := range map[string]string{
		"/vendor/generate":           "/imagegen/generate",
		"/vendor/generate?a=%20b":    "/imagegen/generate?a=%20b",
		"/vendor":                    "/imagegen",
		"/vendor/v1/vendor-v3/remix": "/imagegen/v1/imagegen-v3/remix",
		"/vendor/v1/vendor-v4/remix": "/imagegen/v1/vendor-v4/remix",
		"/vendors/generate":          "/vendors/generate",
		"/imagegen/generate":         "/imagegen/generate",
		"/v1/vendor/generate":        "/v1/vendor/generate",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, path, nil)
		h.ServeHTTP(w, r)
		if got := w.Body.String(); got != want {
			t.Errorf("%s: served as %s, want %s", path, got, want)
		}
		if r.URL.RequestURI() != path {
			t.Errorf("%s: the server's own request became %s", path, r.URL.RequestURI())
		}
	}
}
