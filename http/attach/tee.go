package attach

import (
	"bytes"
	"net/http"
	"strconv"

	"stagedoor/actors/kept"
)

// tee is the ResponseWriter of a request whose reply is kept. It sends the reply to the client as long as there is one,
// and always into the record. It never fails, because the request goes on without its client, or its context ends.
type tee struct {
	http.ResponseWriter
	record *kept.Record
	leave  func() // the client has left
	begun  bool
	gone   bool // the client
	stream bool
	events framer
}

// Unwrap implements the interface that http.ResponseController looks for.
func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (t *tee) WriteHeader(status int) {
	if !t.begun && status >= http.StatusOK {
		t.begun = true
		t.stream = isStream(t.Header())
		header := make(http.Header, len(carried))
		carryTo(header, t.Header())
		t.record.Start(status, header)
		t.Header()[keepsHeader] = keepsValue(header)
	}
	t.ResponseWriter.WriteHeader(status)
}

// keepsValue returns the value of keepsHeader for a reply with these headers: kept.MaxReply, or 0 if its Content-Length
// shows that the reply is too long to be kept.
func keepsValue(h http.Header) []string {
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n > kept.MaxReply {
		return keepsNothing
	}
	return keepsMost
}

var keepsMost, keepsNothing = []string{strconv.Itoa(kept.MaxReply)}, []string{"0"}

// Write implements http.ResponseWriter.
func (t *tee) Write(p []byte) (int, error) {
	if !t.begun {
		t.WriteHeader(http.StatusOK)
	}
	out, ends := p, []int(nil)
	if t.stream {
		out, ends = t.events.frame(p)
	}
	t.record.Append(out, ends)
	if !t.gone {
		_, err := t.ResponseWriter.Write(out)
		t.noteWrite(err)
	}
	return len(p), nil
}

// FlushError implements the interface that http.ResponseController looks for.
func (t *tee) FlushError() error {
	if !t.gone {
		t.noteWrite(http.NewResponseController(t.ResponseWriter).Flush())
	}
	return nil
}

// noteWrite records that the client has left if a write to it failed. Later writes go into the record only.
func (t *tee) noteWrite(err error) {
	if err != nil {
		t.gone = true
		t.leave()
	}
}

// framer finds the events in a stream of server-sent events, and numbers them from 1 on. Comments between events have
// no number.
type framer struct {
	ids    bool // an event gets a line with its number as its id
	number int64
	inside bool // an event
	middle bool // of a line
	out    []byte
	ends   []int
}

// frame returns the next bytes of a stream, with ids if they are wanted, and the offsets in them at which events end.
// Both are valid until the next call.
func (f *framer) frame(p []byte) (out []byte, ends []int) {
	f.out, f.ends = f.out[:0], f.ends[:0]
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n') + 1
		whole := n > 0
		if !whole {
			n = len(p)
		}
		line := p[:n]
		p = p[n:]
		blank := !f.middle && len(bytes.TrimRight(line, "\r\n")) == 0
		ended := blank && f.inside && whole
		switch {
		case ended:
			f.inside = false
			f.number++
			if f.ids {
				f.out = strconv.AppendInt(append(f.out, "id: "...), f.number, 10)
				f.out = append(f.out, '\n')
			}
		case !blank && !f.middle && line[0] != ':':
			f.inside = true
		}
		f.out = append(f.out, line...)
		f.middle = !whole
		if ended {
			f.ends = append(f.ends, len(f.out))
		}
	}
	return f.out, f.ends
}
