package faults

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
	"stagedoor/test/harness"
)

// chatWire is the shape of the upstreams of the HTTP/2 rows. Their faults lie below
// any shape.
var chatWire = faultd.Wires[cases.Chat]

// goodStream answers as asked.
func goodStream(s *faultd.Stream) {
	if s.Streamed() {
		s.Head(200, "text/event-stream")
		s.Data(strings.Join(chatWire.Stream(), ""))
	} else {
		s.Head(200, "application/json")
		s.Data(chatWire.Whole)
	}
	s.End()
}

// begunStream answers up to the first delta, or half a whole reply.
func begunStream(s *faultd.Stream) {
	if s.Streamed() {
		s.Head(200, "text/event-stream")
		s.Data(chatWire.Begun())
	} else {
		s.Head(200, "application/json")
		s.Data(chatWire.Whole[:len(chatWire.Whole)/2])
	}
	s.Pause(20 * time.Millisecond)
}

// onceThenGood fails the first call only.
func onceThenGood(fail func(*faultd.Stream)) func(*faultd.Stream) {
	return func(s *faultd.Stream) {
		if s.Call == 1 {
			fail(s)
			return
		}
		goodStream(s)
	}
}

// A frameFault is a row of faults.md U44.
type frameFault struct {
	id, title     string
	play          func(*faultd.Stream)
	whole, stream outcome
	calls         int  // that the upstream sees
	short         bool // clocks of a fraction of a second
}

func frameFaults() []frameFault {
	same := func(id, title string, want outcome, calls int, play func(*faultd.Stream)) frameFault {
		return frameFault{id: id, title: title, play: play, whole: want, stream: want, calls: calls}
	}
	mid := func(id, title string, then func(*faultd.Stream)) frameFault {
		return frameFault{
			id:     id,
			title:  title,
			whole:  refused(502),
			stream: brokenOff,
			calls:  1,
			play: func(s *faultd.Stream) {
				begunStream(s)
				then(s)
			},
		}
	}
	rst := func(code uint32) func(*faultd.Stream) { return func(s *faultd.Stream) { s.Reset(code) } }
	return []frameFault{
		same("good", "nothing wrong", answered, 1, goodStream),
		same("refused-once", "REFUSED_STREAM, then good: it was not looked at", answered, 2,
			onceThenGood(rst(faultd.RefusedStream))),
		same("refused-late", "REFUSED_STREAM after three seconds, then good", answered, 2,
			onceThenGood(func(s *faultd.Stream) {
				s.Pause(3 * time.Second)
				s.Reset(faultd.RefusedStream)
			})),
		{
			id:     "refused",
			title:  "REFUSED_STREAM every time",
			play:   rst(faultd.RefusedStream),
			whole:  refused(502),
			stream: refused(502),
			calls:  4,
		},
		same(
			"goaway-unseen",
			"GOAWAY below the stream, then good: it was not looked at",
			answered,
			2,
			onceThenGood(func(s *faultd.Stream) {
				s.GoAway(s.ID-1, faultd.NoError)
				s.Pause(20 * time.Millisecond)
				s.Leave()
			}),
		),
		same("goaway-seen", "GOAWAY at the stream, then gone", refused(502), 1, func(s *faultd.Stream) {
			s.GoAway(s.ID, faultd.InternalError)
			s.Pause(20 * time.Millisecond)
			s.Leave()
		}),
		same("goaway-polite", "GOAWAY at the stream, which ends well", answered, 1, func(s *faultd.Stream) {
			s.GoAway(s.ID, faultd.NoError)
			s.Pause(20 * time.Millisecond)
			goodStream(s)
		}),
		same("calm", "ENHANCE_YOUR_CALM", refused(502, 503), 1, rst(faultd.EnhanceYourCalm)),
		same("cancel", "CANCEL before the headers", refused(502), 1, rst(faultd.Cancel)),
		same("internal", "INTERNAL_ERROR before the headers", refused(502), 1, rst(faultd.InternalError)),
		same("dropped", "reset before the headers", refused(502), 1, func(s *faultd.Stream) { s.Drop() }),
		{
			id:     "stall",
			title:  "silence before the headers",
			play:   (*faultd.Stream).Stall,
			whole:  refused(504),
			stream: refused(504),
			calls:  1,
			short:  true,
		},
		same("flood", "more header fields than fit", refused(502), 1, func(s *faultd.Stream) {
			s.Head(200, strings.Repeat("a", 127))
			s.Data("no JSON")
			s.End()
		}),
		mid("mid-internal", "INTERNAL_ERROR in the middle", rst(faultd.InternalError)),
		mid("mid-cancel", "CANCEL in the middle", rst(faultd.Cancel)),
		mid("mid-refused", "REFUSED_STREAM in the middle: too late to be believed", rst(faultd.RefusedStream)),
		mid("mid-no-error", "NO_ERROR in the middle", rst(faultd.NoError)),
		mid("mid-goaway", "GOAWAY in the middle, then gone", func(s *faultd.Stream) {
			s.GoAway(s.ID, faultd.InternalError)
			s.Pause(20 * time.Millisecond)
			s.Leave()
		}),
		mid("mid-drop", "reset in the middle", func(s *faultd.Stream) { s.Drop() }),
		mid("mid-end", "a good end in the middle", func(s *faultd.Stream) { s.End() }),
		{
			id:     "mid-stall",
			title:  "silence in the middle",
			whole:  refused(504),
			stream: brokenOff,
			calls:  1,
			short:  true,
			play: func(s *faultd.Stream) {
				begunStream(s)
				s.Stall()
			},
		},
	}
}

