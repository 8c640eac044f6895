package upstream

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"stagedoor/providers/shapes"
)

// answering is a transport that answers every call at once.
type answering struct{}

func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode:    200,
		Header:        http.Header{},
		Body:          io.NopCloser(strings.NewReader("{}")),
		ContentLength: 2,
		Request:       r,
	}, nil
}

// begin makes n calls, which are under way at once.
func begin(n int, call func() *Reply) []*Reply {
	var all []*Reply
	for range n {
		all = append(all, call())
	}
	return all
}

// TestAnEndedCallLeavesNothingBehind: the timer of a call is set for a minute, and its
// context may hang below one that lasts. Neither keeps the call alive once it has ended.
func TestAnEndedCallLeavesNothingBehind(t *testing.T) {
	// The runtime keeps stopped timers among enough others that are still to fire.
	for range 1000 {
		defer time.AfterFunc(DefaultTimeouts.FirstByte/2, func() {}).Stop()
	}
	c, err := New(Options{BaseURL: "http://upstream.test", Transport: answering{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ends := map[string]func() *Reply{
		"Do": func() *Reply {
			r, err := c.Do(ctx, shapes.Call{Path: "/v1/x", Body: []byte("{}")}, nil, "")
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		"Send": func() *Reply {
			r, err := c.Send(ctx, Request{Method: http.MethodGet, Path: "/v1/x"}, nil, "")
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
	}
	for name, call := range ends {
		var calls []weak.Pointer[Reply]
		for _, r := range begin(100, call) {
			calls = append(calls, weak.Make(r))
			if r.watch.ctx.Err() != nil {
				t.Fatalf("%s: the context has ended before the call", name)
			}
			r.Close()
			if r.watch.ctx.Err() == nil {
				t.Fatalf("%s: the context lasts although the call has ended", name)
			}
		}
		runtime.GC()
		left := 0
		for _, r := range calls {
			if r.Value() != nil {
				left++
			}
		}
		if left > 1 { // the last one may still be in a register
			t.Errorf("%s: %d of %d ended calls are still in memory", name, left, len(calls))
		}
	}
}

// TestAWatchdogThatFiresAsItsCallEndsStaysStopped: the timer may have fired already when
// the call ends. It must not be armed again.
func TestAWatchdogThatFiresAsItsCallEndsStaysStopped(t *testing.T) {
	for name, alive := range map[string]bool{"before the headers": false, "after the headers": true} {
		var w watchdog
		w.start(t.Context(), DefaultTimeouts)
		if alive {
			w.alive()
		}
		w.stop()
		w.check()
		if w.timer.Stop() {
			t.Errorf("%s: the timer runs although the call has ended", name)
		}
	}
}
