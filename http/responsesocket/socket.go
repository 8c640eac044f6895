package responsesocket

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/http/envelope"
	"stagedoor/http/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
)

// maxMessage is the size of the largest message: that of the largest body over HTTP.
const maxMessage = text.MaxBody

// firstBuffer is the size of the buffer that a message begins with.
const firstBuffer = 4 << 10

var errTooLarge = errors.New("the message is too large")

// read receives messages until the connection ends. Any byte that arrives shows that the client is there, also
// in the middle of a message.
func (c *connection) read() {
	c.extend()
	c.socket.SetPongHandler(func(string) error { c.extend(); return nil })
	answer := c.socket.PingHandler()
	c.socket.SetPingHandler(func(data string) error { c.extend(); return answer(data) })
	for {
		kind, source, err := c.socket.NextReader()
		if err != nil {
			return
		}
		if c.closing.Load() {
			continue // NextReader skips what was not read
		}
		claim := memory.NewClaim(c.handlers.options.Memory, c.owner)
		message, err := c.receive(source, &claim)
		var full memory.Refusal
		switch {
		case errors.Is(err, errTooLarge), errors.Is(err, memory.ErrTooLarge):
			claim.End()
			c.sendClose(websocket.CloseMessageTooBig, "the message is too large, use POST /v1/responses or send less")
			continue // what the client is sending is read, because a reset could overtake the close
		case errors.As(err, &full):
			c.sendError("", envelope.From(err), nil)
		case err != nil:
			claim.End()
			return
		case kind != websocket.TextMessage:
			c.sendError("", dialogue.BadRequest("invalid_json", "a message must be a text frame"), nil)
		default:
			c.handle(message, &claim)
			continue
		}
		claim.End()
	}
}

// receive returns a message and counts its bytes in the claim. An error of the claim leaves the rest of the message to
// be skipped.
func (c *connection) receive(source io.Reader, claim *memory.Claim) ([]byte, error) {
	if err := c.grow(claim, firstBuffer); err != nil {
		return nil, err
	}
	b := make([]byte, 0, firstBuffer)
	for {
		if len(b) == cap(b) {
			more := int(min(2*int64(cap(b)), c.limits.message+1))
			if err := c.grow(claim, int64(more-cap(b))); err != nil {
				return nil, err
			}
			b = append(make([]byte, 0, more), b...)
		}
		n, err := source.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		c.extend()
		switch {
		case int64(len(b)) > c.limits.message:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		}
	}
}

// extend moves the read deadline to a time from now in which the client must send something. It ignores an error,
// because the next read returns it.
func (c *connection) extend() { _ = c.socket.SetReadDeadline(time.Now().Add(c.limits.patience)) }

// send writes a text message. It waits until the client has taken the messages before, which slows what makes
// them. After an error the connection ends.
func (c *connection) send(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.closing.Load() {
		return websocket.ErrCloseSent
	}
	err := c.socket.SetWriteDeadline(time.Now().Add(c.limits.accept))
	if err == nil {
		err = c.socket.WriteMessage(websocket.TextMessage, message)
	}
	if err != nil {
		c.cancel()
		_ = c.socket.Close() // ends read
		return err
	}
	c.lastText.Store(time.Now().UnixNano())
	return nil
}

// sendError sends an error that belongs to no running response. header, if not nil, has the headers of the reply.
// Errors of sending are ignored, because send has ended the connection.
func (c *connection) sendError(stream string, err *dialogue.Error, header http.Header) {
	if header == nil {
		header = make(http.Header)
	}
	w := &eventWriter{connection: c, header: header}
	envelope.Write(w, envelope.Plain, err)
	_ = c.send(errorMessage(stream, w.status, header, w.body))
}

// heartbeat is of a type that clients ignore. A clock of theirs counts text messages only, so pings do not keep a
// silent response alive.
var heartbeat = []byte(`{"type":"stagedoor.keepalive"}`)

// keepAlive sends a ping, and a heartbeat if a response is running and nothing was sent for a while.
func (c *connection) keepAlive() {
	_ = c.socket.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.limits.accept))
	quiet := time.Since(time.Unix(0, c.lastText.Load()))
	if quiet >= c.limits.silence-c.limits.silence/8 && !c.idle() {
		_ = c.send(heartbeat)
	}
}

// sendClose sends the reason for which the connection ends, and ends what runs. The client has a moment to answer.
// Errors are ignored, because it may have left.
func (c *connection) sendClose(code int, reason string) {
	c.closing.Store(true)
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason),
		time.Now().Add(c.limits.linger))
	c.cancel()
	time.AfterFunc(c.limits.linger, func() { _ = c.socket.Close() })
}
