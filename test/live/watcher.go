package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"

	"stagedoor/test/harness"
)

// Job decodes the fields of a job's object that tests look at.
type Job struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Progress int    `json:"progress"`
}

// Final reports whether the job has ended.
func (j *Job) Final() bool { return j.Status == "completed" || j.Status == "failed" }

// Update is one event or message to a watcher, over either transport.
type Update struct {
	Kind     string // the event's name or the message's type
	Revision int64  // microseconds: when it changed
	Job      Job
}

// Watcher hears of jobs. One goroutine uses it.
type Watcher interface {
	// Next waits for the next news; io.EOF is the end of a stream.
	Next() (Update, error)
	Close() error
}

// transport keeps every watcher's connection apart from those that make jobs.
var transport = &http.Transport{DisableCompression: true, ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10}

// stream is a Watcher by server-sent events.
type stream struct {
	reply *http.Response
	lines *bufio.Reader
}

// Stream watches one job, or all if id is "". after is the last revision heard.
func Stream(ctx context.Context, g *harness.Gateway, id string, after int64) (Watcher, error) {
	path := "/v1/videos/events"
	if id != "" {
		path = "/v1/videos/" + id + "/events"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+g.Key)
	if after > 0 {
		r.Header.Set("Last-Event-ID", fmt.Sprint(after))
	}
	reply, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusOK {
		reply.Body.Close()
		return nil, fmt.Errorf("watch %s: %s", path, reply.Status)
	}
	return &stream{reply, bufio.NewReaderSize(reply.Body, 1<<10)}, nil
}

func (s *stream) Close() error { return s.reply.Body.Close() }

func (s *stream) Next() (n Update, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return n, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "event":
			n.Kind = value
		case name == "id":
			_, err = fmt.Sscan(value, &n.Revision)
		case name == "data":
			err = json.Unmarshal([]byte(value), &n.Job)
		case line == "\n" && n.Kind != "":
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("line %q: %w", line, err)
		}
	}
}

// socket is a Watcher over a WebSocket.
type socket struct{ conn *websocket.Conn }

// Socket watches the jobs of a subscription: "all", or a list of ids.
func Socket(ctx context.Context, g *harness.Gateway, ids any, after int64) (Watcher, error) {
	dialer := websocket.Dialer{ReadBufferSize: 1 << 10, WriteBufferSize: 512}
	conn, reply, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(g.URL, "http")+"/v1/videos/live",
		http.Header{"Authorization": {"Bearer " + g.Key}})
	if err != nil {
		if reply != nil {
			err = fmt.Errorf("%w: %s", err, reply.Status)
		}
		return nil, err
	}
	subscribe := map[string]any{"type": "subscribe", "ids": ids}
	if after > 0 {
		subscribe["after"] = after
	}
	if err := conn.WriteJSON(subscribe); err != nil {
		conn.Close()
		return nil, err
	}
	return &socket{conn}, nil
}

func (s *socket) Close() error { return s.conn.Close() }

func (s *socket) Next() (Update, error) {
	var m struct {
		Type     string `json:"type"`
		Revision int64  `json:"revision"`
		Job      Job    `json:"job"`
		Error    *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := s.conn.ReadJSON(&m); err != nil {
		return Update{}, err
	}
	if m.Error != nil {
		return Update{}, fmt.Errorf("the gateway says: %s", m.Error.Message)
	}
	return Update{m.Type, m.Revision, m.Job}, nil
}
