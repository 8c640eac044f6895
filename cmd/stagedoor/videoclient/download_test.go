package videoclient_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/videoclient"
)

var content = bytes.Repeat([]byte("0123456789"), 10_000)

// breaking serves content, whole after the first replies have broken off at the
// half of what is left.
type breaking struct {
	breaks  int
	noRange bool
	changes bool
	ranges  []string
}

func (b *breaking) serve(w http.ResponseWriter, r *http.Request) {
	b.ranges = append(b.ranges, r.Header.Get("Range"))
	body, from, status := content, 0, http.StatusOK
	tag := `"one"`
	if b.changes && len(b.ranges) > 1 {
		tag = `"two"`
	}
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !b.noRange && r.Header.Get("If-Range") == `"one"` {
		from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
		body, status = content[from:], http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
	}
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if len(b.ranges) <= b.breaks {
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

func TestADownloadIsWholeOrNotThere(t *testing.T) {
	for _, test := range []struct {
		name string
		b    breaking
		asks int
		bad  bool
	}{
		{"in one go", breaking{}, 1, false},
		{"broken twice", breaking{breaks: 2}, 3, false},
		{"broken, without ranges", breaking{breaks: 1, noRange: true}, 2, false},
		{"broken again and again while it moves", breaking{breaks: 8}, 9, false},
		{"broken at the same place always", breaking{breaks: 100, noRange: true}, 5, true},
		{"changed meanwhile", breaking{breaks: 1, changes: true}, 2, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, test.b.serve)
			dir := t.TempDir()
			path := filepath.Join(dir, "a.mp4")
			var moved int64
			size, err := c.Download(t.Context(),
				videoclient.Download{ID: "video_1", Path: path, Moved: func(done, _ int64) { moved = done }})
			got, read := os.ReadFile(path)
			if test.bad {
				if err == nil || !errors.Is(read, os.ErrNotExist) {
					t.Errorf("%v, the file: %v", err, read)
				}
			} else if err != nil || size != int64(len(content)) || moved != size || !bytes.Equal(got, content) {
				t.Errorf("%v, %d bytes returned, %d in the file, %d reported", err, size, len(got), moved)
			}
			if len(test.b.ranges) != test.asks {
				t.Errorf("asked for %q", test.b.ranges)
			}
			if rest, _ := filepath.Glob(filepath.Join(dir, ".*")); len(rest) > 0 {
				t.Errorf("left behind: %q", rest)
			}
		})
	}
}

func TestADownloadReplacesNothingUnasked(t *testing.T) {
	asked := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { asked++; w.Write(content) })
	path := filepath.Join(t.TempDir(), "a.mp4")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Download(t.Context(), videoclient.Download{ID: "video_1", Path: path}); !errors.Is(err, videoclient.ErrExists) || asked != 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if _, err := c.Download(t.Context(), videoclient.Download{ID: "video_1", Path: path, Replace: true}); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, content) {
		t.Errorf("%d bytes are there", len(got))
	}
	for _, bad := range []string{filepath.Dir(path), filepath.Join(path, "below"), filepath.Join(filepath.Dir(path), "none", "a.mp4")} {
		if err := videoclient.CheckDestination(bad, true); err == nil {
			t.Errorf("%s is vacant", bad)
		}
	}
}

func TestAFileThatCameMeanwhileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.mp4")
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Error(err)
		}
		w.Write(content)
	})
	_, err := c.Download(t.Context(), videoclient.Download{ID: "video_1", Path: path})
	if got, _ := os.ReadFile(path); !errors.Is(err, videoclient.ErrExists) || string(got) != "mine" {
		t.Errorf("%v, %d bytes are there", err, len(got))
	}
}

func TestWhatCannotBeDownloadedIsSaid(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"error":{"message":"the video is not ready","code":"video_not_ready"}}`))
	})
	_, err := c.Download(t.Context(), videoclient.Download{ID: "video_1", Path: filepath.Join(t.TempDir(), "a.mp4")})
	if err == nil || err.Error() != "the video is not ready" {
		t.Error(err)
	}
}