// TestHTTP2Faults: what goes wrong below HTTP's meaning ends as any other fault does,
// and is tried again only where the upstream says that it did not look.
func TestHTTP2Faults(t *testing.T) {
	server := newServer(t)
	certified := issue(t, newAuthority(t), time.Now().Add(time.Hour))
	rows := frameFaults()
	var cells []cell
	for _, r := range rows {
		for _, w := range ways() {
			name := r.id + "-" + w.String()
			addr, err := server.HTTP2(certified, name, r.play)
			if err != nil {
				t.Fatal(err)
			}
			c := cell{name: name, upstream: cases.Chat, baseURL: "https://" + addr + "/v1", timeouts: patient}
			if r.short {
				c.timeouts = impatient
			}
			cells = append(cells, c)
		}
	}
	b := newBench(t, cells)
	for _, r := range rows {
		for _, w := range ways() {
			name := r.id + "-" + w.String()
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				reply := w.ask(t, b.gateway, name)
				want := r.whole
				if w.streamed {
					want = r.stream
				}
				for _, bad := range want.judge(reply, w, cases.Chat, false, []string{"127.0.0.1", "http2", upstreamKey}) {
					t.Errorf("%s: %s", r.title, bad)
				}
				if got := server.Calls(name); got != r.calls {
					t.Errorf("%s: the upstream was called %d times, want %d", r.title, got, r.calls)
				}
			})
		}
	}
}

// An upstream that takes one stream at a time on a connection refuses those that
// were begun before it had said so. No request fails because of that.
func TestOneStreamAtATime(t *testing.T) {
	var mu sync.Mutex
	busy := map[*faultd.H2]bool{}
	script := func(s *faultd.Stream) {
		mu.Lock()
		taken := busy[s.H2]
		busy[s.H2] = true
		mu.Unlock()
		if taken {
			s.Reset(faultd.RefusedStream)
			return
		}
		s.Pause(10 * time.Millisecond)
		mu.Lock()
		busy[s.H2] = false // before the peer can know it
		mu.Unlock()
		goodStream(s)
	}
	server := newServer(t)
	config := issue(t, newAuthority(t), time.Now().Add(time.Hour))
	addr, err := server.HTTP2(config, "one", script, faultd.Setting{ID: faultd.MaxConcurrentStreams, Value: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := harness.Start(t, harness.Config{
		Providers: map[string]harness.Provider{
			// A gateway that gets no processor time for seconds gives up the search for a connection, so it may try
			// again.
			"one": {Shape: "chat", BaseURL: "https://" + addr + "/v1", Timeouts: &patient, Retries: 2},
		},
		Models: map[string]harness.Model{"one": {Targets: []harness.Target{{Provider: "one", Model: "m"}}}},
	})
	var wg sync.WaitGroup
	for range 4 {
		for _, w := range []way{{cases.Chat, true}, {cases.Messages, false}, {cases.Responses, true}} {
			wg.Go(func() {
				for _, bad := range answered.judge(w.ask(t, g, "one"), w, cases.Chat, false, nil) {
					t.Errorf("%s: %s", w, bad)
				}
			})
		}
	}
	wg.Wait()
}

// A connection that its server ends with GOAWAY while it is idle fails no request. A
// request that is written in the same instant is lost with it and needs another
// attempt, so the requests here come after the GOAWAY was read.
func TestStaleHTTP2ConnectionIsInvisible(t *testing.T) {
	server := newServer(t)
	config := issue(t, newAuthority(t), time.Now().Add(time.Hour))
	left := make(chan struct{}, 1)
	addr, err := server.HTTP2(config, "stale", func(s *faultd.Stream) {
		goodStream(s)
		s.GoAway(s.ID, faultd.NoError)
		s.AwaitPong()
		s.Leave()
		left <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t,
		[]cell{{name: "stale", upstream: cases.Chat, baseURL: fmt.Sprintf("https://%s/v1", addr), timeouts: patient}})
	w := way{cases.Messages, true}
	for range 10 {
		for _, bad := range answered.judge(w.ask(t, b.gateway, "stale"), w, cases.Chat, false, nil) {
			t.Error(bad)
		}
		await(t, left, "the end of the connection")
	}
}
