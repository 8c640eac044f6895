package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"stagedoor/actors/kit/kittest"
	"stagedoor/test/harness"
)

// withTLS makes a server speak TLS, and returns what its clients need.
func withTLS(t *testing.T, o *Options) *tls.Config {
	t.Helper()
	certificate := certify(t)
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o.CertFile, o.KeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		o.CertFile: {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]},
		o.KeyFile:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	return &tls.Config{RootCAs: roots, ServerName: "gateway.test"}
}

// newTLSServer is a newServer that speaks TLS.
func newTLSServer(t *testing.T, change func(*Options)) (*Server, *tls.Config) {
	t.Helper()
	var config *tls.Config
	s, _ := newServer(t, func(o *Options) {
		config = withTLS(t, o)
		if change != nil {
			change(o)
		}
	})
	return s, config
}

// getOver sends a request over c and returns the reply, which has to be whole.
func getOver(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, goodRequest); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", r.StatusCode, err)
	}
	return r
}

func TestAClientOfTLSThatEndsTCPWithoutACloseNotifyHasLeft(t *testing.T) {
	for name, begin := range beginnings {
		t.Run(name, func(t *testing.T) {
			client, in, _, ended := halfClosing(t, true, "1.1", begin)
			if err := client.(*tls.Conn).NetConn().(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Error("the reply was written")
			}
			if rest, _ := io.ReadAll(in); bytes.Contains(rest, []byte("100 Continue")) ||
				bytes.Contains(rest, []byte("\n:\n")) {
				t.Errorf("the client was probed: %q", rest)
			}
		})
	}
}

func TestTLSClientsChooseBetweenHTTP2AndHTTP1(t *testing.T) {
	for _, both := range []bool{true, false} {
		s, config := newTLSServer(t, nil)
		protocols := make(chan string, 1)
		s.http.Handler = s.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.TLS == nil || !r.TLS.HandshakeComplete {
				t.Errorf("the request has no state of TLS: %+v", r.TLS)
			}
			protocols <- r.Proto
		}))
		address := loopback(t, s)
		transport := &http.Transport{ForceAttemptHTTP2: both, TLSClientConfig: config}
		res, err := (&http.Client{Transport: transport}).Get("https://" + address + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		transport.CloseIdleConnections()
		want := map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"}[both]
		if got := <-protocols; got != want || res.Proto != want {
			t.Errorf("%s, answered with %s, want %s", got, res.Proto, want)
		}
	}
}

func TestFailedTLSHandshakesAreLoggedAndEndTheConnection(t *testing.T) {
	for _, c := range []struct{ name, sent, reply, logged string }{
		{
			"plain HTTP", goodRequest,
			"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
			"client sent an HTTP request to an HTTPS server",
		},
		{"other bytes", "junk, junk, junk", "", "first record does not look like a TLS handshake"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log harness.Buffer
			s, _ := newTLSServer(t, func(o *Options) {
				o.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			t.Run("", func(t *testing.T) {
				conn := dial(t, loopback(t, s))
				if _, err := io.WriteString(conn, c.sent); err != nil {
					t.Fatal(err)
				}
				reply, err := io.ReadAll(conn)
				if !strings.HasPrefix(string(reply), c.reply) || err != nil {
					t.Errorf("%q %v", reply, err)
				}
				soon(t, "the connection is counted out", func() bool { return s.open.Load() == 1 })
			})
			// net/http logs after it has closed the connection.
			soon(t, "the log says why", func() bool {
				return strings.Contains(log.String(), "http: TLS handshake error from ") &&
					strings.Contains(log.String(), c.logged)
			})
		})
	}
}

func TestSlowHandshakesDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, config := newTLSServer(t, nil)
		p := serve(t, s)
		start := time.Now()
		var silent []net.Conn
		for range maxHandshakes + 1 {
			c := p.dial()
			defer c.Close()
			silent = append(silent, c)
		}
		for range 10 {
			c := tls.Client(p.dial(), config)
			getOver(t, c)
			c.Close()
		}
		if d := time.Since(start); d > freshTime {
			t.Errorf("served after %s", d)
		}
		// The oldest have made place, and the others end with the header timeout.
		_, err := silent[0].Read(make([]byte, 1))
		if d := time.Since(start); err != io.EOF || d > freshTime {
			t.Errorf("the oldest ends after %s: %v", d, err)
		}
		_, err = silent[maxHandshakes].Read(make([]byte, 1))
		if d := time.Since(start); err != io.EOF || d < headerTimeout || d > headerTimeout+freshTime {
			t.Errorf("the last ends after %s: %v", d, err)
		}
	})
}

func TestAHandshakeUnderWayGivesItsPlaceToAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, config := newTLSServer(t, func(o *Options) { o.Connections = 1 })
		p := serve(t, s)
		slow := p.dial()
		defer slow.Close()
		if _, err := io.WriteString(slow, "\x16\x03\x01\x02\x00"); err != nil { // begins a ClientHello
			t.Fatal(err)
		}
		start := time.Now()
		c := tls.Client(p.dial(), config)
		defer c.Close()
		getOver(t, c)
		if d := time.Since(start); d > 2*freshTime {
			t.Errorf("served after %s", d)
		}
		if _, err := slow.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the slow one: %v", err)
		}
	})
}

func TestAShutdownEndsHandshakesAndLeaksNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) {
		s, config := newTLSServer(t, nil)
		p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		var running sync.WaitGroup
		running.Go(func() {
			if err := s.Serve([]net.Listener{p}); err != nil {
				t.Errorf("serve: %v", err)
			}
		})
		var silent []net.Conn
		for range 10 {
			silent = append(silent, p.dial())
		}
		late := p.dial()
		synctest.Wait()
		s.Drain()
		start := time.Now()
		running.Go(func() {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Errorf("shutdown: %v", err)
			}
		})
		<-p.closed
		c := tls.Client(late, config) // its connection was accepted before
		if r := getOver(t, c); !r.Close {
			t.Error("the connection of the late request is to be kept")
		}
		_, _ = io.Copy(io.Discard, c) // until the server closes it
		c.Close()
		running.Wait()
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("shut down after %s", d)
		}
		for _, c := range silent {
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("a handshake is still under way: %v", err)
			}
		}
		if n := s.open.Load(); n != 0 {
			t.Errorf("%d connections are counted", n)
		}
	})
	kittest.NoGoroutines(t, before)
}

// duplex is a connection whose client can close its sending side.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// connect dials the address of a server, with TLS if config is set.
func connect(t *testing.T, address string, config *tls.Config) duplex {
	t.Helper()
	c := dial(t, address)
	if config == nil {
		return c.(*net.TCPConn)
	}
	secure := tls.Client(c, config)
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	return secure
}

// eachTransport runs a test over plain TCP and over TLS.
func eachTransport(t *testing.T, test func(t *testing.T, secure bool)) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) { test(t, secure) })
	}
}

// newServerOver returns a server and what its clients need for TLS: nil without it.
func newServerOver(t *testing.T, secure bool) (*Server, *tls.Config) {
	t.Helper()
	if secure {
		return newTLSServer(t, nil)
	}
	s, _ := newServer(t, nil)
	return s, nil
}
