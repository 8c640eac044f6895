package dryrun_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/http/dryrun"
	"stagedoor/http/envelope"
)

// TestARouteWithoutADryRunRefusesOne before its handler runs, and takes a header that asks for none.
func TestARouteWithoutADryRunRefusesOne(t *testing.T) {
	for value, want := range map[string]struct {
		status int
		code   string
	}{
		"": {200, ""}, "0": {200, ""}, "False": {200, ""},
		"1": {400, "dry_run_unsupported"}, "TRUE": {400, "dry_run_unsupported"}, "yes": {400, ""}, " 1": {400, ""},
	} {
		ran := false
		h := dryrun.Refuse(func(string) envelope.Dialect { return envelope.Plain },
			func(http.ResponseWriter, *http.Request) { ran = true })
		r, w := httptest.NewRequest(http.MethodPost, "/v1/x", nil), httptest.NewRecorder()
		if value != "" {
			r.Header.Set(dryrun.Header, value)
		}
		h(w, r)
		if w.Code != want.status || ran != (want.status == 200) || !strings.Contains(w.Body.String(), want.code) {
			t.Errorf("%q: %d %s, handler ran: %v", value, w.Code, w.Body, ran)
		}
	}
}
