package nodes

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// TestRepliesThatWereQuietForLongArriveWhole waits for longer than a gateway may take to accept a piece: before a
// flush, before the end of a reply and between two requests on one connection.
func TestRepliesThatWereQuietForLongArriveWhole(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	self := state.NodeNamed("a", 1)
	c, err := New(Options{Logger: slog.New(slog.DiscardHandler), Secret: bytes.Repeat([]byte{1}, 32), Self: self,
		List: func(context.Context) ([]journal.Member, error) {
			return []journal.Member{{Node: "a", Epoch: 1, Address: l.Addr().String()}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	const within = time.Second // so that a busy machine is in time
	c.writeTime = within
	quiet := func() { time.Sleep(within + within/10) }
	c.Handle("GET /quiet", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun, ")
		quiet()
		_ = http.NewResponseController(w).Flush()
		quiet()
	})
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { c.Serve(ctx, l) })
	defer func() { stop(); serving.Wait(); c.Close() }()
	p := Peer{Name: "a", Node: self, Address: l.Addr().String()}
	for _, path := range []string{"/quiet", "/none", "/quiet"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.RoundTripper(p).RoundTrip(req)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || path == "/quiet" && string(text) != "begun, " {
			t.Errorf("%s: %q, %v", path, text, err)
		}
		if path == "/none" {
			quiet()
		}
	}
}
