package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
)

// A square is a fault met by one way of asking, before one shape of upstream.
type square struct {
	fault    fault
	way      way
	upstream cases.Shape
}

func (s square) name() string { return fmt.Sprintf("%s-%s-%s", s.fault.id, s.upstream, s.way) }

// want is the right outcome; nil: the fault does not apply here.
func (s square) want() *outcome {
	f := s.fault
	switch {
	case f.shapes != nil && !slices.Contains(f.shapes, s.upstream):
		return nil
	case f.untranslated && s.way.inbound == s.upstream:
		return nil
	case s.way.streamed:
		return f.stream
	}
	return f.whole
}

func squares() []square {
	var out []square
	for _, f := range catalogue() {
		for _, w := range ways() {
			for _, upstream := range w.upstreams() {
				if s := (square{f, w, upstream}); s.want() != nil {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// third returns a third of the squares, always the same ones. They are chosen at random, so that each fault, client and
// upstream is among them.
func third(all []square) []square {
	var list []square
	random := rand.New(rand.NewPCG(1, 1))
	for _, s := range all {
		if random.IntN(3) == 0 {
			list = append(list, s)
		}
	}
	return list
}

func (s square) cell() cell {
	c := cell{name: s.name(), upstream: s.upstream, timeouts: patient, baseURL: s.fault.baseURL}
	if s.fault.short {
		c.timeouts = impatient
	}
	if s.fault.play != nil {
		wire := faultd.Wires[s.upstream]
		c.script = func(conn *faultd.Conn) { s.fault.play(conn, wire, wantsStream(conn)) }
	}
	return c
}

// TestUpstreamFaults is the whole catalogue: each fault ends in exactly one legal
// end of the right class, for every client and every upstream. With -short a third of
// these meets each fault.
func TestUpstreamFaults(t *testing.T) {
	t.Parallel()
	all := squares()
	if testing.Short() {
		all = third(all)
	}
	cells := make([]cell, len(all))
	for i, s := range all {
		cells[i] = s.cell()
	}
	b := newBench(t, cells)
	secrets := []string{b.server.Addr(), upstreamKey, marker, closed(), "no..such"}
	for _, s := range all {
		t.Run(s.name(), func(t *testing.T) {
			t.Parallel()
			reply := s.way.ask(t, b.gateway, s.name())
			for _, bad := range s.want().judge(reply, s.way, s.upstream, s.fault.silent, secrets) {
				t.Errorf("%s: %s", s.fault.title, bad)
			}
			if s.fault.check != nil {
				if bad := s.fault.check(reply, s.upstream, s.way.inbound); bad != "" {
					t.Error(bad)
				}
			}
			want := 1
			if s.fault.baseURL != "" {
				want = 0
			}
			if got := b.server.Calls(s.name()); got != want {
				t.Errorf("the upstream was called %d times, want %d", got, want)
			}
		})
	}
}

// Before the first byte another attempt may be made; after it never.
func TestAttemptsEndWithTheFirstByte(t *testing.T) {
	t.Parallel()
	first := func(fail func(*faultd.Conn)) func(cases.Shape) faultd.Script {
		return func(shape cases.Shape) faultd.Script {
			return func(c *faultd.Conn) {
				if c.Call == 1 {
					fail(c)
					return
				}
				good(c, faultd.Wires[shape], wantsStream(c))
			}
		}
	}
	for _, row := range []struct {
		name   string
		script func(cases.Shape) faultd.Script
		ways   []way
		calls  int
		want   outcome
	}{
		{"overloaded", first(func(c *faultd.Conn) { c.Whole(503, "application/json", `{"error":{"message":"busy"}}`) }),
			ways(), 2, answered},
		{"reset", first((*faultd.Conn).Reset), ways(), 2, answered},
		{"cut", func(shape cases.Shape) faultd.Script {
			return func(c *faultd.Conn) { cut((*faultd.Conn).Reset)(c, faultd.Wires[shape], true) }
		}, []way{{cases.Chat, true}, {cases.Messages, true}, {cases.Responses, true}, {cases.Gemini, true}}, 1,
			brokenOff},
		{"refused", func(shape cases.Shape) faultd.Script {
			return func(c *faultd.Conn) {
				c.Whole(400, "application/json", faultd.Wires[shape].Error(400, "invalid_request_error", "no"))
			}
		}, ways(), 1, refused(http.StatusBadRequest)},
	} {
		t.Run(row.name, func(t *testing.T) {
			var cells []cell
			for _, w := range row.ways {
				cells = append(
					cells,
					cell{
						name:     row.name + "-" + w.String(),
						upstream: cases.Chat,
						timeouts: patient,
						retries:  1,
						script:   row.script(cases.Chat),
					},
				)
			}
			b := newBench(t, cells)
			for i, w := range row.ways {
				reply := w.ask(t, b.gateway, cells[i].name)
				for _, bad := range row.want.judge(reply, w, cases.Chat, false, []string{b.server.Addr(), upstreamKey}) {
					t.Errorf("%s: %s", w, bad)
				}
				if got := b.server.Calls(cells[i].name); got != row.calls {
					t.Errorf("%s: the upstream was called %d times, want %d", w, got, row.calls)
				}
			}
		})
	}
}

// A connection that the upstream closed while it was idle fails no request.
func TestStalePooledConnectionIsInvisible(t *testing.T) {
	t.Parallel()
	closing := func(c *faultd.Conn) { good(c, faultd.Wires[cases.Chat], wantsStream(c)) } // closed without a word of it
	w := way{cases.Chat, false}
	b := newBench(t, []cell{{name: "stale", upstream: cases.Chat, timeouts: patient, script: closing}})
	for range 20 {
		reply := w.ask(t, b.gateway, "stale")
		for _, bad := range answered.judge(reply, w, cases.Chat, false, nil) {
			t.Error(bad)
		}
	}
}

// A response that the upstream glued on behind another must not become the answer to
// a later request. net/http drops a connection that speaks
// unasked, but only once its reader has looked again: a request in that very
// instant could still take it, so the requests here come when it is dropped.
func TestGluedResponseIsNobodysAnswer(t *testing.T) {
	t.Parallel()
	dropped := make(chan struct{}, 1)
	glued := func(c *faultd.Conn) {
		good(c, faultd.Wires[cases.Chat], false)
		other := strings.Replace(faultd.Wires[cases.Chat].Whole, faultd.Text, "meant for another client", 1)
		c.Whole(http.StatusOK, "application/json", other)
		if c.Stall() {
			dropped <- struct{}{}
		}
	}
	w := way{cases.Chat, false}
	b := newBench(t, []cell{{name: "glued", upstream: cases.Chat, timeouts: patient, script: glued}})
	for range 20 {
		reply := w.ask(t, b.gateway, "glued")
		for _, bad := range answered.judge(reply, w, cases.Chat, false, []string{"another client"}) {
			t.Error(bad)
		}
		await(t, dropped, "the end of the connection")
	}
}
