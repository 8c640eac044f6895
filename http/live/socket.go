package live

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/sourcegraph/conc"

	"stagedoor/http/accesslog"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// Clocks and bounds of a socket.
const (
	pingEvery  = 30 * time.Second
	pongWithin = 2*pingEvery + 10*time.Second // two pings may get lost
	// writeWithin is how long the peer may take a message.
	writeWithin = 10 * time.Second
	// closeWithin is how long the peer may take to answer a close.
	closeWithin = 2 * time.Second
	// pace is the least time between two looks: what changes faster is told once.
	pace = 50 * time.Millisecond
	// maxMessage bounds what a client says at once: a subscription to MaxIDs jobs.
	maxMessage = 64 << 10
)

// Source is what one socket sends. One goroutine calls its methods.
type Source interface {
	// Hear takes a message of the client. What there is to say to it is said by
	// the next Next.
	Hear(message []byte)
	// Next calls send with each message that the client should have and has not,
	// a bounded number of them, and returns a channel that is closed when there
	// may be more; a nil one never is. The bytes are send's until it returns. An
	// error ends the socket.
	Next(send func(message []byte) error) (more <-chan struct{}, err error)
}

// Watcher is who a socket is for.
type Watcher struct {
	// Owner is who is counted.
	Owner state.Owner
	// Still is asked every 30 s; its error ends the socket.
	Still func() error
}

// writeBuffers are shared by all sockets, so that one that is silent has none.
var writeBuffers sync.Pool

func newUpgrader() websocket.Upgrader {
	return websocket.Upgrader{
		ReadBufferSize: 512, WriteBufferSize: 1024, WriteBufferPool: &writeBuffers,
		HandshakeTimeout: writeWithin,
		// The origin was checked by whoever identified the viewer.
		CheckOrigin: func(*http.Request) bool { return true },
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			envelope.Write(w, envelope.Plain, &dialogue.Error{Status: status, Type: dialogue.TypeInvalidRequest, Code: "invalid_handshake",
				Message: reason.Error()})
		},
	}
}

// Serve answers r by a socket that sends what source says, until the client goes,
// the watcher must not watch any more or the doors are drained. Who may watch has
// been checked, and with SameOrigin from where.
func (hs *Handlers) Serve(w http.ResponseWriter, r *http.Request, who Watcher, source Source) {
	if !websocket.IsWebSocketUpgrade(r) || r.ProtoMajor != 1 {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
		}
		hs.refuse(w, &dialogue.Error{Status: http.StatusUpgradeRequired, Type: dialogue.TypeInvalidRequest, Code: "upgrade_required",
			Message: "this path is for WebSockets over HTTP/1.1"})
		return
	}
	if err := hs.enter(who.Owner); err != nil {
		hs.refuse(w, err)
		return
	}
	defer hs.leave(who.Owner)
	conn, err := hs.upgrader.Upgrade(hijackable{w}, r, nil)
	if err != nil {
		return // Upgrade has answered, or there is nobody to answer
	}
	defer conn.Close()
	accesslog.Outcome(w, http.StatusSwitchingProtocols)
	ctx, cancel := hs.lifetime(r, who.Still)
	defer cancel()
	s := &socket{conn: conn, heard: make(chan []byte), source: source, still: who.Still}
	s.run(ctx, cancel)
	accesslog.Note(w, slog.Int("messages", s.sent))
}

// hijackable lets the connection out from under the writers that the server puts
// around each other.
type hijackable struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// socket is one connection. The goroutine of its request reads, another one
// writes; neither outlives the request.
type socket struct {
	conn   *websocket.Conn
	heard  chan []byte // from the reader to the writer, who takes one at a time
	source Source
	still  func() error
	sent   int
}

func (s *socket) run(ctx context.Context, cancel func()) {
	var writer conc.WaitGroup
	defer writer.Wait()
	defer cancel()
	writer.Go(func() {
		// However the writer ends, the reader does too: when the peer has answered
		// the close, or soon.
		defer func() {
			cancel()
			_ = s.conn.SetReadDeadline(time.Now().Add(closeWithin))
		}()
		s.farewell(s.write(ctx))
	})
	s.read(ctx)
}

// read takes what the client says until it goes. While the writer is busy it
// waits, and TCP makes the client wait.
func (s *socket) read(ctx context.Context) {
	s.conn.SetReadLimit(maxMessage)
	alive := func(string) error {
		if ctx.Err() != nil {
			return nil // the writer has set the last deadline
		}
		return s.conn.SetReadDeadline(time.Now().Add(pongWithin))
	}
	s.conn.SetPongHandler(alive)
	if alive("") != nil {
		return
	}
	for {
		kind, message, err := s.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.TextMessage {
			message = nil // not JSON either
		}
		select {
		case s.heard <- message:
		case <-ctx.Done():
			s.drain()
			return
		}
	}
}

// drain waits for the client's answer to a close.
func (s *socket) drain() {
	_ = s.conn.SetReadDeadline(time.Now().Add(closeWithin))
	for {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

// write sends what the source has until something ends it, and tells what.
func (s *socket) write(ctx context.Context) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	rest := time.NewTimer(pace)
	defer rest.Stop()
	for {
		before := s.sent
		more, err := s.source.Next(s.send)
		if err != nil {
			return err
		}
		if s.sent > before {
			rest.Reset(pace)
			if err := s.pause(ctx, rest.C, nil, ping.C); err != nil {
				return err
			}
		}
		if err := s.pause(ctx, nil, more, ping.C); err != nil {
			return err
		}
	}
}

// pause waits for the first of: the end of a rest, news, a message of the client.
// While it rests it takes no messages.
func (s *socket) pause(ctx context.Context, rested <-chan time.Time, more <-chan struct{}, ping <-chan time.Time) error {
	heard := s.heard
	if rested != nil {
		heard = nil
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-rested:
			return nil
		case <-more:
			return nil
		case message := <-heard:
			s.source.Hear(message)
			return nil
		case <-ping:
			if err := s.check(); err != nil {
				return err
			}
		}
	}
}

// check asks whether the peer is there and still welcome.
func (s *socket) check() error {
	if err := s.still(); err != nil {
		return err
	}
	return s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin))
}

func (s *socket) send(message []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	s.sent++
	return s.conn.WriteMessage(websocket.TextMessage, message)
}

// farewell says why the socket ends. To a peer that is gone it says nothing that
// anybody hears.
func (s *socket) farewell(cause error) {
	code, reason := websocket.CloseNormalClosure, ""
	var refused *dialogue.Error
	switch {
	case errors.Is(cause, errDraining):
		code, reason = websocket.CloseGoingAway, errDraining.Error()
	case errors.As(cause, &refused) && refused.Status < http.StatusInternalServerError:
		code, reason = websocket.ClosePolicyViolation, "not allowed to watch any more"
	case errors.As(cause, &refused):
		code, reason = websocket.CloseInternalServerErr, "the gateway met an internal error"
	}
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(closeWithin))
}
