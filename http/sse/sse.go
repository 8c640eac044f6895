// Package sse writes server-sent events to one client. The caller passes framed events, and each
// call is flushed. Heartbeats keep proxies from closing a connection on which nothing is sent. The
// shapes' emitters make the events, and http/server drops clients that do not read.
//
// # Usage
//
//	out := sse.NewWriter(w, "text/event-stream", now)
//	for each piece of the reply, or every LookEvery {
//		out.Send(piece) // or, if there is none:
//		if out.Quiet() { out.Send(shape.Heartbeat(mode)) }
//	}
//
// A sender that waits where it cannot look at the time calls Beat instead, and then SendLocked.
//
// # Headers
//
// NewWriter sends the status 200, so everything that can still be refused comes before it. X-Accel-Buffering
// asks nginx, and proxies that follow it, not to collect the events.
//
// # Errors
//
// Send returns the error of the connection: the client has left, or reads so slowly that http/server has
// given it up. Later calls return it, too. The caller ends the request or goes on without the client.
package sse

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
)

// HeartbeatEvery is the longest time that a client waits for a byte.
const HeartbeatEvery = 15 * time.Second

// These headers of every stream are shared and must not be modified.
var (
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
)

// Writer writes one stream. Only one goroutine may use it, unless Beat runs: then senders call
// SendLocked.
type Writer struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	now  func() time.Time
	last time.Time

	mu sync.Mutex // only for SendLocked and Beat
}

// NewWriter sends the headers of a stream and returns the Writer for its events.
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

// Quiet reports whether a heartbeat is due. Callers ask every LookEvery.
func (s *Writer) Quiet() bool { return s.now().Sub(s.last) >= HeartbeatEvery-time.Second }

// LookEvery is the interval at which callers ask Quiet.
const LookEvery = HeartbeatEvery / 3

// SendLocked writes and flushes p, as Send does, on a stream that Beat keeps alive.
func (s *Writer) SendLocked(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Send(p)
}

// Beat starts a goroutine that sends heartbeats, for a sender that waits where it cannot send
// them itself. stop ends the goroutine and returns when it has ended.
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
		_ = s.Send(heartbeat) // the next Send returns the same error
	}
}
