package faults

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
)

// uploadSize is more than every buffer between the gateway and an upstream that
// does not read.
const uploadSize = 8 << 20

// upload is a client's request with a body of uploadSize.
func (w way) upload(t testing.TB, b *bench, model string) *http.Request {
	t.Helper()
	r := w.request(t.Context(), t, b.gateway, model)
	text := strings.Replace(w.body(model), `"hi"`, `"`+strings.Repeat("a", uploadSize)+`"`, 1)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return r
}

// An uploadFault is a row about upstreams that do not take what they are sent.
type uploadFault struct {
	id, title string
	play      func(*faultd.Conn)
	want      outcome
	short     bool // clocks that the row waits for
}

func uploadFaults() []uploadFault {
	early := func(end func(*faultd.Conn)) func(*faultd.Conn) {
		return func(c *faultd.Conn) {
			_, _ = io.CopyN(io.Discard, c.Request.Body, 100<<10) // a torn upload shows in the reply
			c.Whole(http.StatusRequestEntityTooLarge, "application/json",
				chatWire.Error(413, "invalid_request_error", "too long"), "Connection: close")
			end(c)
		}
	}
	return []uploadFault{
		{
			"u42-stall",
			"an upstream that reads nothing",
			func(c *faultd.Conn) { c.Pause(time.Minute) },
			refused(504),
			true,
		},
		{"u42-drip", "an upstream that reads byte by byte", func(c *faultd.Conn) {
			for range 6000 {
				if _, err := io.CopyN(io.Discard, c.Request.Body, 1); err != nil {
					return
				}
				c.Pause(10 * time.Millisecond)
			}
		}, refused(504), true},
		{"u42-slow", "an upstream that takes its time", func(c *faultd.Conn) {
			for {
				if _, err := io.CopyN(io.Discard, c.Request.Body, 1<<20); err != nil {
					break
				}
				c.Pause(20 * time.Millisecond)
			}
			c.Whole(http.StatusOK, "application/json", chatWire.Whole)
		}, answered, false},
		// A reset takes with it what has not been read by then.
		{"u43-reset", "an early answer, then a reset", early(func(c *faultd.Conn) {
			c.Pause(5 * time.Second)
			c.Reset()
		}), refused(413), false},
		{
			"u43-close",
			"an early answer, then closed",
			early(func(c *faultd.Conn) { c.Pause(5 * time.Second) }),
			refused(413),
			false,
		},
		{
			"u43-open",
			"an early answer, and the connection left open",
			early(func(c *faultd.Conn) { c.Pause(time.Minute) }),
			refused(413),
			false,
		},
		{"u5-upload", "a reset in the middle of the upload", func(c *faultd.Conn) {
			_, _ = io.CopyN(io.Discard, c.Request.Body, 100<<10) // as above
			c.Reset()
		}, refused(502), false},
	}
}

// TestUploadFaults: an upstream that does not take a request, or answers before it
// has it, ends it in time and with what it said. With -short each row meets a third of
// the ways of asking, and the next row another third.
func TestUploadFaults(t *testing.T) {
	rows := uploadFaults()
	asked := []way{
		{cases.Chat, false},
		{cases.Chat, true},
		{cases.Messages, false},
		{cases.Responses, true},
		{cases.Completions, false},
		{cases.Gemini, true},
	}
	rows = append(rows, uploadFault{"u44-window", "an HTTP/2 window that stays shut", nil, refused(504), true})
	meets := func(row, asked int) bool { return !testing.Short() || row%3 == asked%3 }
	var cells []cell
	for i, r := range rows {
		for j, w := range asked {
			if r.play == nil || !meets(i, j) {
				continue
			}
			c := cell{name: r.id + "-" + w.String(), upstream: cases.Chat, timeouts: patient}
			if r.short {
				c.timeouts = impatient
			}
			cells = append(cells, c)
		}
	}
	server := newServer(t)
	addr, err := server.HTTP2(issue(t, newAuthority(t), time.Now().Add(time.Hour)), "window", goodStream,
		faultd.Setting{ID: faultd.InitialWindowSize})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range asked {
		cells = append(
			cells,
			cell{
				name:     "u44-window-" + w.String(),
				upstream: cases.Chat,
				baseURL:  "https://" + addr + "/v1",
				timeouts: impatient,
			},
		)
	}
	b := newBench(t, cells)
	for i, r := range rows {
		for j, w := range asked {
			if !meets(i, j) {
				continue
			}
			name := r.id + "-" + w.String()
			if r.play != nil {
				b.server.HandleUnread(name, r.play)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				response, err := client.Do(w.upload(t, b, name))
				if err != nil {
					t.Fatalf("no reply: %v", err)
				}
				reply := cases.ReadReply(response)
				for _, bad := range r.want.judge(reply, w, cases.Chat, false, []string{b.server.Addr(), upstreamKey, "127.0.0.1"}) {
					t.Errorf("%s: %s", r.title, bad)
				}
				if got := b.server.Calls(name); r.play != nil && got != 1 {
					t.Errorf("%s: the upstream was called %d times, want once", r.title, got)
				}
			})
		}
	}
}
