// Package server owns the listeners and what is common to every request:
// request ids, limits of the connection, panics, the routes on one page
// (routes.go), health and drain. What the routes do is their packages' business.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sourcegraph/conc/pool"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/http/accesslog"
	"stagedoor/http/adminapi"
	"stagedoor/http/envelope"
	"stagedoor/http/live"
	"stagedoor/http/media"
	"stagedoor/http/oauth"
	"stagedoor/http/overload"
	"stagedoor/http/text"
	"stagedoor/http/web/portal"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Limits of a connection (faults.md 3).
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 32 << 10
	maxFields     = 100
	// bodyTimeout is how long a client may take for a request and the first piece of
	// its body; the doors extend it as the body arrives.
	bodyTimeout = 10 * time.Second
	// sendBuffer keeps a client that reads nothing from filling megabytes of
	// kernel memory before anybody notices.
	sendBuffer = 128 << 10
)

// hsts lasts a year. It leaves out subdomains, which may belong to other services.
var hsts = []string{"max-age=31536000"}

// Options configure a Server.
type Options struct {
	Logger *slog.Logger
	Doors  *text.Doors
	// Media are the doors of pictures; nil: there are none.
	Media *media.Doors
	// Live are the doors of those who watch; nil: there are none.
	Live *live.Doors
	// OAuth is the authorization service, Portal the pages of accounts and
	// administration; nil: there is none.
	OAuth  *oauth.Service
	Portal *portal.Portal
	// Admin is the API of administration; nil: there is none.
	Admin  *adminapi.API
	Shapes []*shapes.Shape
	// Aliases are further names of paths.
	Aliases []Alias
	// Overload limits the requests in flight and their bodies. Nil means no limit.
	Overload *overload.Limiter
	// Connections is how many clients may be connected at a time; 0: any number.
	Connections int
	// Tracing traces requests, Metrics counts them; nil: nobody does.
	Tracing *Tracing
	Metrics *telemetry.Metrics
	// Scrape serves /metrics; nil: nobody does.
	Scrape *Scrape
	// ID makes request ids.
	ID func() string
	// HTTPS says that browsers reach the gateway by https, whether it ends TLS itself
	// or a proxy does. Every reply then has Strict-Transport-Security.
	HTTPS bool
	// CertFile and KeyFile make the listeners speak TLS.
	CertFile, KeyFile string
	// Health says what is not ready, if anything, besides the drain.
	Health func(context.Context) Health
}

// Server serves HTTP on any number of listeners.
type Server struct {
	options  Options
	http     *http.Server
	draining atomic.Bool
	open     atomic.Int64 // connections, and those that may be accepted this moment
	slots    *slots

	mu        sync.Mutex
	listeners []*listener
}

// New makes a Server.
func New(o Options) *Server {
	if o.Overload == nil {
		o.Overload = overload.New(overload.Limits{})
	}
	s := &Server{options: o, slots: newSlots(o.Connections)}
	s.http = &http.Server{
		Handler:           s.handler(s.routes(o.Doors)),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		IdleTimeout:       idleTimeout,
		ConnState:         s.slots.observe,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * is a path nobody serves, not a reply without a request id.
		DisableGeneralOptionsHandler: true,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerStream: 64 << 10,
			WriteByteTimeout: writeTimeout, SendPingTimeout: idleTimeout},
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Handler is everything the server does with a request.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Listen opens the addresses.
func Listen(ctx context.Context, addresses []string) ([]net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return boundSends(c) }}
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

// Adopt prepares listeners that somebody else has opened.
func Adopt(listeners []net.Listener) error {
	for _, l := range listeners {
		socket, ok := l.(syscall.Conn)
		if !ok {
			continue
		}
		c, err := socket.SyscallConn()
		if err == nil {
			err = boundSends(c)
		}
		if err != nil {
			return fmt.Errorf("listen on %s: %w", l.Addr(), err)
		}
	}
	return nil
}

// boundSends sets sendBuffer on a listener; its connections inherit it.
func boundSends(c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBuffer)
	}); cerr != nil {
		return cerr
	}
	return err
}

