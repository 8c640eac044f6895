// Package sse writes server-sent events to one client: framed bytes come in,
// each call is flushed, and while nothing comes a heartbeat keeps proxies from
// closing the line. What the events say is the business of the shapes'
// emitters; that a client which takes nothing is dropped, of the server's
// connections.
package sse

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
)

// HeartbeatEvery is how long a client is left without a byte.
const HeartbeatEvery = 15 * time.Second

// Headers of every stream. They are shared, so nobody may write to them.
var (
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
)

// Writer writes one stream. It is used by one goroutine, except as Beat says.
type Writer struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	now  func() time.Time
	last time.Time

	mu sync.Mutex // only for SendLocked and Beat
}

// NewWriter sends the headers of a stream.
func NewWriter(w http.ResponseWriter, contentType string, now func() time.Time) *Writer {
	h := w.Header()
	h["Content-Type"] = []string{contentType}
	h["Cache-Control"] = noCache
	h["X-Accel-Buffering"] = noBuffering
	w.WriteHeader(http.StatusOK)
	return &Writer{w: w, rc: http.NewResponseController(w), now: now, last: now()}
}

// Send writes and flushes p.
func (s *Writer) Send(p []byte) error {
	s.last = s.now()
	if _, err := s.w.Write(p); err != nil {
		return err
	}
	return s.rc.Flush()
}

// Quiet reports that it is time for a heartbeat.
func (s *Writer) Quiet() bool { return s.now().Sub(s.last) >= HeartbeatEvery-time.Second }

// LookEvery is how often to ask Quiet.
const LookEvery = HeartbeatEvery / 3

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
	var wg conc.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(LookEvery)
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
	if s.Quiet() {
		_ = s.Send(heartbeat) // whoever sends next meets the same error
	}
}
