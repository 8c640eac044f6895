package server

import (
	"container/list"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writeTimeout limits the time that a client takes to accept one piece of a reply. A
	// client that takes longer is disconnected.
	writeTimeout = 15 * time.Second
	// piece is the number of bytes that the client has to accept in that time.
	piece = 64 << 10
)

// listener counts its connections and gives them a write timeout. It can stop accepting before it is
// closed, because net/http drops requests on connections that were accepted just before a shutdown.
// It counts a connection before Accept returns it, so that a shutdown misses none.
type listener struct {
	net.Listener
	open   *atomic.Int64
	slots  *slots
	refuse refuser // of the connections, see http1

	stopped, closed chan struct{}
	stopping        sync.Once
	closing         sync.Once
	err             error // of stopping
}

// newListener returns a listener that counts its connections and takes a slot for each.
func newListener(l net.Listener, open *atomic.Int64, slots *slots) *listener {
	return &listener{
		Listener: l,
		open:     open,
		slots:    slots,
		stopped:  make(chan struct{}),
		closed:   make(chan struct{}),
	}
}

// Accept implements net.Listener. Its connections speak HTTP/1 without TLS.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	return &http1{Conn: c, base: c, refuse: l.refuse}, nil
}

// accept returns the next connection. Between stop and Close it waits.
func (l *listener) accept() (*conn, error) {
	l.open.Add(1)
	c, err := l.Listener.Accept()
	if err == nil {
		accepted := &conn{Conn: c, open: l.open, slots: l.slots}
		l.slots.enter(accepted, l.stopped)
		return accepted, nil
	}
	l.open.Add(-1)
	select {
	case <-l.stopped:
		<-l.closed
	default:
	}
	return nil, err
}

// stop ends accepting.
func (l *listener) stop() {
	l.stopping.Do(func() {
		close(l.stopped)
		l.err = l.Listener.Close()
	})
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.stop()
	l.closing.Do(func() { close(l.closed) })
	return l.err
}

// conn sets a deadline for every write: streams, whole replies, errors and the replies that net/http
// writes itself. A timeout for a whole response, as in http.Server, would cut off long streams.
type conn struct {
	net.Conn
	open   *atomic.Int64
	slots  *slots
	idle   *list.Element // in slots and under their lock; nil while a request arrives or is in flight
	waits  atomic.Bool   // whether quiet is set
	fresh  time.Time     // when it was accepted; zero after its first request
	closed atomic.Bool
	eof    bool         // the client has ended TCP, noted by Read
	until  atomic.Int64 // the deadline in force, in nanoseconds
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
		defer c.slots.leave(c) // when the descriptor is free
	}
	return c.Conn.Close()
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.waits.Load() {
		c.slots.noteData(c)
	}
	if err == io.EOF {
		c.eof = true
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		c.extend()
		part := p[n:min(n+piece, len(p))]
		m, err := c.Conn.Write(part)
		n += m
		if err != nil || n >= len(p) {
			return n, err
		}
	}
}

// extend moves the deadline. Setting it for each of thousands of tokens would be expensive, so it
// moves at most once a second, and a write has between 14 and 15 seconds.
func (c *conn) extend() {
	now := time.Now()
	if c.until.Load()-now.UnixNano() >= int64(writeTimeout-time.Second) {
		return
	}
	until := now.Add(writeTimeout)
	c.until.Store(until.UnixNano())
	_ = c.Conn.SetWriteDeadline(until) // fails only on a closed connection, as Write will
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.until.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.until.Store(0)
	return c.Conn.SetDeadline(t)
}

// CloseWrite closes the sending side. net/http uses it at the end of a refused upload, where a reset
// could overtake the reply.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// stream sets a deadline for the writes of one HTTP/2 stream, which its client can block by flow
// control while the connection itself makes progress.
type stream struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// newStream returns a writer that can flush and set deadlines.
func newStream(w http.ResponseWriter) *stream {
	return &stream{ResponseWriter: w, rc: http.NewResponseController(w)}
}

// Unwrap implements the interface that http.ResponseController looks for.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write implements http.ResponseWriter.
func (s *stream) Write(p []byte) (n int, err error) {
	for {
		if err := s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return n, err
		}
		part := p[n:min(n+piece, len(p))]
		m, err := s.ResponseWriter.Write(part)
		n += m
		if err != nil || n >= len(p) {
			return n, err
		}
	}
}
