// Package sse writes server-sent events to one client: framed bytes come in,
// each call is flushed, a client that takes nothing for too long is dropped,
// and while nothing comes a heartbeat keeps proxies from closing the line. What
// the events say is the business of the shapes' emitters.
package sse

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Limits of a stream.
const (
	// WriteTimeout is how long one write may take: a client that reads nothing
	// for so long is gone.
	WriteTimeout = 15 * time.Second
	// HeartbeatEvery is how long a client is left without a byte.
	HeartbeatEvery = 15 * time.Second
)

// Writer writes one stream. It is used by one goroutine.
type Writer struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	now      func() time.Time
	deadline time.Time
	last     time.Time

	mu sync.Mutex // only for SendLocked and Beat
}

// NewWriter sends the headers of a stream.
func NewWriter(w http.ResponseWriter, contentType string, now func() time.Time) *Writer {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &Writer{w: w, rc: http.NewResponseController(w), now: now, last: now()}
}

// Send writes and flushes p.
func (s *Writer) Send(p []byte) error {
	now := s.now()
	s.last = now
	// Moving a deadline costs, and tokens come by the thousand: it moves once a
	// second, so that a write has between 14 and 15 seconds.
	if s.deadline.Sub(now) < WriteTimeout-time.Second {
		s.deadline = now.Add(WriteTimeout)
		// A ResponseWriter without deadlines (a test's recorder) does without.
		_ = s.rc.SetWriteDeadline(s.deadline)
	}
	if _, err := s.w.Write(p); err != nil {
		return err
	}
	return s.rc.Flush()
}

// Silent reports for how long nothing was sent.
func (s *Writer) Silent() time.Duration { return s.now().Sub(s.last) }

// Close lifts the write deadline, which would otherwise outlive the stream on
// a connection that is kept.
func (s *Writer) Close() { _ = s.rc.SetWriteDeadline(time.Time{}) }

// SendLocked is Send for a stream that Beat keeps alive.
func (s *Writer) SendLocked(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Send(p)
}

// Beat sends heartbeats from a goroutine of its own, for a sender that waits
// where it cannot send them. stop ends it and waits for it.
func (s *Writer) Beat(ctx context.Context, heartbeat []byte) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(HeartbeatEvery / 3)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				s.beat(heartbeat)
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (s *Writer) beat(heartbeat []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Silent() >= HeartbeatEvery-time.Second {
		_ = s.Send(heartbeat)
	}
}
