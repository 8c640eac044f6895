// Package server owns the listeners and does the work that all requests have in common: request ids, connection
// limits, panics, routing (routes.go lists every route), health and drain. The handlers are in the packages beside
// it.
//
// Usage: New makes a Server from Options, Listen opens the addresses, and Serve accepts connections until Shutdown.
// Drain makes the server report that it is not ready, while it still accepts.
//
// # Requests
//
// A request passes these layers before its handler, each of which can end it:
//
//	conn.go slots.go   a place among the connections, which an idle connection gives up under pressure
//	tls.go             the handshake, apart from Accept, so that a slow client delays no other
//	framing.go          which bytes are headers, because requests of ambiguous length are refused
//	http1.go            that refusal, and clients that have left while a handler runs
//	unreadable.go       the errors of net/http for requests that it cannot read, in the envelope of all errors
//	server.go          the request id, the access log, panics, the trace
//	alias.go locate.go further names of paths, versions in paths, suggestions for unknown paths
//	routes.go          the table of routes
//
// # Health
//
// /healthz says that the process lives. It succeeds also while the gateway drains, is overloaded or has lost its
// store, because a restart would not help then. /readyz says whether the gateway should get requests. Blocking
// conditions take it out of service. Degraded ones are only shown, because taking a gateway out of service for a
// provider that fails would take its pages and its honest errors away, too.
//
// # Concurrency
//
// A Server is safe for concurrent use. Serve may be called once. Drain, Shutdown and Close may be called at any time,
// also together.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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
	"stagedoor/http/responsesocket"
	"stagedoor/http/text"
	"stagedoor/http/web/portal"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Limits of a connection.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 32 << 10
	maxFields     = 100
	// bodyTimeout limits the time that a client takes for a request and the first bytes of
	// its body. Handlers extend it as the body arrives.
	bodyTimeout = 10 * time.Second
	// sendBuffer keeps a client that reads nothing from filling megabytes of kernel
	// memory before a write times out.
	sendBuffer = 128 << 10
)

// hsts lasts a year. It leaves out subdomains, which may belong to other services.
var hsts = []string{"max-age=31536000"}

// Options configure a Server.
type Options struct {
	Logger *slog.Logger
	Text   *text.Handlers
	// Media, if not nil, serves pictures and videos.
	Media *media.Handlers
	// Live, if not nil, serves clients that watch for changes.
	Live *live.Handlers
	// Socket, if not nil, serves responses over WebSockets.
	Socket *responsesocket.Handlers
	// OAuth, if not nil, is the authorization service. Portal, if not nil, serves the
	// pages of accounts and administration.
	OAuth  *oauth.Service
	Portal *portal.Portal
	// Admin, if not nil, is the API of administration.
	Admin  *adminapi.API
	Shapes []*shapes.Shape
	// Aliases give paths further names.
	Aliases []Alias
	// Overload limits the requests in flight and their bodies. Nil means no limit.
	Overload *overload.Limiter
	// Proxies are the networks of proxies whose X-Forwarded-For names the client. No other header is believed.
	Proxies []netip.Prefix
	// Connections is the most connections at a time. Zero means no limit.
	Connections int
	// Tracing, if not nil, traces requests. Metrics, if not nil, counts them.
	Tracing *Tracing
	Metrics *telemetry.Metrics
	// Scrape, if not nil, serves /metrics.
	Scrape *Scrape
	// ID returns a new, unique request id.
	ID func() string
	// HTTPS says that browsers reach the gateway by https, whether it ends TLS itself
	// or a proxy does. Every reply then has Strict-Transport-Security.
	HTTPS bool
	// CertFile and KeyFile make the listeners speak TLS.
	CertFile, KeyFile string
	// Stale, if not nil, reports that what this gateway knows may be out of date, because another one may have taken
	// over. Then all requests are refused, except health checks and metrics.
	Stale func() bool
	// Health reports reasons other than the drain for which the gateway is not ready.
	Health func(context.Context) Health
}

// Server serves HTTP on any number of listeners.
type Server struct {
	options  Options
	http     *http.Server
	router   *router
	draining atomic.Bool
	open     atomic.Int64 // connections, and one for each pending Accept
	slots    *slots

	mu        sync.Mutex
	listeners []*listener
}

