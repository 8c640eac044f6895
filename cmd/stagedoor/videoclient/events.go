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

// Watch calls fn with the job as it is now and at every change, until the job has ended. If a connection breaks, it
// opens another one and continues there. fn is called by this goroutine.
func (c *Client) Watch(ctx context.Context, id string, fn func(*Job)) error {
	w := watch{client: c, id: id, fn: fn, pause: pause{first: c.pace}}
	for {
		err := w.connect(ctx)
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

// watch is the state of one call of Watch, over all its connections.
type watch struct {
	client *Client
	id     string
	fn     func(*Job)
	pause  pause
	last   string // id of the last event
	ended  bool
}

// connect opens one connection on which the gateway sends the events of the job, and handles them until it ends. If the
// job has ended, w.ended is set. Otherwise the error says whether Watch may connect again (passing).
func (w *watch) connect(ctx context.Context) error {
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

// listen passes the events of a stream to take until take returns an error or the stream ends. It returns errSilent if
// the gateway sends nothing for too long.
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

// late gets the job and passes it to fn. connect calls it if the gateway has no further events, because the last one
// was sent before an earlier connection broke.
func (w *watch) late(ctx context.Context) error {
	job, err := w.client.Get(ctx, w.id)
	if err != nil {
		return err
	}
	w.fn(job)
	w.ended = job.Final()
	return io.ErrUnexpectedEOF
}

// take handles one event and reports the state of the job in it. The data of an event is the job itself or an object
// with the job. take returns an error if the job was deleted.
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

// readEvents reads a stream to its end, or until take returns an error. It calls alive at each line, also at those that
// are comments.
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

// line adds a line of the stream to the event. The line is a field or a comment.
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
