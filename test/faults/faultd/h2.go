package faultd

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Frame types and flags of HTTP/2 that scripts meet (RFC 9113 section 6).
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	framePing     = 0x6
	frameGoAway   = 0x7
	frameWindow   = 0x8

	flagEnd     = 0x1 // of the stream; on SETTINGS and PING: an acknowledgement
	flagHeaders = 0x4 // the header block is complete
)

// Settings of HTTP/2 (RFC 9113 section 6.5.2).
const (
	MaxConcurrentStreams = 0x3
	InitialWindowSize    = 0x4
)

// Error codes of HTTP/2 (RFC 9113 section 7).
const (
	NoError         = 0x0
	InternalError   = 0x2
	RefusedStream   = 0x7
	Cancel          = 0x8
	EnhanceYourCalm = 0xb
)

// A Stream is one request of an HTTP/2 connection, whose body has been read. A
// script answers it on a goroutine of its own.
type Stream struct {
	*H2
	ID   uint32
	Body []byte
	Call int // 1 for the script's first request, over all connections
}

// An H2 is a server's side of an HTTP/2 connection, written frame by frame.
// What its peer's header blocks say is not read: every script has its own port.
type H2 struct {
	conn net.Conn
	gone chan struct{} // closed when the peer's side has ended
	pong chan struct{} // receives a value when the peer has answered a ping

	mu sync.Mutex
}

// A Setting is a parameter of the server's side.
type Setting struct {
	ID    uint16
	Value uint32
}

// HTTP2 listens on another port for HTTP/2 over TLS, for requests of one script.
// name counts its calls.
func (s *Server) HTTP2(config *tls.Config, name string, script func(*Stream),
	settings ...Setting) (addr string, err error) {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	return s.Listen(func(raw net.Conn) {
		h := &H2{conn: tls.Server(raw, config), gone: make(chan struct{}), pong: make(chan struct{}, 1)}
		var scripts sync.WaitGroup
		h.serve(settings, func(id uint32, body []byte) {
			s.mu.Lock()
			s.calls[name]++
			stream := &Stream{H2: h, ID: id, Body: body, Call: s.calls[name]}
			s.mu.Unlock()
			scripts.Go(func() { script(stream) })
		})
		close(h.gone)
		scripts.Wait()
	})
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// serve reads frames until the connection ends.
func (h *H2) serve(settings []Setting, begin func(id uint32, body []byte)) {
	defer h.conn.Close()
	// Who says that there is no room is taken at the word: what the peer sent
	// before it heard of it makes none.
	shut := slices.Contains(settings, Setting{ID: InitialWindowSize})
	if hello := make([]byte, len(preface)); !h.read(hello) || string(hello) != preface {
		return
	}
	var payload []byte
	for _, s := range settings {
		payload = binary.BigEndian.AppendUint16(payload, s.ID)
		payload = binary.BigEndian.AppendUint32(payload, s.Value)
	}
	h.frame(frameSettings, 0, 0, payload)
	bodies := map[uint32][]byte{}
	for {
		head := make([]byte, 9)
		if !h.read(head) {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if !h.read(payload) {
			return
		}
		kind, flags, id := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == frameSettings && flags&flagEnd == 0:
			h.frame(frameSettings, flagEnd, 0, nil)
		case kind == framePing && flags&flagEnd == 0:
			h.frame(framePing, flagEnd, 0, payload)
		case kind == framePing:
			select {
			case h.pong <- struct{}{}:
			default: // no caller waits for it
			}
		case kind == frameData:
			bodies[id] = append(bodies[id], payload...)
			if n := uint32(len(payload)); n > 0 && !shut {
				h.frame(frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, n))
			}
		}
		if (kind == frameData || kind == frameHeaders) && flags&flagEnd != 0 {
			begin(id, bodies[id])
			delete(bodies, id)
		}
	}
}

func (h *H2) read(p []byte) bool {
	_, err := io.ReadFull(h.conn, p)
	return err == nil
}

// frame writes one frame; a peer that has gone is not an error here.
func (h *H2) frame(kind, flags byte, id uint32, payload []byte) {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.conn.Write(append(binary.BigEndian.AppendUint32(head, id), payload...))
}

// GoAway says that streams above last were not looked at.
func (h *H2) GoAway(last, code uint32) {
	h.frame(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

// AwaitPong waits until the peer has dealt with all that it was sent, which it says by
// answering a ping, or has gone.
func (h *H2) AwaitPong() {
	h.frame(framePing, 0, 0, make([]byte, 8))
	select {
	case <-h.pong:
	case <-h.gone:
	}
}

// Drop closes the connection with RST.
func (h *H2) Drop() { reset(h.conn) }

// Leave closes the connection in good order.
func (h *H2) Leave() { _ = h.conn.Close() }

// Stall says nothing until the peer goes away.
func (h *H2) Stall() { <-h.gone }

// Pause waits, but not longer than the peer is there.
func (h *H2) Pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-h.gone:
	}
}

// Head answers with a status and a content type.
func (s *Stream) Head(status int, contentType string) {
	block := append(literal(":status", strconv.Itoa(status)), literal("content-type", contentType)...)
	s.frame(frameHeaders, flagHeaders, s.ID, block)
}

// literal is a header field without compression (RFC 7541 section 6.2.2).
func literal(name, value string) []byte {
	return slices.Concat([]byte{0, byte(len(name))}, []byte(name), []byte{byte(len(value))}, []byte(value))
}

// Data sends a piece of the body.
func (s *Stream) Data(text string) {
	const most = 16 << 10 // a frame's size that every peer takes
	for ; len(text) > most; text = text[most:] {
		s.frame(frameData, 0, s.ID, []byte(text[:most]))
	}
	s.frame(frameData, 0, s.ID, []byte(text))
}

// End ends the body.
func (s *Stream) End() { s.frame(frameData, flagEnd, s.ID, nil) }

// Reset ends the stream with an error code.
func (s *Stream) Reset(code uint32) {
	s.frame(frameReset, 0, s.ID, binary.BigEndian.AppendUint32(nil, code))
}

// Streamed tells whether a request of the chat or messages shape asks for a
// stream.
func (s *Stream) Streamed() bool {
	return bytes.Contains(bytes.ReplaceAll(s.Body, []byte(" "), nil), []byte(`"stream":true`))
}
