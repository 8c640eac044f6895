package server

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sourcegraph/conc"

	"stagedoor/providers/dialogue"
)

// http1 is a connection that speaks HTTP/1: a *conn, or a *tls.Conn over one. It
// refuses requests of ambiguous length and tells clients that have left from those that have only
// closed their sending side. net/http reads from it with one goroutine at a time.
type http1 struct {
	net.Conn
	base *conn // the socket

	in      framing
	pending []byte      // Read returns it before it reads on
	busy    atomic.Bool // a handler has a request of the connection
	refuse  refuser     // nil leaves the errors of net/http as they are

	mu    sync.Mutex // held during a write
	out   framing
	begun bool // the reply to the request has begun
}

// markName is the field that marks a request of ambiguous length for the handler. No client can
// know its value, which is made anew by each process.
const markName = "X-Stagedoor-Framing"

var markValue = rand.Text()

// The marks end the value of the ambiguous field with one that net/http accepts, and hide the
// client's value in a field of its own.
var (
	lengthMark   = " 0\r\n" + markName + ": " + markValue + "\r\nX-Rest:"
	encodingMark = " chunked\r\n" + markName + ": " + markValue + "\r\nX-Rest:"
)

// marked returns the refusal of a request that Read has marked, or nil. net/http itself drops the
// Content-Length of such a request without a word, and a proxy in front may have believed it.
func marked(r *http.Request) *dialogue.Error {
	if mark := r.Header[markName]; len(mark) == 0 || mark[len(mark)-1] != markValue {
		return nil
	}
	return dialogue.BadRequest("ambiguous_length",
		"the request has Transfer-Encoding beside Content-Length, or in HTTP/1.0: send one of them only")
}

// Read implements net.Conn.
func (c *http1) Read(p []byte) (int, error) {
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if at, ambiguous := c.in.follow(p[:n]); ambiguous {
		mark := lengthMark
		if !c.in.inLength {
			mark = encodingMark
		}
		c.pending = append([]byte(mark), p[at:n]...)
		return at, nil
	}
	if n > 0 {
		err = nil // it comes again: a *tls.Conn returns it with the last bytes
	}
	if err == io.EOF && c.in.state == messageStart && c.busy.Load() && c.halfClosed() {
		err = c.awaitReset()
	}
	return n, err
}

// halfClosed reports whether a read that has ended may leave a client that reads on. With TLS, the
// client says so with a close_notify. Where TCP ends without one, the client has left.
func (c *http1) halfClosed() bool {
	return c.Conn == net.Conn(c.base) || !c.base.eof
}

// Write implements net.Conn.
func (c *http1) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun && !bytes.HasPrefix(p, informational) {
		c.begun, c.out = true, framing{}
		if status, reason, ok := unreadable(p); ok && c.refuse != nil {
			if _, err := c.Conn.Write(c.refuse(status, reason)); err != nil {
				return 0, err
			}
			return len(p), nil
		}
	}
	if c.begun {
		c.out.follow(p)
	}
	return c.Conn.Write(p)
}

// informational begins a reply that comes before the final one.
var informational = []byte("HTTP/1.1 1")

// observe is called when net/http changes the state of the connection. It keeps whether a handler has a request, and
// ends the framing of a connection that was hijacked.
func (c *http1) observe(state http.ConnState) {
	c.busy.Store(state == http.StateActive)
	switch state {
	case http.StateActive:
		c.mu.Lock()
		c.begun = false
		c.mu.Unlock()
	case http.StateHijacked: // no HTTP follows
		c.in.state = lost
	}
}

const (
	// probeAgain passes before a client that has closed its sending side is probed for the second
	// time. Each further probe waits four times as long, and some clients take no more of them.
	probeAgain = time.Second
	probes     = 5
)

// awaitReset waits until a client that has closed its sending side during a request has left, or until net/http takes
// the read back. A client that has left and one that waits for its reply look the same until something is sent, because
// only the system of the former then answers with a reset. awaitReset therefore sends something that every client
// ignores.
func (c *http1) awaitReset() error {
	socket, ok := c.base.Conn.(syscall.Conn)
	if !ok || c.in.old { // HTTP/1.0 has no replies to be ignored
		return io.EOF
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var probing conc.WaitGroup
	done := make(chan struct{})
	probing.Go(func() { c.probe(done) })
	defer probing.Wait()
	defer close(done)
	var left error
	// The function is called again whenever something happens to the socket. The deadline of
	// the connection ends the wait.
	err = raw.Read(func(fd uintptr) bool {
		code, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
		if err == nil && code != 0 {
			err = syscall.Errno(code)
		}
		left = err
		return left != nil
	})
	if err != nil {
		return err
	}
	return left
}

// probe makes a client that has left say so, until done is closed.
func (c *http1) probe(done <-chan struct{}) {
	wait := probeAgain
	for range probes {
		if !c.sendProbe() {
			return
		}
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
		wait *= 4
	}
}

// sendProbe sends an informational reply before the reply has begun, and a comment between the
// lines of an event stream. Nothing can be added elsewhere, but there the reply itself is a probe.
// It reports whether the connection works.
func (c *http1) sendProbe() bool {
	c.mu.Lock() // a write under way may have ended before the client left, so it is no probe
	defer c.mu.Unlock()
	var probe string
	switch {
	case !c.begun:
		// Python's http.client takes every other informational reply for the reply itself. The
		// fetch of Node.js fails on this one, but it never closes only its sending side.
		probe = "HTTP/1.1 100 Continue\r\n\r\n"
	case c.out.betweenLines():
		probe = "2\r\n:\n\r\n"
	default:
		return true
	}
	if _, err := io.WriteString(c.Conn, probe); err != nil {
		_ = c.Close() // half a probe would spoil the reply
		return false
	}
	return true
}

// CloseWrite does as that of conn.
func (c *http1) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// baseOf returns the socket of a connection of net/http's, and its http1 if it has one.
func baseOf(raw net.Conn) (*conn, *http1) {
	switch raw := raw.(type) {
	case *http1:
		return raw.base, raw
	case *https1:
		return raw.base, raw.http1
	case *tls.Conn:
		c, _ := raw.NetConn().(*conn)
		return c, nil
	}
	return nil, nil
}
