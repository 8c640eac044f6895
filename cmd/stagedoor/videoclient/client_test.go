package videoclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/cmd/stagedoor/videoclient"
)

const running = `{"id":"video_1","object":"video","model":"video-2","status":"in_progress","progress":%d,"created_at":10,"completed_at":null,"expires_at":null,` +
	`"prompt":"p","size":"720x1280","seconds":"4","remixed_from_video_id":null,"error":null}`

const completed = `{"id":"video_1","object":"video","model":"video-2","status":"completed","progress":100,"created_at":10,"completed_at":70,"expires_at":900,` +
	`"prompt":"p","size":"720x1280","seconds":"4","remixed_from_video_id":null,"error":null}`

func serve(t *testing.T, h http.HandlerFunc) *videoclient.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := videoclient.New(s.URL+"/", "sd-1")
	if err != nil {
		t.Fatal(err)
	}
	videoclient.Hurry(c)
	return c
}

func TestAddressesOfGateways(t *testing.T) {
	for address, good := range map[string]bool{"http://127.0.0.1:8080": true, "https://gateway.example/below": true, "": false, "127.0.0.1:8080": false,
		"ftp://x": false, "http://": false, "http://user:secret@x": false, "http://x?key=1": false, "://": false} {
		if _, err := videoclient.New(address, "k"); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestACreationIsRepeatedUnderOneKey(t *testing.T) {
	var keys, bodies []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		keys, bodies = append(keys, r.Header.Get("Idempotency-Key")), append(bodies, string(body))
		switch len(keys) {
		case 1:
			panic(http.ErrAbortHandler) // the line breaks: who knows whether the job was made
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprintf(w, running, 0)
		}
	})
	waits := 0
	c.Waits = func(error, time.Duration) { waits++ }
	j, err := c.Create(t.Context(), videoclient.VideoOptions{Prompt: "p", Size: "1280x720"})
	if err != nil || j.ID != "video_1" || waits != 2 {
		t.Fatalf("%+v %v after %d waits", j, err, waits)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] || bodies[0] != bodies[2] || bodies[0] != `{"prompt":"p","size":"1280x720"}` {
		t.Errorf("keys %q, bodies %q", keys, bodies)
	}
}

func TestARefusalIsFinalAndInTheGatewaysWords(t *testing.T) {
	asked := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Authorization") != "Bearer sd-1" {
			t.Errorf("headers %v", r.Header)
		}
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":{"message":"seconds must be 4, 8 or 12","code":"invalid_value"}}`)
	})
	_, err := c.Create(t.Context(), videoclient.VideoOptions{Prompt: "p"})
	var e *videoclient.Error
	if !errors.As(err, &e) || e.Status != 400 || e.Code != "invalid_value" || e.Error() != "seconds must be 4, 8 or 12" || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}

func TestWhatIsNoGatewayIsSaidToBeNone(t *testing.T) {
	for _, body := range []string{"<html>", "{}", "", "[]"} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
		if _, err := c.Get(t.Context(), "video_1"); err == nil || !strings.Contains(err.Error(), "no gateway") {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestTheKeyFollowsNoRedirect(t *testing.T) {
	stolen := false
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen = true }))
	defer thief.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.Get(t.Context(), "video_1"); err == nil || stolen {
		t.Errorf("%v, stolen %t", err, stolen)
	}
}

func TestAReferenceIsSentAsAFile(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n"), 1, 2, 3)
	path := filepath.Join(t.TempDir(), "first.png")
	if err := os.WriteFile(path, png, 0o600); err != nil {
		t.Fatal(err)
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil {
			t.Error(err)
		}
		form, err := multipart.NewReader(r.Body, params["boundary"]).ReadForm(1 << 20)
		if err != nil {
			t.Error(err)
			return
		}
		f := form.File["input_reference"][0]
		if form.Value["prompt"][0] != "p" || form.Value["size"] != nil || f.Filename != "first.png" || f.Header.Get("Content-Type") != "image/png" || f.Size != int64(len(png)) {
			t.Errorf("form %v, file %v", form.Value, f)
		}
		fmt.Fprintf(w, running, 0)
	})
	if _, err := c.Create(t.Context(), videoclient.VideoOptions{Prompt: "p", Reference: path}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{filepath.Dir(path), path + ".none"} {
		if _, err := c.Create(t.Context(), videoclient.VideoOptions{Prompt: "p", Reference: bad}); err == nil {
			t.Errorf("%s was sent", bad)
		}
	}
}

