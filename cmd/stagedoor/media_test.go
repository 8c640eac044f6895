package main

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/state/blobs"
	"stagedoor/state/journal"
)

func TestContentIsBoundedBySettings(t *testing.T) {
	for mebibytes, want := range map[int]int64{0: math.MaxInt64, 1: 1 << 20, 4096: 4 << 30, math.MaxInt: math.MaxInt64} {
		if got := maxContent(mebibytes); got != want {
			t.Errorf("content_mib %d is %d bytes, want %d", mebibytes, got, want)
		}
	}
	c := config.Default()
	c.Data, c.Limits.ContentMiB = t.TempDir(), 1
	s, err := openStorage(t.Context(), c, journal.NewMemory())
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20+1)
	if _, err := s.content.Put("a", strings.NewReader(large), "image/png", 1<<30, time.Now().Add(time.Hour)); !errors.Is(err, blobs.ErrFull) {
		t.Errorf("more than there may be: %v", err)
	}
}

// TestModelNamesOfPicturesAndVideosAreShort holds that a model's name of more than 256 characters
// is refused by every route of pictures and videos that takes one, as JSON and as a form.
func TestModelNamesOfPicturesAndVideosAreShort(t *testing.T) {
	const key = "sd-names"
	c := config.Default()
	c.Keys = []config.Key{{Key: key, Name: "names"}}
	g, err := assemble(t.Context(), c, "http://127.0.0.1", slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(t.Context())
	for path, rest := range map[string]string{
		"/v1/images/generations": `"prompt":"hi"`,
		"/v1/images/edits":       `"prompt":"hi","images":[{"image_url":"data:image/png;base64,AA=="}]`,
		"/v1/videos":             `"prompt":"hi"`,
	} {
		name := strings.Repeat("é", 257)
		send := func(kind, body string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Authorization", "Bearer "+key)
			w := httptest.NewRecorder()
			g.server.Handler().ServeHTTP(w, r)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"param":"model"`) {
				t.Errorf("%s, %s: got %d %.200s, want 400 that names model", path, kind, w.Code, w.Body)
			}
		}
		send("application/json", `{"model":"`+name+`",`+rest+`}`)
		if path != "/v1/images/generations" {
			field := func(name, value string) string {
				return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
			}
			send("multipart/form-data; boundary=b", field("model", name)+field("prompt", "hi")+"--b--\r\n")
		}
	}
}