// Serve accepts on every listener until Shutdown.
func (s *Server) Serve(listeners []net.Listener) error {
	var secure *tls.Config
	if s.options.CertFile != "" {
		certificate, err := tls.LoadX509KeyPair(s.options.CertFile, s.options.KeyFile)
		if err != nil {
			return fmt.Errorf("load the TLS certificate: %w", err)
		}
		secure = tlsConfig(certificate)
	}
	p := pool.New().WithErrors().WithFirstError()
	for _, l := range listeners {
		plain := newListener(l, &s.open, s.slots)
		s.listening(plain)
		p.Go(func() error {
			var l net.Listener = plain
			if secure != nil {
				l = newTLSListener(plain, secure)
			}
			err := s.http.Serve(l)
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

// Shutdown stops accepting and waits for the requests under way until ctx ends,
// those that connections accepted before are about to bring too.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	for _, l := range s.listeners {
		l.stop()
	}
	s.mu.Unlock()
	s.settle(ctx)
	return s.http.Shutdown(ctx)
}

const (
	// late is how long after it was accepted a connection may bring its request in
	// a shutdown.
	late = time.Second
	// lookEvery is how often a shutdown looks whether the last connection has ended.
	lookEvery = 5 * time.Millisecond
)

// settle waits until no connection is left, or late has passed: those that are
// left are under way, or silent.
func (s *Server) settle(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	ctx, cancel := context.WithTimeout(ctx, late)
	defer cancel()
	for s.open.Load() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) listening(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
}

// Close ends every connection.
func (s *Server) Close() error { return s.http.Close() }

// handler is what every request goes through.
func (s *Server) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := s.requestID(r)
		h := w.Header()
		ids := []string{id}
		h["X-Request-Id"], h["Request-Id"] = ids, ids
		if s.options.HTTPS {
			h["Strict-Transport-Security"] = hsts
		}
		if r.ProtoMajor == 2 {
			w = newStream(w)
		}
		reply := accesslog.Begin(s.options.Logger, w, r)
		defer reply.End(id)
		defer s.measure(r, reply)
		if s.options.Tracing.on(r) {
			var span trace.Span
			r, span = s.options.Tracing.begin(r, id)
			reply.Traced(span.SpanContext().TraceID().String())
			defer s.options.Tracing.end(span, r, reply)
		}
		defer s.recover(reply, r, id)
		if r.ContentLength == 0 {
			// The deadline is for bodies. Past their end their readers take it back: it
			// would be taken for a client that has left.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		}
		if e := marked(r); e != nil {
			h.Set("Connection", "close")
			envelope.Write(reply, s.dialect(r.URL.Path), e)
			return
		}
		if fields(r.Header) > maxFields {
			h.Set("Connection", "close")
			envelope.Write(reply, s.dialect(r.URL.Path), &dialogue.Error{Status: 431, Type: dialogue.TypeInvalidRequest,
				Code: "too_many_headers", Message: fmt.Sprintf("the request has more than %d header fields", maxFields)})
			return
		}
		if healthPath(r.URL.Path) {
			next.ServeHTTP(reply, r)
			return
		}
		counted, share, err := s.enter(r)
		if err != nil {
			s.refuse(reply, r, err)
			return
		}
		defer share.End()
		next.ServeHTTP(reply, counted)
	})
}

// enter takes a request on, or says why not.
func (s *Server) enter(r *http.Request) (*http.Request, *overload.Share, error) {
	if operatorPath(r.URL.Path) {
		return s.options.Overload.EnterReserved(r)
	}
	return s.options.Overload.Enter(r)
}

// refuse answers a request whose body nobody will read.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
	e := envelope.From(err)
	accesslog.Note(w, slog.String("error", telemetry.ErrorName(e)))
	envelope.Write(w, s.dialect(r.URL.Path), e)
}

// fields counts header fields, repeated ones each time.
func fields(h http.Header) int {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n
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
func (s *Server) recover(w *accesslog.Reply, r *http.Request, id string) {
	reason := recover()
	if reason == nil {
		return
	}
	accesslog.Outcome(w, http.StatusInternalServerError)
	if reason == http.ErrAbortHandler {
		panic(reason)
	}
	s.options.Logger.Error("handler panicked", "request_id", id, "path", r.URL.Path, "panic", fmt.Sprintf("%T", reason), "stack", string(debug.Stack()))
	if w.Begun() {
		panic(http.ErrAbortHandler) // cutting the reply is all that is left
	}
	envelope.Write(w, s.dialect(r.URL.Path), errors.New("panic"))
}

// dialect is how errors are written to the clients of a path.
func (s *Server) dialect(path string) envelope.Dialect {
	if own := oauth.Dialect(path); own != nil {
		return own
	}
	for _, shape := range s.options.Shapes {
		if slices.ContainsFunc(shape.ErrorPaths, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			return shape.Envelope
		}
	}
	return envelope.Plain
}
