package byterange

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRangesAreServedAsTheRFCSays(t *testing.T) {
	for asked, want := range map[string]struct {
		status int
		body   string
	}{
		"": {200, "abcdef"}, "bytes=0-2": {206, "abc"}, "BYTES=0-2": {206, "abc"}, "bytes=-2": {206, "ef"},
		"bytes=-9": {206, "abcdef"}, "bytes=-0": {416, ""}, "bytes=-000": {416, ""}, "bytes=-0, -00": {416, ""},
		"bytes=-0,0-1": {206, "ab"}, "bytes=6-": {416, ""}, "bytes=-": {416, ""}, "bytes": {200, "abcdef"},
		"lines=1-2": {200, "abcdef"}, "=0-1": {200, "abcdef"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if asked != "" {
			r.Header.Set("Range", asked)
		}
		Correct(r.Header)
		w := httptest.NewRecorder()
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("abcdef"))
		if w.Code != want.status || want.status != 416 && w.Body.String() != want.body {
			t.Errorf("Range %q: %d %q", asked, w.Code, w.Body)
		}
		if strings.Contains(asked, "-0") && w.Code == 416 && w.Header().Get("Content-Range") != "bytes */6" {
			t.Errorf("Range %q: %q", asked, w.Header().Get("Content-Range"))
		}
	}
}