// New returns a Server that does not listen yet.
func New(o Options) *Server {
	if o.Overload == nil {
		o.Overload = overload.New(overload.Limits{})
	}
	s := &Server{options: o, slots: newSlots(o.Connections)}
	s.http = &http.Server{
		Handler:           s.handler(s.routes(o.Text)),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		IdleTimeout:       idleTimeout,
		ConnState:         s.slots.observe,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * gets a 404 with a request id instead of net/http's own reply.
		DisableGeneralOptionsHandler: true,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReceiveBufferPerStream: 64 << 10,
			WriteByteTimeout: writeTimeout, SendPingTimeout: idleTimeout},
		ErrorLog: debugLog(o.Logger),
	}
	return s
}

// debugLog returns the log of what net/http reports about clients, which only a debugging operator wants to see.
func debugLog(to *slog.Logger) *log.Logger { return slog.NewLogLogger(to.Handler(), slog.LevelDebug) }

// Handler returns the handler of all requests, for tests and for other listeners.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Listen opens TCP listeners on the addresses. It opens all of them or none.
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

// Adopt prepares listeners that another process has opened, as at a handover.
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

// boundSends sets sendBuffer on a listener. Its connections inherit it.
func boundSends(c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBuffer)
	}); cerr != nil {
		return cerr
	}
	return err
}

// Serve accepts connections on every listener until Shutdown, and returns the first error.
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
		if s.options.ID != nil {
			plain.refuse = s.refuseUnread
		}
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

// Drain makes /readyz fail and closes each connection after its current request. The server still
// accepts connections, so that load balancers have time to notice.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
}

// Shutdown stops accepting and waits for the requests in flight until ctx ends. It also serves
// requests that arrive shortly afterwards on connections that were accepted before.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	for _, l := range s.listeners {
		l.stop()
	}
	s.mu.Unlock()
	s.awaitConnections(ctx)
	return s.http.Shutdown(ctx)
}

const (
	// lastRequest limits the time that a shutdown waits for requests on connections without one.
	lastRequest = time.Second
	// lookEvery is the interval at which a shutdown checks whether the last connection has ended.
	lookEvery = 5 * time.Millisecond
)

// awaitConnections waits until no connection is left or lastRequest has passed. The connections that
// are left then have a request in flight or are idle.
func (s *Server) awaitConnections(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	ctx, cancel := context.WithTimeout(ctx, lastRequest)
	defer cancel()
	for s.open.Load() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// listening records a listener, so that Close can close it.
func (s *Server) listening(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
}

// Close closes every connection at once.
func (s *Server) Close() error { return s.http.Close() }

// handler wraps the routes in the steps that every request passes through. Each stream keeps the frame of the function
// on its stack, so the steps are functions of their own.
func (s *Server) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply, id := s.begin(w, r)
		r, span := s.trace(r, reply, id)
		defer s.end(reply, r, id, span)
		if e := malformed(r); e != nil {
			w.Header().Set("Connection", "close")
			lingerAfter(reply.ResponseWriter, r)
			envelope.Write(reply, s.dialect(r.URL.Path), e)
			return
		}
		if healthPath(r.URL.Path) {
			next.ServeHTTP(reply, r)
			return
		}
		if s.options.Stale != nil && r.URL.Path != "/metrics" && s.options.Stale() {
			lingerAfter(reply.ResponseWriter, r)
			s.refuse(reply, r, dialogue.Stale())
			return
		}
		counted, share, err := s.enter(r)
		if err != nil {
			lingerAfter(reply.ResponseWriter, r)
			s.refuse(reply, r, err)
			return
		}
		defer share.End()
		next.ServeHTTP(reply, counted)
		if !share.BodyRead() {
			lingerAfter(reply.ResponseWriter, r)
		}
	})
}

