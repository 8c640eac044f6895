package transfer_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// TestAFormHasItsFieldsAndFilesWithoutTheClientsNames, as the standard library reads it, and as long as it says.
func TestAFormHasItsFieldsAndFilesWithoutTheClientsNames(t *testing.T) {
	s := &store{files: map[string]string{"a": "aaaa"}}
	f := transfer.NewForm(s.Open)
	f.Field("prompt", "a cat\r\n--x")
	f.Upload("input", &video.File{ID: "a", Name: "my secret.png", Type: "image/png", Size: 4})
	f.Upload("other", &video.File{ID: "a", Type: "image/x-new", Size: 4})
	f.End()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || int64(len(text)) != f.Len() {
		t.Fatalf("%d bytes of %d, %v", len(text), f.Len(), err)
	}
	if err := r.Close(); err != nil || s.open.Load() != 0 {
		t.Errorf("%d files are open, %v", s.open.Load(), err)
	}
	if bytes.Contains(text, []byte("secret")) {
		t.Error("the client's name of the file is sent")
	}
	kind, parameters, err := mime.ParseMediaType(f.ContentType())
	if err != nil || kind != "multipart/form-data" {
		t.Fatalf("%q: %v", f.ContentType(), err)
	}
	parts := multipart.NewReader(bytes.NewReader(text), parameters["boundary"])
	for _, want := range [][4]string{{"prompt", "", "", "a cat\r\n--x"}, {"input", "input.png", "image/png", "aaaa"},
		{"other", "other", "image/x-new", "aaaa"}} {
		p, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(p)
		got := [4]string{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), string(content)}
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := parts.NextPart(); err != io.EOF {
		t.Errorf("behind the last part: %v", err)
	}
}

// TestIDsOfProvidersThatWouldChangeAnAddressAreRefused, because they become part of the path of a call.
func TestIDsOfProvidersThatWouldChangeAnAddressAreRefused(t *testing.T) {
	for id, want := range map[string]bool{
		"video_123": true, "models/veo-3/operations/a:b~c.d": true, strings.Repeat("x", 512): true,
		"": false, "/": false, "a//b": false, "a/": false, "/a": false, ".": false, "a/../b": false, "..": false,
		"a b": false, "a?b": false, "a#b": false, "a%2fb": false, "a\\b": false, "ä": false, "a\n": false,
		strings.Repeat("x", 513): false,
	} {
		if got := transfer.ValidID(id); got != want {
			t.Errorf("%.40q is valid: %v", id, got)
		}
	}
	h := transfer.DownloadHeader("bytes=1-2")
	if h.Get("Range") != "bytes=1-2" || h.Get("Accept-Encoding") != "identity" ||
		transfer.DownloadHeader("").Get("Range") != "" {
		t.Errorf("headers of a download: %v", h)
	}
}