func TestWatchingGoesOnWhereTheLineBroke(t *testing.T) {
	var last []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		last = append(last, r.Header.Get("Last-Event-Id"))
		w.Header().Set("Content-Type", "text/event-stream")
		switch len(last) {
		case 1:
			fmt.Fprintf(w, "retry: 2000\n\n: keep-alive\n\nevent: snapshot\nid: 7\ndata: "+running+"\n\nevent: progress\nid: 8\ndata: "+running+"\n\n", 3, 9)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 2:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadGateway)
		case 3: // an event of a later version, and a new one that breaks off
			fmt.Fprintf(w, "event: weather\ndata: rain\n\nevent: progress\nid: 9\ndata: "+running+"\n\nevent: terminal\nid: 10\ndata: {\"id", 50)
		default:
			fmt.Fprintf(w, "event: terminal\nid: 10\ndata: %s\n\n", completed)
		}
	})
	var seen []int
	err := c.Watch(t.Context(), "video_1", func(j *videoclient.Job) { seen = append(seen, j.Progress) })
	if err != nil || !slices.Equal(seen, []int{3, 9, 50, 100}) || !slices.Equal(last, []string{"", "8", "8", "9"}) {
		t.Errorf("%v, saw %v, resumed from %q", err, seen, last)
	}
}

func TestWatchingEndsWithTheJob(t *testing.T) {
	for _, test := range []struct {
		name, events, want string
		status             int
	}{
		{"that is unknown", `{"error":{"message":"there is no video"}}`, "there is no video", 404},
		{"that is deleted", "event: deleted\ndata: {\"id\":\"video_1\",\"object\":\"video.deleted\",\"deleted\":true}\n\n", "was deleted", 200},
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(test.status)
			io.WriteString(w, test.events)
		})
		err := c.Watch(t.Context(), "video_1", func(*videoclient.Job) { t.Error("a job was reported") })
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("a job %s: %v", test.name, err)
		}
	}
}

func TestAJobThatHadEndedIsAskedFor(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		io.WriteString(w, completed)
	})
	var seen []string
	err := c.Watch(t.Context(), "video_1", func(j *videoclient.Job) { seen = append(seen, j.Status) })
	if err != nil || !slices.Equal(seen, []string{"completed"}) {
		t.Errorf("%v, saw %q", err, seen)
	}
}

func TestWatchingStopsWhenNobodyWatches(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: snapshot\nid: 7\ndata: "+running+"\n\n", 3)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Watch(ctx, "video_1", func(*videoclient.Job) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestALineThatSaysNothingIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive, err := videoclient.ReadSilently(t.Context())
		if !errors.Is(err, videoclient.ErrSilent) || alive < 45*time.Second || alive > 46*time.Second {
			t.Errorf("%v after %s", err, alive)
		}
	})
}

func TestUnfinishedLooksThroughThePages(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "" {
			fmt.Fprintf(w, `{"object":"list","data":[%s,%s],"last_id":"video_1","has_more":true}`, completed,
				fmt.Sprintf(running, 1))
			return
		}
		fmt.Fprintf(w, `{"object":"list","data":[%s],"last_id":"video_0","has_more":false}`,
			strings.ReplaceAll(fmt.Sprintf(running, 2), "video_1", "video_0"))
	})
	jobs, err := c.Unfinished(t.Context())
	if err != nil || len(jobs) != 2 || jobs[0].ID != "video_1" || jobs[1].ID != "video_0" {
		t.Errorf("%v %v", jobs, err)
	}
}
