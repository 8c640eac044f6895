package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
)

// cancelWithin limits the time until an upstream is cancelled after its client has gone. Other work on the machine can
// delay a cancellation but never hasten it, so it is judged by the fastest one at each point of an exchange.
const cancelWithin = 100 * time.Millisecond

// A point is where in an exchange the client leaves.
type point struct {
	name     string
	streamed bool
	// speak writes the upstream's part before it waits to be cancelled.
	speak func(c *faultd.Conn, w faultd.Wire)
	// reading: the client has seen the first bytes of the reply.
	reading bool
}

var points = []point{
	{name: "before-first-byte", speak: func(*faultd.Conn, faultd.Wire) {}},
	{name: "before-first-event", streamed: true, speak: func(*faultd.Conn, faultd.Wire) {}},
	{name: "after-headers", streamed: true, speak: func(c *faultd.Conn, _ faultd.Wire) { c.StartStream() }},
	{name: "mid-whole", speak: func(c *faultd.Conn, w faultd.Wire) {
		c.Head(http.StatusOK, "Content-Type: application/json", "Transfer-Encoding: chunked")
		c.Chunk(w.Whole[:20])
	}},
	{name: "mid-stream", streamed: true, reading: true, speak: func(c *faultd.Conn, w faultd.Wire) {
		c.StartStream()
		c.Chunk(w.Begun())
	}},
	{name: "before-the-end", streamed: true, reading: true, speak: func(c *faultd.Conn, w faultd.Wire) {
		events := w.Stream()
		c.StartStream()
		c.Chunk(strings.Join(events[:len(events)-1], ""))
	}},
}

// TestClientThatLeavesCancelsTheUpstream: wherever the client goes away, the
// upstream's connection is closed at once.
func TestClientThatLeavesCancelsTheUpstream(t *testing.T) {
	type departure struct {
		point    point
		way      way
		upstream cases.Shape
		started  chan struct{}  // the upstream is waiting
		gone     chan time.Time // when it saw its peer go
	}
	var all []*departure
	var cells []cell
	for _, p := range points {
		for _, inbound := range cases.Shapes {
			for _, upstream := range (way{inbound: inbound}).upstreams() {
				d := &departure{p, way{inbound, p.streamed}, upstream, make(chan struct{}, 1), make(chan time.Time, 1)}
				all = append(all, d)
				cells = append(
					cells,
					cell{
						name:     fmt.Sprintf("%s-%s-%s", p.name, upstream, inbound),
						upstream: upstream,
						timeouts: patient,
						script: func(c *faultd.Conn) {
							d.point.speak(c, faultd.Wires[d.upstream])
							d.started <- struct{}{}
							if c.Stall() {
								d.gone <- time.Now()
							}
						},
					},
				)
			}
		}
	}
	b := newBench(t, cells)
	leave := func(t *testing.T, d *departure, model string) time.Duration {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request := d.way.request(ctx, t, b.gateway, model)
		replied := make(chan error, 1)
		first := make(chan struct{})
		go func() {
			response, err := client.Do(request)
			if err == nil {
				defer response.Body.Close()
				in := bufio.NewReader(response.Body)
				if _, err = in.ReadByte(); err == nil {
					close(first)
					_, err = io.Copy(io.Discard, in)
				}
			}
			replied <- err
		}()
		await(t, d.started, "the upstream's call")
		if d.point.reading {
			await(t, first, "the first byte")
		}
		left := time.Now()
		cancel()
		gone := await(t, d.gone, "the upstream to notice")
		if err := await(t, replied, "the client to end"); err == nil {
			t.Error("the reply was complete although the client left")
		}
		return gone.Sub(left)
	}
	fastest := map[string]time.Duration{}
	for i, d := range all {
		t.Run(cells[i].name, func(t *testing.T) {
			took := leave(t, d, cells[i].name)
			if best, ok := fastest[d.point.name]; !ok || took < best {
				fastest[d.point.name] = took
			}
		})
	}
	for name, took := range fastest {
		if took > cancelWithin {
			t.Errorf("%s: the upstream learned of it after %s at best, want %s", name, took, cancelWithin)
		}
	}
}

// await receives from a channel within a generous time.
func await[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// TestHalfARequestReachesNobody: a client that leaves while it speaks costs no call.
func TestHalfARequestReachesNobody(t *testing.T) {
	b := newBench(t, []cell{{name: "half", upstream: cases.Chat, timeouts: patient,
		script: func(c *faultd.Conn) { good(c, faultd.Wires[cases.Chat], wantsStream(c)) }}})
	w := way{cases.Chat, false}
	body := w.body("half")
	head := fmt.Sprintf(
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		b.gateway.Key,
		len(body),
	)
	for name, text := range map[string]string{"nothing": "", "half the headers": head[:len(head)/2], "the headers": head, "half the body": head + body[:len(body)/2]} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.gateway.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		// A whole request behind it: when it is answered, the half one has been seen.
		before := b.server.Calls("half")
		w.ask(t, b.gateway, "half")
		if got := b.server.Calls("half") - before; got != 1 {
			t.Errorf("%s: the upstream was called %d times, want once, for the request that was whole", name, got)
		}
	}
}

// TestAClientThatStopsSendingGetsItsAnswer has clients that close their sending side behind the
// request, as a client does that pipes its request through netcat. One of them leaves later on.
func TestAClientThatStopsSendingGetsItsAnswer(t *testing.T) {
	started, release, gone := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)
	b := newBench(t, []cell{
		{name: "answered", upstream: cases.Chat, timeouts: patient, script: func(c *faultd.Conn) {
			streamed := wantsStream(c)
			started <- struct{}{}
			<-release
			good(c, faultd.Wires[cases.Chat], streamed)
		}},
		{name: "left", upstream: cases.Chat, timeouts: patient, script: func(c *faultd.Conn) {
			started <- struct{}{}
			if c.Stall() {
				gone <- struct{}{}
			}
		}},
	})
	halfClose := func(w way, model string) (*net.TCPConn, *bufio.Reader) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.gateway.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := w.request(t.Context(), t, b.gateway, model).Write(conn); err != nil {
			t.Fatal(err)
		}
		await(t, started, "the upstream's call")
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		// The gateway asks whether the client is there by a reply that every client ignores.
		if r, err := http.ReadResponse(in, nil); err != nil || r.StatusCode != http.StatusContinue {
			t.Fatalf("%v: %v %v", w, r, err)
		}
		return conn.(*net.TCPConn), in
	}
	for _, streamed := range []bool{false, true} {
		w := way{cases.Chat, streamed}
		_, in := halfClose(w, "answered")
		release <- struct{}{}
		r, err := http.ReadResponse(in, nil)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%v: %v %v", w, r, err)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(text), `"finish_reason":"stop"`) {
			t.Errorf("%v: %v: %s", w, err, text)
		}
	}
	conn, _ := halfClose(way{cases.Chat, false}, "left")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, gone, "the upstream to be cancelled")
}
