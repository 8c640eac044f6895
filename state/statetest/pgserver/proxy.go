package pgserver

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Fault is a fault of the network that a Proxy simulates.
type Fault int32

// The faults of a network.
const (
	None        Fault = iota
	Cut               // connections end, and no new ones are made
	Slow              // each piece of data takes 20 ms longer
	HalfOpen          // data is swallowed in both directions, and connections stay open
	DropReplies       // data of the server is swallowed
)

// Proxy simulates the network between a client and a server. It forwards connections until Set gives it a Fault.
type Proxy struct {
	dir    string
	target atomic.Pointer[[2]string] // network and address
	fault  atomic.Int32
	mu     sync.Mutex
	conns  map[net.Conn]*atomic.Bool // with whether data was swallowed
	work   sync.WaitGroup
}

// NewProxy returns a proxy to a server. It ends with the test. Clients connect to URL.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "px")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{dir: dir, conns: map[net.Conn]*atomic.Bool{}}
	p.To(s)
	p.serve(t, "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	return p
}

// NewNetwork returns a proxy to a TCP address, which ToAddress sets, and its own address. It ends with the test.
func NewNetwork(t testing.TB) (p *Proxy, address string) {
	t.Helper()
	p = &Proxy{conns: map[net.Conn]*atomic.Bool{}}
	p.ToAddress("tcp", "127.0.0.1:1")
	return p, p.serve(t, "tcp", "127.0.0.1:0")
}

// serve accepts connections until the end of the test, and returns the address.
func (p *Proxy) serve(t testing.TB, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	p.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.connect(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.Set(Cut)
		p.work.Wait()
		if p.dir != "" {
			os.RemoveAll(p.dir)
		}
	})
	return l.Addr().String()
}

// URL returns the address of the server's database through the proxy.
func (p *Proxy) URL() string { return p.URLOf("postgres") }

// URLOf returns the address of a database of the server through the proxy.
func (p *Proxy) URLOf(database string) string {
	return "postgres://stagedoor@/" + database + "?host=" + p.dir
}

// To sends new connections to another server.
func (p *Proxy) To(s *Server) {
	p.ToAddress("unix", s.socket())
}

// ToAddress sends new connections to an address.
func (p *Proxy) ToAddress(network, address string) { p.target.Store(&[2]string{network, address}) }

// Set sets the fault, for open connections and for new ones. A connection that has lost data ends here, because the
// protocol above it could not go on, and Cut ends all of them.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault.Store(int32(f))
	for c, damaged := range p.conns {
		if f == Cut || damaged.Load() {
			c.Close()
		}
	}
}

func (p *Proxy) is(f Fault) bool { return Fault(p.fault.Load()) == f }

// connect forwards a client's connection to the server in both directions until one side ends it.
func (p *Proxy) connect(client net.Conn) {
	defer client.Close()
	target := p.target.Load()
	server, err := net.Dial(target[0], target[1])
	if err != nil {
		return
	}
	defer server.Close()
	damaged := &atomic.Bool{}
	p.mu.Lock()
	cut := p.is(Cut)
	p.conns[client], p.conns[server] = damaged, damaged
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, client)
		delete(p.conns, server)
	}()
	if cut {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.forward(client, server, damaged, HalfOpen) })
	both.Go(func() { p.forward(server, client, damaged, HalfOpen, DropReplies) })
	both.Wait()
}

// forward copies data from one connection to the other until one of them ends. As soon as one of the faults in
// swallowing is set, it drops all data from then on and sets damaged, which both directions share.
func (p *Proxy) forward(from, to net.Conn, damaged *atomic.Bool, swallowing ...Fault) {
	defer from.Close()
	defer to.Close()
	swallows := false
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if p.is(Slow) {
			time.Sleep(20 * time.Millisecond)
		}
		for _, f := range swallowing {
			swallows = swallows || p.is(f)
		}
		if swallows {
			damaged.Store(true)
		} else if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
