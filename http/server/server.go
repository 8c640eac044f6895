// Package server owns the listeners and what is common to every request:
// request ids, limits of the connection, panics, the routes on one page
// (routes.go), health and drain. What the routes do is their packages' business.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/http/envelope"
	"stagedoor/http/text"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Limits of a connection (faults.md 3).
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 32 << 10
	// sendBuffer keeps a client that reads nothing from filling megabytes of
	// kernel memory before anybody notices.
	sendBuffer = 128 << 10
)

// Options configure a Server.
type Options struct {
	Logger *slog.Logger
	Doors  *text.Doors
	Shapes map[dialogue.Shape]shapes.Shape
	// ID makes request ids.
	ID func() string
	// CertFile and KeyFile make the listeners speak TLS.
	CertFile, KeyFile string
	// Ready says what is not ready, if anything.
	Ready func() error
}

// Server serves HTTP on any number of listeners.
type Server struct {
	options  Options
	http     *http.Server
	draining atomic.Bool
}

// New makes a Server.
func New(o Options) *Server {
	s := &Server{options: o}
	s.http = &http.Server{
		Handler:           s.handler(s.routes(o.Doors)),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Handler is everything the server does with a request.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Listen opens the addresses.
func Listen(ctx context.Context, addresses []string) ([]net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBuffer)
		}); cerr != nil {
			return cerr
		}
		return err
	}}
	var out []net.Listener
	for _, a := range addresses {
		l, err := lc.Listen(ctx, "tcp", a)
		if err != nil {
			for _, l := range out {
				l.Close()
			}
			return nil, fmt.Errorf("listen on %s: %w", a, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// Serve accepts on every listener until Shutdown.
func (s *Server) Serve(listeners []net.Listener) error {
	p := pool.New().WithErrors().WithFirstError()
	for _, l := range listeners {
		p.Go(func() error {
			var err error
			if s.options.CertFile != "" {
				err = s.http.ServeTLS(l, s.options.CertFile, s.options.KeyFile)
			} else {
				err = s.http.Serve(l)
			}
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return err
		})
	}
	return p.Wait()
}

// Drain makes the server not ready and closes the connections of answered
// requests, while it still accepts: whoever balances load has time to notice.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
}

// Shutdown stops accepting and waits for the requests under way until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close ends every connection.
func (s *Server) Close() error { return s.http.Close() }

func (s *Server) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := s.requestID(r)
		h := w.Header()
		ids := []string{id}
		h["X-Request-Id"], h["Request-Id"] = ids, ids
		defer s.recover(w, r, id)
		next.ServeHTTP(w, r)
	})
}

// requestID takes the client's own id if it is short and harmless.
func (s *Server) requestID(r *http.Request) string {
	v := r.Header["X-Request-Id"]
	if len(v) != 1 || len(v[0]) == 0 || len(v[0]) > 128 {
		return "req_" + s.options.ID()
	}
	for _, c := range []byte(v[0]) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return "req_" + s.options.ID()
		}
	}
	return v[0]
}

// recover keeps a panic from being more than the end of one request.
func (s *Server) recover(w http.ResponseWriter, r *http.Request, id string) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler {
		panic(reason)
	}
	s.options.Logger.Error("handler panicked", "request_id", id, "path", r.URL.Path, "panic", fmt.Sprintf("%T", reason), "stack", string(debug.Stack()))
	if w.Header().Get("Content-Type") != "" {
		panic(http.ErrAbortHandler) // the reply has begun: cutting it is all that is left
	}
	envelope.Write(w, s.dialect(r.URL.Path), errors.New("panic"))
}

// dialect is how errors are written to the clients of a path.
func (s *Server) dialect(path string) envelope.Dialect {
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		return s.options.Shapes[dialogue.Messages].Envelope
	case strings.HasPrefix(path, "/v1beta/"):
		return s.options.Shapes[dialogue.Gemini].Envelope
	default:
		return envelope.Plain
	}
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"status":"ok"}`))
}

// readyz says whether new requests should be sent here, and if not, why.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	var err error
	if s.draining.Load() {
		err = errors.New("shutting down")
	} else if s.options.Ready != nil {
		err = s.options.Ready()
	}
	if err != nil {
		envelope.Write(w, envelope.Plain, &dialogue.Error{Status: 503, Type: dialogue.TypeAPI, Code: "not_ready",
			Message: err.Error(), RetryAfter: time.Second})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"status":"ready"}`))
}
