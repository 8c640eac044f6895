package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/http/overload"
	"stagedoor/http/text"
	"stagedoor/providers/shapes/registry"
)

// newServer returns a server whose handlers are never called, because the tests use its own routes
// and refusals only.
func newServer(t *testing.T, change func(*Options)) (*Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	o := Options{
		Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		Text:   text.New(text.Options{Shapes: registry.All}),
		Shapes: registry.All,
		ID:     func() string { return "made" },
	}
	if change != nil {
		change(&o)
	}
	return New(o), &log
}

func get(s *Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// envelopeOf is the error of a reply, which has to be whole.
func envelopeOf(t *testing.T, name string, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var body struct{ Error map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s: %v: %s", name, err, w.Body)
	}
	for _, key := range []string{"message", "type", "param", "code"} {
		if _, ok := body.Error[key]; !ok {
			t.Errorf("%s: no %s: %s", name, key, w.Body)
		}
	}
	return body.Error
}

func TestRequestIDsAreTheClientsOwnIfHarmless(t *testing.T) {
	s, _ := newServer(t, nil)
	for id, kept := range map[string]bool{
		"a": true, "req_1-Z": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a b": false, "a\nb": false, "a.b": false, "ä": false, `a"b`: false,
		"a/b": false,
	} {
		for _, path := range []string{"/healthz", "/nowhere"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Header["X-Request-Id"] = []string{id}
			h := get(s, r).Header()
			want := "req_made"
			if kept {
				want = id
			}
			if h.Get("X-Request-Id") != want || h.Get("Request-Id") != want {
				t.Errorf("%.20q at %s: %q and %q, want %q", id, path, h.Get("X-Request-Id"), h.Get("Request-Id"), want)
			}
		}
	}
	r := httptest.NewRequest("GET", "/healthz", nil)
	r.Header["X-Request-Id"] = []string{"a", "b"}
	if id := get(s, r).Header().Get("X-Request-Id"); id != "req_made" {
		t.Errorf("of two: %q", id)
	}
}

func TestEveryReplyHasHSTSWhereTheIssuerIsHTTPS(t *testing.T) {
	for _, https := range []bool{true, false} {
		full := overload.New(overload.Limits{Requests: 1})
		s, _ := newServer(t, func(o *Options) { o.HTTPS, o.Overload = https, full })
		many := httptest.NewRequest("GET", "/healthz", nil)
		for i := range maxFields + 1 {
			many.Header.Set(fmt.Sprintf("X-%d", i), "")
		}
		replies := map[string]*httptest.ResponseRecorder{
			"health": get(
				s,
				httptest.NewRequest("GET", "/healthz", nil),
			), "unknown path": get(s, httptest.NewRequest("GET", "/nowhere", nil)),
			"wrong method": get(s, httptest.NewRequest("PUT", "/v1/models", nil)), "too many headers": get(s, many),
			"panic": get(s, httptest.NewRequest("GET", "/v1/models", nil)),
		}
		if _, _, err := full.Enter(httptest.NewRequest("GET", "/", nil)); err != nil {
			t.Fatal(err)
		}
		replies["overload"] = get(s, httptest.NewRequest("POST", "/v1/messages", nil))
		for name, w := range replies {
			if got := w.Header().Get("Strict-Transport-Security"); (got == "max-age=31536000") != https ||
				!https && got != "" {
				t.Errorf("https %t, %s (status %d): Strict-Transport-Security %q", https, name, w.Code, got)
			}
		}
	}
}

// Beyond what the process takes on, requests are refused with their body unread,
// in the shape of their path; health checks are answered all the same.
func TestOverloadIsToldAtTheDoor(t *testing.T) {
	full := overload.New(overload.Limits{Requests: 1})
	if _, _, err := full.Enter(httptest.NewRequest("GET", "/", nil)); err != nil {
		t.Fatal(err)
	}
	s, _ := newServer(t, func(o *Options) { o.Overload = full })
	for _, path := range []string{"/healthz", "/readyz"} {
		if w := get(s, httptest.NewRequest("GET", path, nil)); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1beta/models/m:generateContent", "/v1/models", "/nowhere"} {
		unread := strings.NewReader(`{"model":"m"}`)
		r := httptest.NewRequest("POST", path, unread)
		w := get(s, r)
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" ||
			unread.Len() != len(`{"model":"m"}`) {
			t.Errorf("%s: %d, %v, %d bytes unread", path, w.Code, w.Header(), unread.Len())
		}
		if w := get(s, httptest.NewRequest("GET", path, nil)); w.Code != 503 || w.Header().Get("Connection") != "" {
			t.Errorf("GET %s: %d, %v", path, w.Code, w.Header())
		}
	}
}

func TestPathsThatAreServedNowhere(t *testing.T) {
	s, _ := newServer(t, nil)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/chat", "/v1/chat/completions/", "/v1/chat//completions", "/v1/./models",
		"/v1/models/../chat/completions",
		"/v1/chat/completions/..", "/v1/.", "/v1/%2e%2e/models", "/v1/models/%2e", "/v1%2Fmodels",
		"/v1/messages/batches", "/v1/chat/completions%00",
		"/v1/chat/completions;x=1", "/V1/models", "/v1beta/models/m:fly", "/v1/" + strings.Repeat("a", 8000),
	} {
		w := get(s, httptest.NewRequest("POST", path, nil))
		if w.Code != 404 || w.Header().Get("Location") != "" {
			t.Errorf("%.60s: %d, Location %q", path, w.Code, w.Header().Get("Location"))
			continue
		}
		e := envelopeOf(t, path, w)
		want := any("unknown_url")
		switch {
		case strings.HasPrefix(path, "/v1beta/"):
			want = 404. // the third shape's errors have no words
		case strings.HasPrefix(path, "/v1/models/"):
			want = "model_not_found"
		}
		if e["code"] != want {
			t.Errorf("%.60s: code %v, want %v", path, e["code"], want)
		}
	}
}

func TestAModelsNameInAPathHasNoDotSegments(t *testing.T) {
	s, _ := newServer(t, nil)
	for _, path := range []string{"/v1beta/models/cheap-/../dear:generateContent", "/v1beta/models/cheap-%2F..%2Fdear:streamGenerateContent",
		"/v1beta/models/cheap-/%2e%2E/dear:countTokens", "/v1/models/cheap-/../dear:generateContent",
		"/v1beta/models/../models/m:generateContent"} {
		w := get(s, httptest.NewRequest("POST", path, nil))
		if w.Code != 404 || !strings.Contains(w.Body.String(), "is not served here") {
			t.Errorf("%s: %d, %s", path, w.Code, w.Body)
		}
	}
}

func TestMethodsThatAreNotServed(t *testing.T) {
	s, _ := newServer(t, nil)
	for path, allow := range map[string]string{
		"/v1/chat/completions":           "POST",
		"/v1/messages":                   "POST",
		"/v1/messages/count_tokens":      "POST",
		"/v1/responses":                  "POST",
		"/v1/responses/resp_1":           "DELETE, GET, HEAD",
		"/v1/responses/input_tokens":     "POST",
		"/v1/responses/resp_1/cancel":    "POST",
		"/v1/models":                     "GET, HEAD",
		"/v1/models/a/b":                 "GET, HEAD, POST",
		"/v1beta/models/m":               "GET, HEAD, POST",
		"/healthz":                       "GET, HEAD",
		"/v1/responses/r_1/input_items":  "GET, HEAD",
		"/v1/models/x:generateContent":   "GET, HEAD, POST",
		"/v1beta/models/x:countTokens":   "GET, HEAD, POST",
		"/v1beta/models/a/b:countTokens": "GET, HEAD, POST",
	} {
		for _, method := range []string{"PUT", "OPTIONS", "get", "TRACE"} {
			w := get(s, httptest.NewRequest(method, path, nil))
			if w.Code != 405 || w.Header().Get("Allow") != allow {
				t.Errorf("%s %s: %d, Allow %q, want %q", method, path, w.Code, w.Header().Get("Allow"), allow)
			}
			envelopeOf(t, path, w)
		}
	}
}

// A word in the place of an id is no id, with whatever method.
func TestWordsAreNoIDs(t *testing.T) {
	s, _ := newServer(t, nil)
	for _, method := range []string{"GET", "HEAD", "DELETE", "PATCH"} {
		w := get(s, httptest.NewRequest(method, "/v1/responses/input_tokens", nil))
		if w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
}

func TestErrorsSpeakTheDialectOfTheirPath(t *testing.T) {
	s, _ := newServer(t, nil)
	messages := get(s, httptest.NewRequest("PUT", "/v1/messages", nil))
	if !strings.HasPrefix(messages.Body.String(), `{"type":"error","error":{`) {
		t.Errorf("messages: %s", messages.Body)
	}
	gemini := envelopeOf(t, "gemini", get(s, httptest.NewRequest("PUT", "/v1beta/models", nil)))
	if gemini["code"] != 405. || gemini["status"] == nil {
		t.Errorf("gemini: %v", gemini)
	}
}

func TestTooManyHeaderFields(t *testing.T) {
	s, _ := newServer(t, nil)
	r := httptest.NewRequest("GET", "/healthz", nil)
	for range 100 {
		r.Header.Add("X-Many", "x")
	}
	if w := get(s, r); w.Code != 200 {
		t.Errorf("100: %d", w.Code)
	}
	r.Header.Add("X-Many", "x")
	w := get(s, r)
	if w.Code != 431 || w.Header().Get("X-Request-Id") == "" {
		t.Errorf("101: %d", w.Code)
	}
	envelopeOf(t, "101", w)
}

func TestAPanicEndsOneRequest(t *testing.T) {
	s, log := newServer(t, nil)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		status  int
		aborted bool
	}{
		{"before the reply", func(http.ResponseWriter, *http.Request) { panic("secret detail") }, 500, false},
		{"with headers set", func(w http.ResponseWriter,
			_ *http.Request) {
			w.Header().Set("Content-Type", "x")
			panic(1)
		}, 500, false},
		{"within the reply", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("half")); panic(1) }, 200,
			true},
		{"on purpose", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 200, true},
	} {
		w := httptest.NewRecorder()
		aborted := func() (aborted bool) {
			defer func() {
				reason := recover()
				aborted = reason != nil
				if err, ok := reason.(error); aborted && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
					t.Errorf("%s: panicked with %v", c.name, reason)
				}
			}()
			s.handler(c.handler).ServeHTTP(w, httptest.NewRequest("POST", "/v1/messages", nil))
			return false
		}()
		if aborted != c.aborted || w.Code != c.status {
			t.Errorf("%s: aborted %v, %d", c.name, aborted, w.Code)
		}
		if c.status == 500 {
			if e := envelopeOf(t, c.name, w); e["code"] != "internal_error" ||
				strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s: %s", c.name, w.Body)
			}
		}
	}
	if n := strings.Count(log.String(), `"msg":"request"`); n != 4 {
		t.Errorf("%d lines for 4 requests", n)
	}
}

func TestTheLogSaysWhetherAReplyIsCutOffBecauseItsClientHasLeft(t *testing.T) {
	for status, left := range map[string]bool{`"status":500`: false, `"status":499`: true} {
		s, log := newServer(t, nil)
		ctx, leave := context.WithCancel(t.Context())
		func() {
			defer func() { _ = recover() }() // net/http cuts the connection off
			s.handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Write([]byte("half"))
				if left {
					leave()
				}
				panic(http.ErrAbortHandler)
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/v1/videos/1/content", nil))
		}()
		leave()
		if !strings.Contains(log.String(), status) {
			t.Errorf("left %v: %s", left, log)
		}
	}
}

func TestHealthAndReadiness(t *testing.T) {
	var health Health
	s, _ := newServer(t, func(o *Options) { o.Health = func(context.Context) Health { return health } })
	broken := Condition{"store_failed", "the store failed"}
	slow := Condition{"provider_failing", "1 of 2 providers failing"}
	for _, c := range []struct {
		health Health
		drain  bool
		code   int
		want   string
	}{
		{Health{}, false, 200, `{"status":"ready"}`},
		{Health{Degraded: []Condition{slow}}, false, 200,
			`{"status":"ready","degraded":[{"code":"provider_failing","message":"1 of 2 providers failing"}]}`},
		{Health{Blocking: []Condition{broken}}, false, 503,
			`{"status":"not_ready","reasons":[{"code":"store_failed","message":"the store failed"}]}`},
		{Health{Blocking: []Condition{broken}}, true, 503,
			`{"status":"not_ready","reasons":[{"code":"draining","message":"the gateway is shutting down"},{"code":"store_failed","message":"the store failed"}]}`},
		{Health{}, true, 503, `{"status":"not_ready","reasons":[{"code":"draining","message":"the gateway is shutting down"}]}`},
	} {
		health = c.health
		if c.drain {
			s.Drain()
		}
		w := get(s, httptest.NewRequest("GET", "/readyz", nil))
		if got := strings.TrimSpace(w.Body.String()); w.Code != c.code || got != c.want ||
			(w.Code == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%+v: %d %s, want %d %s", c.health, w.Code, got, c.code, c.want)
		}
		if w := get(s, httptest.NewRequest("GET", "/healthz", nil)); w.Code != 200 {
			t.Errorf("healthz: %d", w.Code)
		}
	}
}

// pipes is a listener whose connections exist in memory only.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve runs s on connections in memory until the test ends.
func serve(t *testing.T, s *Server) *pipes {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve([]net.Listener{p}); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() { s.Close(); p.Close(); wg.Wait() })
	return p
}

// TestWhatNetHTTPMakesOfOddRequests pins how raw bytes arrive: they are refused before any handler, or are one
// request with one reply.
func TestWhatNetHTTPMakesOfOddRequests(t *testing.T) {
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"absolute form", "GET http://elsewhere/healthz HTTP/1.1\r\nHost: a\r\n\r\n", 200},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 404},
		{"CONNECT", "CONNECT elsewhere:443 HTTP/1.1\r\nHost: a\r\n\r\n", 404},
		{"lower-case method", "get /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 405},
		{"length and chunks", "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"two lengths", "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400},
		{"signed length", "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde", 400},
		{"unknown coding", "GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
		{"space before the colon", "GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n", 400},
		{"two hosts", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n", 400},
		{"junk expectation", "POST /healthz HTTP/1.1\r\nHost: a\r\nExpect: junk\r\nContent-Length: 0\r\n\r\n", 417},
		{"header of 40 KiB", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Big: " + strings.Repeat("a", 40<<10) + "\r\n\r\n",
			431},
		{"request id with a line break", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\r\nSet-Cookie: b\r\n\r\n",
			200},
	} {
		s, _ := newServer(t, nil)
		p := serve(t, s)
		conn := p.dial()
		go io.WriteString(conn, c.request)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%s: %v %v, want %d", c.name, res, err, c.status)
		} else if res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", c.name, res.Header)
		} else if id := res.Header.Get("X-Request-Id"); res.Header.Get("Content-Type") == "application/json" && id == "" {
			t.Errorf("%s: no request id", c.name)
		}
		conn.Close()
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	s, _ := newServer(t, nil)
	conn := serve(t, s).dial()
	defer conn.Close()
	go func() {
		for i := range 100 {
			fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: r%d\r\n\r\n", i)
		}
	}()
	replies := bufio.NewReader(conn)
	for i := range 100 {
		res, err := http.ReadResponse(replies, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		if id := res.Header.Get("X-Request-Id"); id != fmt.Sprintf("r%d", i) {
			t.Fatalf("reply %d has id %q", i, id)
		}
	}
}

func TestASlowHeaderIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, nil)
		conn := serve(t, s).dial()
		defer conn.Close()
		start := time.Now()
		io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHo")
		io.Copy(io.Discard, conn) // until the server closes it
		if d := time.Since(start); d < headerTimeout || d > 2*headerTimeout {
			t.Errorf("closed after %s", d)
		}
	})
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, nil)
		conn := serve(t, s).dial()
		defer conn.Close()
		start := time.Now()
		io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
		io.Copy(io.Discard, conn)
		if d := time.Since(start); d < idleTimeout || d > idleTimeout+5*time.Second {
			t.Errorf("closed after %s", d)
		}
	})
}

// TestALargeReplyHasTimeForEveryPiece reads a megabyte so slowly that a limit
// for the whole of it would cut it off.
func TestALargeReplyHasTimeForEveryPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		c := &conn{Conn: server, open: new(atomic.Int64)}
		written := make(chan error, 1)
		go func() {
			n, err := c.Write(make([]byte, 1<<20))
			if n != 1<<20 {
				err = errors.Join(err, fmt.Errorf("%d bytes", n))
			}
			written <- err
		}()
		buf := make([]byte, piece)
		for range 1 << 20 / piece {
			time.Sleep(10 * time.Second)
			if _, err := io.ReadFull(client, buf); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
}

func TestAWriteNobodyTakesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		c := &conn{Conn: server, open: new(atomic.Int64)}
		start := time.Now()
		_, err := c.Write([]byte("x"))
		var timeout net.Error
		if d := time.Since(start); !errors.As(err, &timeout) || !timeout.Timeout() || d > writeTimeout {
			t.Errorf("after %s: %v", d, err)
		}
		// A deadline set by another caller does not replace ours.
		c.SetWriteDeadline(time.Time{})
		start = time.Now()
		if _, err := c.Write([]byte("x")); err == nil || time.Since(start) > writeTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// TestAStreamOfHTTP2ThatIsNotReadEnds has a client whose connection works while
// it never opens the window of one stream.
func TestAStreamOfHTTP2ThatIsNotReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, nil)
		ended := make(chan error, 1)
		s.http.Handler = s.handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/small" {
				return
			}
			var err error
			for err == nil {
				_, err = w.Write(make([]byte, 1<<20))
			}
			ended <- err
		}))
		client := serveHTTP2(t, s)
		start := time.Now()
		res, err := client.Get("https://gateway.test/large")
		if err != nil || res.ProtoMajor != 2 {
			t.Fatal(res, err)
		}
		defer res.Body.Close()
		if err := <-ended; err == nil || time.Since(start) > 2*writeTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		small, err := client.Get("https://gateway.test/small")
		if err != nil || small.StatusCode != 200 {
			t.Errorf("the connection suffers: %v %v", small, err)
		} else {
			small.Body.Close()
		}
	})
}

// TestRapidResetsLeaveNothingBehind has a client that takes back every stream as
// soon as it is served: each handler ends, and others are served.
func TestRapidResetsLeaveNothingBehind(t *testing.T) {
	s, _ := newServer(t, nil)
	entered := make(chan struct{})
	var running sync.WaitGroup
	s.http.Handler = s.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			return
		}
		running.Add(1)
		defer running.Done()
		entered <- struct{}{}
		<-r.Context().Done()
	}))
	client := serveHTTP2(t, s)
	for range 1000 {
		ctx, reset := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", "https://gateway.test/slow", nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := client.Do(r)
			ended <- err
		}()
		<-entered
		reset()
		if err := <-ended; err == nil {
			t.Fatal("a stream that was taken back was answered")
		}
	}
	res, err := client.Get("https://gateway.test/small")
	if err != nil || res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Fatalf("another client is not served: %v %v", res, err)
	}
	res.Body.Close()
	running.Wait()
}

// serveHTTP2 serves until the test ends, and returns a client that speaks HTTP/2.
func serveHTTP2(t *testing.T, s *Server) *http.Client {
	t.Helper()
	certificate := certify(t)
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { s.http.Serve(newTLSListener(newListener(p, &s.open, newSlots(0)), tlsConfig(certificate))) })
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial(), nil }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
		wg.Wait()
	})
	return &http.Client{Transport: transport}
}

// certify makes a certificate for gateway.test.
func certify(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{"gateway.test"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A connection that was accepted before a shutdown may bring its request after it.
func TestALateRequestOfAShutdownIsServed(t *testing.T) {
	s, _ := newServer(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if err := s.Serve([]net.Listener{l}); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	soon(t, "it is accepted", func() bool { return s.open.Load() == 2 }) // and the next one is waited for
	s.Drain()
	wg.Go(func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	soon(t, "nothing more is accepted", func() bool {
		other, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			_ = other.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || r.StatusCode != http.StatusOK || !r.Close {
		t.Errorf("it is answered %+v, %v", r, err)
	}
}

// soon waits for what other goroutines do.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen: " + what)
		}
	}
}
