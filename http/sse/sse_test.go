package sse_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/http/sse"
)

func TestAStreamSaysWhatItIsAndFlushesEachPiece(t *testing.T) {
	w := httptest.NewRecorder()
	s := sse.NewWriter(w, "text/event-stream", time.Now)
	h := w.Header()
	if w.Code != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-cache" ||
		h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%d %v", w.Code, h)
	}
	if err := s.Send([]byte("data: 1\n\n")); err != nil || !w.Flushed || w.Body.String() != "data: 1\n\n" {
		t.Errorf("%v, flushed %v: %q", err, w.Flushed, w.Body)
	}
}

func TestHeartbeatsFillSilenceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		s := sse.NewWriter(w, "text/event-stream", time.Now)
		stop := s.Beat(t.Context(), []byte(": beat\n"))
		for range 10 {
			time.Sleep(5 * time.Second)
			if err := s.SendLocked([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if n := strings.Count(w.Body.String(), "beat"); n != 0 {
			t.Errorf("%d heartbeats although events came", n)
		}
		stop = s.Beat(t.Context(), []byte(": beat\n"))
		time.Sleep(61 * time.Second)
		stop()
		if n := strings.Count(w.Body.String(), "beat"); n < 3 || n > 5 {
			t.Errorf("%d heartbeats in a minute of silence", n)
		}
		size := w.Body.Len()
		time.Sleep(time.Minute)
		if w.Body.Len() != size {
			t.Error("heartbeats after the end")
		}
	})
}

func TestQuietBeginsShortlyBeforeAHeartbeatIsDue(t *testing.T) {
	now := time.Now()
	s := sse.NewWriter(httptest.NewRecorder(), "text/event-stream", func() time.Time { return now })
	for _, c := range []struct {
		after time.Duration
		quiet bool
	}{{0, false}, {10 * time.Second, false}, {14 * time.Second, true}, {time.Hour, true}} {
		before := now
		now = now.Add(c.after)
		if got := s.Quiet(); got != c.quiet {
			t.Errorf("after %s: %v", c.after, got)
		}
		now = before
	}
}

// gone is a client that has left.
type gone struct{ http.ResponseWriter }

var errGone = errors.New("gone")

func (gone) Write([]byte) (int, error) { return 0, errGone }

func TestAClientThatLeftEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sse.NewWriter(gone{httptest.NewRecorder()}, "text/event-stream", time.Now)
		stop := s.Beat(context.Background(), []byte(":\n"))
		time.Sleep(time.Minute) // heartbeats fail without harm
		stop()
		if err := s.Send([]byte("x")); !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
	})
}