// begin sets the headers of all replies and begins the request's line in the access log. It returns the request's id.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) (reply *accesslog.Reply, id string) {
	believeProxies(s.options.Proxies, r)
	id = s.requestID(r)
	h := w.Header()
	ids := []string{id}
	h["X-Request-Id"], h["Request-Id"] = ids, ids
	if s.options.HTTPS {
		h["Strict-Transport-Security"] = hsts
	}
	if r.ProtoMajor == 2 {
		w = newStream(w)
	}
	if r.ContentLength == 0 {
		// The deadline is for bodies, and readers of bodies clear it at the end. If
		// it passed later, net/http would treat it as a client that has left.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	return accesslog.Begin(s.options.Logger, w, r), id
}

// trace starts the span of a request. The span is nil if the request is not traced.
func (s *Server) trace(r *http.Request, reply *accesslog.Reply, id string) (*http.Request, trace.Span) {
	if !s.options.Tracing.on(r) {
		return r, nil
	}
	r, span := s.options.Tracing.begin(r, id)
	reply.Traced(span.SpanContext().TraceID().String())
	return r, span
}

// end ends a request whose handler has returned or panicked. A panic ends only the request. Each step is taken even if
// one before it panics, as the first does to have net/http cut off a reply that has begun.
func (s *Server) end(reply *accesslog.Reply, r *http.Request, id string, span trace.Span) {
	reason := recover()
	defer reply.End(id)
	defer s.measure(r, reply)
	if span != nil {
		defer s.options.Tracing.end(span, r, reply)
	}
	if reason != nil {
		s.panicked(reply, r, id, reason)
	}
}

// malformed returns the refusal of a request with ambiguous framing or too many header fields, or nil.
func malformed(r *http.Request) *dialogue.Error {
	if e := marked(r); e != nil {
		return e
	}
	if fields(r.Header) > maxFields {
		return tooManyHeaders(fmt.Sprintf("the request has more than %d header fields", maxFields))
	}
	return nil
}

// lingerAfter makes net/http close the connection in two steps after a reply to a request whose body was
// not read to its end, as it does by itself for most such requests: it ends its sending side and waits half
// a second. It does not do so if the client has asked for the end of the connection. The bytes that still
// arrive would then reset the connection, and the client would lose the reply. A MaxBytesReader that is
// exceeded asks for the two steps.
func lingerAfter(w http.ResponseWriter, r *http.Request) {
	if r.Close && r.ContentLength != 0 && r.ProtoMajor == 1 {
		_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("too long")), 0).Read(make([]byte, 1))
	}
}

// enter admits a request, or returns the error that refuses it.
func (s *Server) enter(r *http.Request) (*http.Request, *overload.Share, error) {
	if operatorPath(r.URL.Path) {
		return s.options.Overload.EnterReserved(r)
	}
	return s.options.Overload.Enter(r)
}

// refuse writes the error of a request whose body will not be read.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
	e := envelope.From(err)
	accesslog.Note(w, slog.String("error", telemetry.ErrorName(e)))
	envelope.Write(w, s.dialect(r.URL.Path), e)
}

// fields counts header fields. A repeated field counts each time.
func fields(h http.Header) int {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n
}

// requestID returns the client's own id if it is short and has only letters, digits, _ and -, or else
// a new id.
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

// panicked replies to a request whose handler panicked, and logs why. http.ErrAbortHandler is how handlers cut off a
// reply that has begun, mostly because its client has left.
func (s *Server) panicked(w *accesslog.Reply, r *http.Request, id string, reason any) {
	accesslog.Outcome(w, http.StatusInternalServerError)
	if reason == http.ErrAbortHandler {
		if r.Context().Err() != nil {
			accesslog.Outcome(w, dialogue.StatusClientClosed)
		}
		panic(reason)
	}
	s.options.Logger.Error("handler panicked", "request_id", id, "path", r.URL.Path,
		"panic", fmt.Sprintf("%T", reason), "stack", string(debug.Stack()))
	if w.Begun() {
		panic(http.ErrAbortHandler) // the reply can only be cut off
	}
	envelope.Write(w, s.dialect(r.URL.Path), errors.New("panic"))
}

// dialect returns the format of errors for the clients of a path, also if the path lacks its version.
func (s *Server) dialect(path string) envelope.Dialect {
	if located, ok := s.router.locate(http.MethodPost, path); ok {
		path = located
	}
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
