package videoclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// silence is the time without an event after which a connection counts as dead. The
// gateway sends a heartbeat every 15 s.
const silence = 45 * time.Second

var errSilent = errors.New("the gateway has fallen silent")

// Watch calls fn with the job as it stands and at every change, until it has
// ended. A line that breaks is taken up again. fn is called by this goroutine.
func (c *Client) Watch(ctx context.Context, id string, fn func(*Job)) error {
	w := watch{client: c, id: id, fn: fn, pause: pause{first: c.pace}}
	for {
		err := w.once(ctx)
		switch {
		case w.ended:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passing(err):
			return err
		}
		if err := w.pause.sleep(ctx, err, c.Waits); err != nil {
			return err
		}
	}
}

// watch is one observation over any number of connections.
type watch struct {
	client *Client
	id     string
	fn     func(*Job)
	pause  pause
	last   string // id of the last event
	ended  bool
}

// once watches over one connection.
func (w *watch) once(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	header := http.Header{"Accept": {"text/event-stream"}}
	if w.last != "" {
		header.Set("Last-Event-Id", w.last)
	}
	res, err := w.client.call(ctx, http.MethodGet, path(w.id)+"/events", nil, header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNoContent {
		return w.late(ctx)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return errForeign
	}
	if err := listen(ctx, res.Body, w.take); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF // streams end with their job
}

// listen reads events until take has enough, the line ends or it falls silent.
func listen(ctx context.Context, body io.ReadCloser, take func(event) error) error {
	var silent atomic.Bool
	timer := time.AfterFunc(silence, func() {
		silent.Store(true)
		body.Close() // which ends the reading
	})
	defer timer.Stop()
	err := readEvents(body, func() { timer.Reset(silence) }, take)
	if silent.Load() {
		return errSilent
	}
	return err
}

// late asks for a job whose last event was sent before the connection broke.
func (w *watch) late(ctx context.Context) error {
	job, err := w.client.Get(ctx, w.id)
	if err != nil {
		return err
	}
	w.fn(job)
	w.ended = job.Final()
	return io.ErrUnexpectedEOF
}

// take is one event. Its data is the job, or holds it.
func (w *watch) take(e event) error {
	var doc struct {
		Job
		Inner *Job `json:"job"`
	}
	if json.Unmarshal(e.data, &doc) != nil {
		return nil // an event of a kind that this version does not know
	}
	if e.id != "" {
		w.last = e.id
	}
	w.pause.reset()
	job := &doc.Job
	if doc.Inner != nil {
		job = doc.Inner
	}
	if job.ID != w.id || job.Status == "" {
		if e.name == "deleted" {
			return &Error{Status: http.StatusNotFound, Code: "not_found", Message: "the job " + w.id + " was deleted"}
		}
		return nil
	}
	w.fn(job)
	if job.Final() {
		w.ended = true
		return io.EOF
	}
	return nil
}

// event is a server-sent event.
type event struct {
	name, id string
	data     []byte
}

// maxLine bounds a line of a stream: an event is one job, whose prompt has at
// most 32,000 characters.
const maxLine = 1 << 20

// readEvents reads a stream to its end, or until take has enough and says so by
// an error. alive is called at each line, comments too.
func readEvents(r io.Reader, alive func(), take func(event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	var e event
	for lines.Scan() {
		alive()
		line := lines.Bytes()
		if len(line) == 0 {
			if e.data != nil {
				if err := take(e); err != nil {
					return err
				}
			}
			e = event{}
			continue
		}
		e.line(line)
		if len(e.data) > maxLine {
			return bufio.ErrTooLong
		}
	}
	return lines.Err()
}

// line is a field of the event, or a comment.
func (e *event) line(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value)
	case "id":
		e.id = string(value)
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		if e.data == nil {
			e.data = []byte{}
		}
	}
}
