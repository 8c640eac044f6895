package text_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// A web is a gateway behind real HTTP over connections that exist in memory
// only, so that time can be fake.
type web struct {
	g      *gateway
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	client *http.Client
}

func (g *gateway) listen(t *testing.T) *web {
	w := &web{g: g, conns: make(chan net.Conn), closed: make(chan struct{})}
	w.client = &http.Client{
		Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return w.dial(), nil },
		},
	}
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- g.server.Serve([]net.Listener{w}) })
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		g.server.Close()
		w.Close()
		wg.Wait()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return w
}

// dial is a client's end of a new connection.
func (w *web) dial() net.Conn {
	client, server := net.Pipe()
	select {
	case w.conns <- server:
	case <-w.closed:
	}
	return client
}

// Accept implements net.Listener.
func (w *web) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (w *web) Close() error { w.once.Do(func() { close(w.closed) }); return nil }

// Addr implements net.Listener.
func (w *web) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// An open stream.
type stream struct {
	status int
	header http.Header
	body   *bufio.Reader
	io.Closer
}

func (w *web) stream(t *testing.T, method, path, body string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.g.secrets["all"])
	res, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return &stream{res.StatusCode, res.Header, bufio.NewReader(res.Body), res.Body}
}

// event is the next event's data; it does not exist at the end.
func (s *stream) event(t *testing.T) gjson.Result {
	t.Helper()
	for {
		line, err := s.body.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return gjson.Parse(data)
		}
		if errors.Is(err, io.EOF) {
			return gjson.Result{}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
