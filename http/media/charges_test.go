package media_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client that leaves an image stream pays for the picture once it has a partial image, and
// nothing before that.
func TestClientThatLeavesAnImageStreamPaysForWhatWasDelivered(t *testing.T) {
	partial := "data: {\"type\":\"image_generation.partial_image\",\"partial_image_index\":0,\"b64_json\":\"" +
		onePixel + "\"}\n\n"
	for name, tt := range map[string]struct {
		events string
		want   int64
	}{
		"after a partial image":   {partial, 40_000},
		"before the first output": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			accepted := make(chan struct{})
			g := open(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, tt.events)
				w.(http.Flusher).Flush()
				close(accepted)
				<-r.Context().Done()
			})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			q, err := http.NewRequestWithContext(ctx, "POST", g.url+"/v1/images/generations",
				strings.NewReader(`{"prompt":"a cat","model":"gen-image-1","stream":true,"partial_images":2}`))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", "Bearer sd-test")
			q.Header.Set("Content-Type", "application/json")
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				res, err := http.DefaultClient.Do(q)
				if err != nil {
					return
				}
				defer res.Body.Close()
				for lines := bufio.NewScanner(res.Body); lines.Scan(); {
					if strings.Contains(lines.Text(), "partial_image") {
						leave()
					}
				}
			}()
			<-accepted
			if tt.events == "" {
				leave()
			}
			<-ended
			if got := g.spent(); got != tt.want {
				t.Errorf("charged %d, want %d", got, tt.want)
			}
		})
	}
}

// A video that is being made cannot be deleted, so its client pays for it when it is finished.
func TestVideoUnderWayCannotBeDeletedAndIsCharged(t *testing.T) {
	t.Parallel()
	g, _ := openStudio(t, 300*time.Millisecond)
	id := g.begun("/v1/videos", `{"prompt":"a cat","seconds":8,"size":"1280x720"}`)
	if r := g.send("DELETE", "/v1/videos/"+id, "", ""); r.status != 400 ||
		r.get("error.code").Str != "video_not_terminal" {
		t.Fatalf("deleted while it is made: %d %s", r.status, r.body)
	}
	g.ended(id)
	if r := g.send("DELETE", "/v1/videos/"+id, "", ""); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if got := g.spent(); got != 80_000 {
		t.Errorf("charged %d, want 80000", got)
	}
}
