package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/actors/throttle"
	"stagedoor/http/auth"
	"stagedoor/http/live"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

const (
	key      = "sd-watcher"
	foreign  = "sd-another-user"
	noVideos = "sd-no-videos"
)

// me is the owner that key belongs to.
var me = state.OwnerOf("", "ann")

// A stage is the handlers behind a server whose connections are pipes, so that its
// time may be fake and nothing is buffered on the way.
type stage struct {
	t        *testing.T
	state    *state.State
	handlers *live.Handlers
	pipes    *pipes
	auth     *auth.Authenticator
	user     string // who is signed in at every browser
	page     http.HandlerFunc
}

// Member implements live.Sessions.
func (s *stage) Member(r *http.Request) (string, error) {
	if _, err := r.Cookie("session"); err != nil {
		return "", nil
	}
	return s.user, nil
}

func newStage(t *testing.T) *stage {
	t.Helper()
	store := journal.NewMemory()
	kept, err := schema.Open(store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, state: kept, pipes: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}}
	s.auth = auth.New(nil, time.Now)
	s.keys(key, foreign, noVideos)
	const watchers = 100
	s.handlers = live.New(
		live.Options{
			Logger:   slog.New(slog.DiscardHandler),
			State:    kept,
			Auth:     s.auth,
			Limits:   throttle.NewKeys(100),
			Watchers: share.New(share.Watchers, watchers, 1),
			Sessions: s,
			Origin:   "https://gateway.example",
			Now:      time.Now,
		},
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/videos/events", s.handlers.AllEvents)
	mux.HandleFunc("GET /v1/videos/live", s.handlers.Jobs)
	mux.HandleFunc("GET /v1/videos/{id}/events", s.handlers.JobEvents)
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, r *http.Request) { s.page(w, r) })
	server := &http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.pipes) }()
	t.Cleanup(func() {
		s.handlers.Drain()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.handlers.Wait(ctx); err != nil {
			t.Errorf("watchers are left: %v", err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// keys puts gateway keys in force.
func (s *stage) keys(secrets ...string) {
	var all []identity.Key
	for _, secret := range secrets {
		k := identity.Key{ID: "cfg_" + secret, Hash: state.HashSecret(secret), Name: secret, Enabled: true}
		switch secret {
		case key:
			k.User = "ann"
		case noVideos:
			k.Scopes = []string{"chat"}
		}
		all = append(all, k)
	}
	s.auth.SetFixed(all)
}

// pipes is a listener that hands out the far ends of pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial() (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// job keeps a new job.
func (s *stage) job(owner state.Owner) work.Video {
	s.t.Helper()
	random := rand.NewChaCha8(
		[32]byte{byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32())},
	)
	id, err := state.NewID("video_", time.Now(), random)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.put(
		work.Video{
			ID:        id,
			Owner:     owner,
			Key:       "cfg_" + key,
			Operation: "create",
			Model:     "video-2",
			Prompt:    "a cat",
			Size:      "720x1280",
			Seconds:   4,
			Phase:     work.VideoQueued,
			Created:   time.Now(),
			Deadline:  time.Now().Add(time.Hour),
		},
	)
}

func (s *stage) put(v work.Video) work.Video {
	s.t.Helper()
	kept, err := state.Do(context.Background(), s.state,
		func(tx *state.Tx) (work.Video, error) { return work.PutVideo(tx, v) })
	if err != nil {
		s.t.Fatal(err)
	}
	return kept
}

func (s *stage) progress(v work.Video, percent int) work.Video {
	s.t.Helper()
	v.Phase, v.Progress = work.VideoInProgress, percent
	return s.put(v)
}

func (s *stage) complete(v work.Video) work.Video {
	s.t.Helper()
	v.Phase, v.Progress, v.Completed = work.VideoCompleted, 100, time.Now()
	return s.put(v)
}

// get asks with a key and further headers, name and value in turn.
func (s *stage) get(path, key string, headers ...string) (*http.Response, *bufio.Reader) {
	s.t.Helper()
	conn, err := s.pipes.dial()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	r, err := http.NewRequest(http.MethodGet, "http://gateway"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if err := r.Write(conn); err != nil {
		s.t.Fatal(err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply, bufio.NewReader(reply.Body)
}

// An event is one of a stream.
type event struct {
	name, id string
	job      map[string]any
}

// next reads an event; io.EOF at the end. Heartbeats are passed over.
func next(t *testing.T, r *bufio.Reader) (e event, err error) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.job); err != nil {
				t.Fatalf("%q: %v", value, err)
			}
		case "":
			if e.name != "" {
				return e, nil
			}
		}
	}
}

// expect reads events with these names.
func expect(t *testing.T, r *bufio.Reader, names ...string) (last event) {
	t.Helper()
	for _, name := range names {
		e, err := next(t, r)
		if err != nil || e.name != name {
			t.Fatalf("got %+v, %v, want %s", e, err, name)
		}
		last = e
	}
	return last
}

// dial opens a socket.
func (s *stage) dial(headers http.Header) (*websocket.Conn, *http.Response, error) {
	return s.dialPath("/v1/videos/live", headers)
}

func (s *stage) dialPath(path string, headers http.Header) (*websocket.Conn, *http.Response, error) {
	d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return s.pipes.dial() }}
	return d.Dial("ws://gateway"+path, headers)
}

func (s *stage) socket() *websocket.Conn {
	s.t.Helper()
	c, reply, err := s.dial(http.Header{"Authorization": {"Bearer " + key}})
	if err != nil {
		s.t.Fatalf("%v: %v", err, reply)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// A message is one of a socket.
type message struct {
	Type     string         `json:"type"`
	Revision int64          `json:"revision"`
	Job      map[string]any `json:"job"`
	Error    map[string]any `json:"error"`
}

func say(t *testing.T, c *websocket.Conn, text string) {
	t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c *websocket.Conn, kind string) (m message) {
	t.Helper()
	if err := c.ReadJSON(&m); err != nil || m.Type != kind {
		t.Fatalf("got %+v, %v, want %s", m, err, kind)
	}
	return m
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
