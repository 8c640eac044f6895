package server

import (
	"container/list"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
)

// maxHandshakes bounds the handshakes that are under way on one listener.
const maxHandshakes = 1024

// tlsConfig returns what net/http's ServeTLS would use: HTTP/2 is preferred to HTTP/1.1.
func tlsConfig(certificate tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
}

// tlsListener makes the TLS handshakes of the connections that a listener accepts, each in its own
// goroutine, so that connections of HTTP/1 can be given to net/http as http1. A connection whose
// handshake has failed is given to net/http too: there its handshake fails with the same error at
// once, which net/http logs. net/http also answers plain HTTP requests that way.
type tlsListener struct {
	*listener
	config  *tls.Config
	results chan acceptance
	running conc.WaitGroup
	freed   chan struct{} // has a value if a handshake may have ended

	mu    sync.Mutex
	under list.List // of *handshake: those under way, the oldest in front
	ended bool
}

// acceptance is a result of Accept.
type acceptance struct {
	conn net.Conn
	err  error
}

// handshake is one that is under way.
type handshake struct {
	conn  *conn
	begun time.Time
}

// newTLSListener returns a listener that has to be closed, because it accepts from the beginning.
func newTLSListener(l *listener, config *tls.Config) *tlsListener {
	t := &tlsListener{listener: l, config: config, results: make(chan acceptance), freed: make(chan struct{}, 1)}
	t.running.Go(t.run)
	return t
}

// Accept implements net.Listener. It returns connections whose handshakes have ended.
func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case r := <-t.results:
		return r.conn, r.err
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It ends the handshakes under way and returns after they have ended.
func (t *tlsListener) Close() error {
	err := t.listener.Close()
	t.mu.Lock()
	t.ended = true
	for e := t.under.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*handshake).conn.Close()
	}
	t.mu.Unlock()
	t.running.Wait()
	return err
}

// run accepts until the listener is closed. The pace of errors is that of Accept's caller.
func (t *tlsListener) run() {
	for {
		c, err := t.accept()
		if err != nil {
			if !t.give(acceptance{err: err}) {
				return
			}
			continue
		}
		if e := t.begin(c); e != nil {
			t.running.Go(func() { t.handshake(c, e) })
		} else {
			_ = c.Close()
		}
	}
}

// give waits for Accept to take r. It reports false if the listener is closed instead.
func (t *tlsListener) give(r acceptance) bool {
	select {
	case t.results <- r:
		return true
	case <-t.closed:
		return false
	}
}

// begin adds the handshake of c to those under way. Where these are too many, it closes the oldest
// one as soon as it has lasted for freshTime. It returns nil if the listener is closed.
func (t *tlsListener) begin(c *conn) *list.Element {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.under.Len() >= maxHandshakes && !t.ended {
		front := t.under.Front()
		oldest := front.Value.(*handshake)
		if left := freshTime - time.Since(oldest.begun); left > 0 {
			t.mu.Unlock()
			select {
			case <-t.freed:
			case <-time.After(left):
			case <-t.closed:
			}
			t.mu.Lock()
			continue
		}
		t.under.Remove(front)
		_ = oldest.conn.Close()
	}
	if t.ended {
		return nil
	}
	c.slots.beginHandshake(c)
	return t.under.PushBack(&handshake{c, time.Now()})
}

// handshake makes the handshake e of base and gives the connection to net/http.
func (t *tlsListener) handshake(base *conn, e *list.Element) {
	secure := tls.Server(base, t.config)
	_ = secure.SetDeadline(time.Now().Add(headerTimeout)) // fails only on a closed connection, as Handshake will
	err := secure.Handshake()
	_ = secure.SetDeadline(time.Time{})
	t.mu.Lock()
	t.under.Remove(e)
	t.mu.Unlock()
	select {
	case t.freed <- struct{}{}:
	default:
	}
	var c net.Conn = secure
	if err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" {
		c = &https1{&http1{Conn: secure, base: base, refuse: t.refuse}, secure}
	}
	if !t.give(acceptance{conn: c}) {
		_ = base.Close()
	}
}

// https1 is an http1 over TLS. net/http takes Request.TLS from its ConnectionState.
type https1 struct {
	*http1
	secure *tls.Conn
}

// ConnectionState returns the result of the handshake.
func (c *https1) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }
