package media

import (
	"bytes"
	"errors"
	"mime/multipart"
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
)

func TestTheSizeOfABodyIsCheckedBeforeItsType(t *testing.T) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Content-Type", "text/plain")
	for length, status := range map[int64]int{10: 415, 11: 413} {
		r.ContentLength = length
		_, json := readJSON(w, r, 10, nil)
		_, form := ReadForm(w, r, FormLimits{Total: 10})
		_, either := isForm(w, r, 10)
		for name, err := range map[string]error{"JSON": json, "a form": form, "either": either} {
			var e *dialogue.Error
			if !errors.As(err, &e) || e.Status != status {
				t.Errorf("%d bytes, not %s: %v, want %d", length, name, err, status)
			}
		}
	}
}

// Whatever is sent as a form is read, or refused with a status of its own, and
// leaves no file behind.
func TestCompressedFormsAreRefused(t *testing.T) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.Header.Set("Content-Encoding", "gzip")
	var e *dialogue.Error
	if _, err := ReadForm(w, r, FormLimits{Total: 10}); !errors.As(err, &e) || e.Status != 415 {
		t.Errorf("got %v", err)
	}
}

func FuzzForm(f *testing.F) {
	const head = "--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"x\"\r\n\r\n"
	f.Add([]byte(head + "\x89PNG\r\n\x1a\n\r\n--b--\r\n"))
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na\xff\r\n--b--"))
	f.Add([]byte("--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b"))
	const other = "--b\r\nContent-Disposition: form-data; name=\"video\"; filename=\"x\"\r\n\r\n"
	f.Add([]byte(other + "\x00\x00\x00\x0cftypisom\x00\x00\x00\x08moov\r\n--b--\r\n"))
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"video\"\r\n\r\n{\"id\":\"v\"}\r\n--b--"))
	dir := f.TempDir()
	only := func(name string) func(string) int64 {
		return func(field string) int64 {
			if field == name {
				return 1 << 10
			}
			return 0
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		limits := FormLimits{Dir: dir, File: only("image"), Video: only("video")}
		form, err := parseForm(multipart.NewReader(bytes.NewReader(body), "b"), limits)
		if err != nil {
			var e *dialogue.Error
			if !errors.As(err, &e) || e.Status < 400 || e.Status >= 500 {
				t.Fatalf("%v", err)
			}
			return
		}
		if err := form.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheRefusalOfATextFieldNamesItsLimit(t *testing.T) {
	for _, c := range []struct {
		sizes []int
		want  string // "": the form is taken
	}{
		{[]int{maxText}, ""}, {[]int{maxText + 1}, "256 KiB"},
		{[]int{maxText, maxText, maxText, maxText}, ""}, {[]int{maxText, maxText, maxText, maxText, 1}, "1 MiB together"},
	} {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for _, size := range c.sizes {
			if err := w.WriteField("prompt", strings.Repeat("x", size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		none := func(string) int64 { return 0 }
		_, err := parseForm(multipart.NewReader(&body, w.Boundary()), FormLimits{File: none})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d: %v, want %q", c.sizes, err, c.want)
		}
	}
}
