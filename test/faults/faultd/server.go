package faultd

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Script answers one request by writing to the connection. When it returns, the
// connection is closed unless it called KeepAlive.
type Script func(c *Conn)

// A Server plays scripts. All its methods may be called at any time.
type Server struct {
	addr   string
	work   sync.WaitGroup
	closed chan struct{}

	mu        sync.Mutex
	listeners []net.Listener
	scripts   map[string]Script
	unread    map[string]bool
	calls     map[string]int
	conns     map[net.Conn]struct{}
}

// Start listens on a free loopback port.
func Start() (*Server, error) {
	s := &Server{closed: make(chan struct{}), scripts: map[string]Script{}, unread: map[string]bool{},
		calls: map[string]int{}, conns: map[net.Conn]struct{}{}}
	addr, err := s.Listen(s.serve)
	s.addr = addr
	return s, err
}

// Listen listens on another free loopback port. serve has a connection to itself
// and closes it.
func (s *Server) Listen(serve func(net.Conn)) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("faultd: %w", err)
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	s.work.Go(func() { s.accept(l, serve) })
	return l.Addr().String(), nil
}

// Addr is host:port of the first listener.
func (s *Server) Addr() string { return s.addr }

// Handle sets the script for requests whose path starts with /name/.
func (s *Server) Handle(name string, script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[name] = script
}

// HandleUnread is Handle for a script that is called before the request's body is
// read, and reads of it what it likes.
func (s *Server) HandleUnread(name string, script Script) {
	s.Handle(name, script)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread[name] = true
}

// Calls returns the number of requests to a script.
func (s *Server) Calls(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

// Close ends every connection and waits for the scripts.
func (s *Server) Close() {
	close(s.closed)
	s.mu.Lock()
	for _, l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// accept serves the connections of a listener until it is closed.
func (s *Server) accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.work.Go(func() {
			serve(c)
			_ = c.Close() // it may be already
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// serve reads requests of a connection and calls the script of each, until a script does not keep the connection open.
// The first segment of the path names the script.
func (s *Server) serve(raw net.Conn) {
	defer raw.Close()
	in := bufio.NewReader(raw)
	for {
		request, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		script, call, unread := s.begin(request.URL.Path)
		c := &Conn{conn: raw, in: in, closed: s.closed, Request: request, Call: call}
		if !unread {
			if c.Body, err = io.ReadAll(request.Body); err != nil {
				return
			}
		}
		script(c)
		if !c.keep {
			return
		}
	}
}

// begin counts a call and returns its script, which answers 404 if there is none of the name. unread says that the body
// of the request is left to the script.
func (s *Server) begin(path string) (script Script, call int, unread bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name]++
	if script, ok := s.scripts[name]; ok {
		return script, s.calls[name], s.unread[name]
	}
	return func(c *Conn) { c.Head(http.StatusNotFound, "Content-Length: 0") }, s.calls[name], false
}

// A Conn is a connection on which a request has been read completely.
type Conn struct {
	Request *http.Request
	Body    []byte
	Call    int // 1 for the script's first request

	conn   net.Conn
	in     *bufio.Reader
	closed chan struct{}
	keep   bool
	gone   bool
}

// Send writes text as it is; a peer that has gone is not an error here, but Gone
// tells of it.
func (c *Conn) Send(text string) {
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.gone = true
	}
}

// Gone reports whether something could not be sent.
func (c *Conn) Gone() bool { return c.gone }

// Head writes a status line and header lines.
func (c *Conn) Head(status int, lines ...string) {
	c.Send(fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, http.StatusText(status)))
	for _, l := range lines {
		c.Send(l + "\r\n")
	}
	c.Send("\r\n")
}

// Whole answers with a body of known length.
func (c *Conn) Whole(status int, contentType, body string, lines ...string) {
	c.Head(status, append(lines, "Content-Type: "+contentType, fmt.Sprintf("Content-Length: %d", len(body)))...)
	c.Send(body)
}

// StartStream writes the head of a chunked event stream.
func (c *Conn) StartStream(lines ...string) {
	c.Head(http.StatusOK, append(lines, "Content-Type: text/event-stream", "Transfer-Encoding: chunked")...)
}

// Chunk writes one chunk.
func (c *Conn) Chunk(text string) { c.Send(fmt.Sprintf("%x\r\n%s\r\n", len(text), text)) }

// EndChunks ends a chunked body properly.
func (c *Conn) EndChunks() { c.Send("0\r\n\r\n") }

// KeepAlive leaves the connection open for another request.
func (c *Conn) KeepAlive() { c.keep = true }

// Reset closes the connection with RST.
func (c *Conn) Reset() {
	reset(c.conn)
}

// reset closes a connection so that the peer gets RST in place of FIN. Under TLS it closes the TCP connection.
func reset(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Stall says nothing until the peer goes away or the server is closed. It answers
// whether it was the peer.
func (c *Conn) Stall() bool {
	for {
		if _, err := c.in.ReadByte(); err == nil {
			continue
		}
		select {
		case <-c.closed:
			return false
		default:
			return true
		}
	}
}

// Pause waits, but not longer than the server lives.
func (c *Conn) Pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.closed:
	}
}
