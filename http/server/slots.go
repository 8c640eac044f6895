package server

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// slots limits the connections of all listeners, so that file descriptors are left for the store and
// for calls to upstreams. A connection beyond the limit replaces the connection that has been idle
// for longest. If no connection is idle, accepting waits until one closes, and the kernel queues new
// clients meanwhile.
type slots struct {
	most int // 0 sets no limit

	mu    sync.Mutex
	used  int
	idle  list.List     // of *conn without a request, the longest idle in front
	freed chan struct{} // has a value if a slot or a quiet connection may have come
}

// newSlots returns slots for a number of connections.
func newSlots(most int) *slots { return &slots{most: most, freed: make(chan struct{}, 1)} }

// enter adds c. If the limit is exceeded, it closes an idle connection, or waits until a connection
// closes or stopped is closed.
func (s *slots) enter(c *conn, stopped <-chan struct{}) {
	s.mu.Lock()
	s.used++
	s.mu.Unlock()
	for !s.fits() {
		again := time.NewTimer(freshTime)
		select {
		case <-s.freed:
		case <-again.C:
		case <-stopped:
		}
		again.Stop()
		select {
		case <-stopped:
			return
		default:
		}
	}
}

// freshTime protects a new connection from being replaced while it has no request.
const freshTime = 250 * time.Millisecond

// fits reports whether the limit is kept, after it has closed an idle connection if necessary.
func (s *slots) fits() bool {
	s.mu.Lock()
	if s.most == 0 || s.used <= s.most {
		s.mu.Unlock()
		return true
	}
	var victim *conn
	for e := s.idle.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); time.Since(c.fresh) >= freshTime && !c.hasData() {
			victim = c
			s.removeIdle(c)
			break
		}
	}
	s.mu.Unlock()
	if victim == nil {
		return false
	}
	_ = victim.Close() // which calls leave
	return true
}

// leave removes c.
func (s *slots) leave(c *conn) {
	s.mu.Lock()
	s.used--
	s.removeIdle(c)
	s.mu.Unlock()
	s.wake()
}

// removeIdle removes c from the idle connections. The caller holds mu.
func (s *slots) removeIdle(c *conn) {
	if c.idle != nil {
		s.idle.Remove(c.idle)
		c.idle = nil
		c.waits.Store(false)
	}
}

// noteData keeps c from being replaced, because bytes of a request arrive on it.
func (s *slots) noteData(c *conn) {
	s.mu.Lock()
	s.removeIdle(c)
	s.mu.Unlock()
}

// wake lets one waiter try again. It never blocks: a wake that is pending already is enough.
func (s *slots) wake() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// observe makes a connection replaceable while it is new or idle, and protects it while it has a request. net/http
// calls it when a connection changes its state.
func (s *slots) observe(raw net.Conn, state http.ConnState) {
	c, exchange := baseOf(raw)
	if exchange != nil {
		exchange.observe(state)
	}
	if c == nil || s.most == 0 {
		return
	}
	s.mu.Lock()
	s.removeIdle(c)
	c.fresh = time.Time{}
	if state == http.StateNew {
		c.fresh = time.Now()
	}
	if (state == http.StateNew || state == http.StateIdle) && !c.closed.Load() {
		c.idle = s.idle.PushBack(c)
		c.waits.Store(true)
	}
	full := s.used > s.most
	s.mu.Unlock()
	if full {
		s.wake()
	}
}

// beginHandshake makes c replaceable until its TLS handshake has ended, because before that c has no request, whatever
// it sends.
func (s *slots) beginHandshake(c *conn) {
	if s.most == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.fresh = time.Now(); !c.closed.Load() {
		c.idle = s.idle.PushBack(c)
	}
	if s.used > s.most {
		s.wake()
	}
}

// hasData reports whether the client has sent something that was not read yet.
func (c *conn) hasData() bool {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, _ = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && n > 0
}
