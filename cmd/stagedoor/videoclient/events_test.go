package videoclient

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// ErrSilent is for the tests.
var ErrSilent = errSilent

// Hurry lets a client wait only for moments.
func Hurry(c *Client) { c.pace = time.Millisecond }

// ReadSilently watches a line that says nothing after its first event, and tells
// for how long.
func ReadSilently(ctx context.Context) (time.Duration, error) {
	r, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, ": hello\n\n") // ends with the pipe
	began := time.Now()
	err := listen(ctx, r, func(event) error { return nil })
	return time.Since(began), err
}

func FuzzReadEvents(f *testing.F) {
	f.Add("event: a\nid: 1\ndata: {}\n\n")
	f.Add(": c\n\ndata\ndata: x\ndata:y\n\nid:\n\n")
	f.Add("data: unfinished")
	f.Fuzz(func(t *testing.T, text string) {
		lines, size := 0, 0
		err := readEvents(strings.NewReader(text), func() { lines++ }, func(e event) error {
			size += len(e.data)
			return nil
		})
		if err == nil && lines != strings.Count(strings.TrimSuffix(text, "\n"), "\n")+min(len(text), 1) {
			t.Errorf("%d lines of %q", lines, text)
		}
		if size > len(text) {
			t.Errorf("%d bytes of data in %q", size, text)
		}
	})
}

func TestEventsAreRead(t *testing.T) {
	var got []string
	err := readEvents(strings.NewReader(": c\n\nevent: a\nid: 1\ndata: x\ndata: y\n\ndata:z\r\n\nid: 2\n\ndata\n\ndata: cut"), func() {}, func(e event) error {
		got = append(got, e.name+"|"+e.id+"|"+string(e.data))
		return nil
	})
	if want := "a|1|x\ny / ||z / ||"; err != nil || strings.Join(got, " / ") != want {
		t.Errorf("%v %q", err, got)
	}
}
