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

// These are the timeouts and limits of a socket.
const (
	pingEvery  = 30 * time.Second
	pongWithin = 2*pingEvery + 10*time.Second // two pings may get lost
	// writeWithin bounds the time in which the peer must accept a message.
	writeWithin = 10 * time.Second
	// closeWithin bounds the time in which the peer must answer a close.
	closeWithin = 2 * time.Second
	// pace is the least time between two looks. Faster changes are merged.
	pace = 50 * time.Millisecond
	// maxMessage bounds a message of a client, in bytes. A subscription to MaxIDs jobs fits.
	maxMessage = 64 << 10
)

// Source produces the messages of one socket. Only one goroutine calls its methods.
type Source interface {
	// Receive handles a message of the client. The following Next sends the reply, if any.
	Receive(message []byte)
	// Next calls send with a bounded number of messages that the client has not received
	// yet. It returns a channel that is closed when there may be more, or nil if there
	// will be none before the next Receive. send does not keep the bytes. An error closes
	// the socket.
	Next(send func(message []byte) error) (more <-chan struct{}, err error)
}

// Watcher identifies the client of a socket.
type Watcher struct {
	// Owner is the owner whose share of watchers the socket counts against.
	Owner state.Owner
	// Still is called every 30 s. Its error closes the socket.
	Still func() error
}

// writeBuffers pools the write buffers of all sockets, so that an idle socket holds none.
var writeBuffers sync.Pool

// newUpgrader returns an upgrader with small buffers, because most sockets are idle most of the time.
func newUpgrader() websocket.Upgrader {
	return websocket.Upgrader{
		ReadBufferSize: 512, WriteBufferSize: 1024, WriteBufferPool: &writeBuffers,
		HandshakeTimeout: writeWithin,
		// The callers of Serve have checked the origin (SameOrigin).
		CheckOrigin: func(*http.Request) bool { return true },
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			w.Header().Set("Sec-WebSocket-Version", "13") // RFC 6455 4.4: the client may try again with it
			envelope.Write(w, envelope.Plain, dialogue.Refusal(status, "invalid_handshake", reason.Error()))
		},
	}
}

// Open upgrades r to a WebSocket, which counts as a watcher of its owner until the caller calls leave. header
// is sent with the upgrade. ctx ends with Drain, or with the error of who.Still as soon as that returns one.
// Its cause is then ErrDraining or that error. If ok is false, Open has answered r. Callers check before that
// the client may connect, and with SameOrigin that a page of another origin did not open the socket.
func (hs *Handlers) Open(w http.ResponseWriter, r *http.Request, who Watcher, header http.Header) (
	conn *websocket.Conn, ctx context.Context, leave func(), ok bool) {
	if !websocket.IsWebSocketUpgrade(r) || r.ProtoMajor != 1 {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
		}
		hs.refuse(
			w,
			dialogue.Refusal(http.StatusUpgradeRequired, "upgrade_required",
				"this path is for WebSockets over HTTP/1.1"),
		)
		return nil, nil, nil, false
	}
	if err := hs.enter(who.Owner); err != nil {
		hs.refuse(w, err)
		return nil, nil, nil, false
	}
	conn, err := hs.upgrader.Upgrade(hijackable{w}, r, header)
	if err != nil { // Upgrade has sent an error, or the client has left
		hs.leave(who.Owner)
		return nil, nil, nil, false
	}
	accesslog.Outcome(w, http.StatusSwitchingProtocols)
	ctx, cancel := hs.lifetime(r, who.Still)
	return conn, ctx, func() { cancel(); _ = conn.Close(); hs.leave(who.Owner) }, true
}

// Serve opens a WebSocket as Open does, and sends the messages of source until the client leaves, who.Still
// returns an error or Drain is called.
func (hs *Handlers) Serve(w http.ResponseWriter, r *http.Request, who Watcher, source Source) {
	conn, ctx, leave, ok := hs.Open(w, r, who, nil)
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	s := &socket{conn: conn, received: make(chan []byte), source: source, still: who.Still}
	s.run(ctx, func() { cancel(context.Canceled) })
	accesslog.Note(w, slog.Int("messages", s.sent))
}

// hijackable implements http.Hijacker for a ResponseWriter that wraps others.
type hijackable struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// socket is one connection. The goroutine of the request reads and a second one writes. Both end before
// the request does.
type socket struct {
	conn     *websocket.Conn
	received chan []byte // messages from the reader to the writer, one at a time
	source   Source
	still    func() error
	sent     int
}

// run serves the socket until either side has closed it. The reader runs on the caller's goroutine and the writer on
// its own, because the library allows one of each.
func (s *socket) run(ctx context.Context, cancel func()) {
	var writer conc.WaitGroup
	defer writer.Wait()
	defer cancel()
	writer.Go(func() {
		// When the writer has ended, the reader ends after the peer has answered the
		// close, or after closeWithin.
		defer func() {
			cancel()
			_ = s.conn.SetReadDeadline(time.Now().Add(closeWithin))
		}()
		s.sendClose(s.write(ctx))
	})
	s.read(ctx)
}

// read passes messages of the client to the writer until the client leaves. While the writer is busy,
// read waits, and TCP makes the client wait.
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
			message = nil // gets the error for invalid JSON
		}
		select {
		case s.received <- message:
		case <-ctx.Done():
			s.drain()
			return
		}
	}
}

// drain waits until the client answers a close.
func (s *socket) drain() {
	_ = s.conn.SetReadDeadline(time.Now().Add(closeWithin))
	for {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}

// write sends the messages of the source. It returns the reason to close the socket.
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

// pause waits for the end of the rest between two looks, for updates or for a message of the client, whichever is
// first. A nil channel is never ready. While rested is not nil, pause accepts no messages. It sends pings meanwhile.
func (s *socket) pause(ctx context.Context, rested <-chan time.Time, more <-chan struct{},
	ping <-chan time.Time) error {
	heard := s.received
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
			s.source.Receive(message)
			return nil
		case <-ping:
			if err := s.check(); err != nil {
				return err
			}
		}
	}
}

// check returns an error if the client may not watch any more, and otherwise sends a ping.
func (s *socket) check() error {
	if err := s.still(); err != nil {
		return err
	}
	return s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin))
}

// send writes one message. A client that does not read in time loses the connection.
func (s *socket) send(message []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	s.sent++
	return s.conn.WriteMessage(websocket.TextMessage, message)
}

// sendClose sends the reason for which the socket is closed. Errors are ignored, because the peer may
// have left.
func (s *socket) sendClose(cause error) {
	code, reason := websocket.CloseNormalClosure, ""
	var refused *dialogue.Error
	switch {
	case errors.Is(cause, ErrDraining):
		code, reason = websocket.CloseGoingAway, ErrDraining.Error()
	case errors.As(cause, &refused) && refused.Status < http.StatusInternalServerError:
		code, reason = websocket.ClosePolicyViolation, "not allowed to watch any more"
	case errors.As(cause, &refused):
		code, reason = websocket.CloseInternalServerErr, "the gateway met an internal error"
	}
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason),
		time.Now().Add(closeWithin))
}
