package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
	"stagedoor/test/harness"
)

// single is a gateway before one upstream, with the program's limits changed.
func single(t *testing.T, script faultd.Script, limits *harness.Limits,
	keys ...harness.Key) (*harness.Gateway, *faultd.Server) {
	t.Helper()
	server := newServer(t)
	server.Handle("m", script)
	return harness.Start(t, harness.Config{Limits: limits, Keys: keys,
		Providers: map[string]harness.Provider{
			"m": {
				Shape:    "chat",
				BaseURL:  "http://" + server.Addr() + "/m/v1",
				APIKeys:  []string{upstreamKey},
				Timeouts: &patient,
			},
		},
		Models: map[string]harness.Model{"m": {Targets: []harness.Target{{Provider: "m", Model: "m"}}}},
	}), server
}

func answering(c *faultd.Conn) { good(c, chatWire, wantsStream(c)) }

// ends reads until the gateway closes the connection.
func ends(c net.Conn) error {
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return errors.New("still open after a minute")
	}
	return nil // closed or reset
}

// Clients that send slowly, or connect and send nothing, are ended in time, and do not
// slow down other clients.
func TestSlowClientsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	g, _ := single(t, answering, nil)
	const each = 100
	body := way{cases.Chat, false}.body("m")
	var wg sync.WaitGroup
	for _, row := range []struct {
		title, text string
	}{
		{"nothing", ""},
		{"half a header", "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Slow: "},
		{"half a body", spoken(g.Key, fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n",
			len(body)), body[:10])},
	} {
		for range each {
			c := dial(t, g)
			wg.Go(func() {
				if _, err := io.WriteString(c, row.text); err != nil {
					t.Errorf("%s: %v", row.title, err)
				} else if err := ends(c); err != nil {
					t.Errorf("%s: %v", row.title, err)
				}
			})
		}
	}
	for range 20 {
		w := way{cases.Messages, true}
		for _, bad := range answered.judge(w.ask(t, g, "m"), w, cases.Chat, false, nil) {
			t.Errorf("beside %d slow clients: %s", 3*each, bad)
		}
	}
	wg.Wait()
}

// A client that stops reading is dropped, its upstream is let go, and the streams
// beside it go on.
func TestStalledReadersAreDropped(t *testing.T) {
	t.Parallel()
	const stalled = 10
	gone := make(chan struct{}, stalled)
	g, server := single(t, answering, nil)
	server.Handle("m", func(c *faultd.Conn) {
		if !strings.Contains(string(c.Body), "endless") {
			good(c, chatWire, wantsStream(c))
			return
		}
		c.StartStream()
		for !c.Gone() {
			c.Chunk(chatWire.Delta(0, strings.Repeat("x", 16<<10)))
		}
		gone <- struct{}{}
	})
	for range stalled {
		c := dial(t, g)
		if err := c.SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		r := way{cases.Chat, true}.request(t.Context(), t, g, "m")
		text := `{"model":"m","stream":true,"messages":[{"role":"user","content":"endless"}]}`
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		if err := r.Write(c); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReaderSize(c, 16).ReadByte(); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		w := way{cases.Responses, true}
		for _, bad := range answered.judge(w.ask(t, g, "m"), w, cases.Chat, false, nil) {
			t.Errorf("beside %d stalled readers: %s", stalled, bad)
		}
	}
	limit := time.After(time.Minute)
	for n := range stalled {
		select {
		case <-gone:
		case <-limit:
			t.Fatalf("%d of %d upstreams let go after a minute", n, stalled)
		}
	}
}

// Beyond what the process takes on, requests are refused at once; health is answered,
// and the places are free again when their requests end. One key cannot
// take all of them.
func TestOverloadIsToldAtOnce(t *testing.T) {
	const places = 5
	release := make(chan struct{})
	var keys []harness.Key
	for n := range places {
		keys = append(keys, harness.Key{Key: fmt.Sprint("sd-test-", n), Name: fmt.Sprint("test ", n)})
	}
	g, server := single(t, func(c *faultd.Conn) {
		<-release
		answering(c)
	}, &harness.Limits{Requests: places, BodyMiB: 1, FailedKeys: 3}, keys...)
	var wg sync.WaitGroup
	askAs := func(w way, key string) *cases.Reply {
		r := w.request(t.Context(), t, g, "m")
		cases.Authorize(r, w.inbound, key)
		response, err := client.Do(r)
		if err != nil {
			t.Errorf("no reply: %v", err)
			return &cases.Reply{}
		}
		return cases.ReadReply(response)
	}
	taken := 0
	take := func(key string) {
		w := way{cases.Chat, true}
		wg.Go(func() {
			for _, bad := range answered.judge(askAs(w, key), w, cases.Chat, false, nil) {
				t.Errorf("a request that was taken on: %s", bad)
			}
		})
		taken++
		for deadline := time.Now().Add(time.Minute); server.Calls("m") < taken; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the requests do not reach the upstream")
			}
		}
	}
	for range places / 2 {
		take(keys[0].Key)
	}
	w := way{cases.Chat, true}
	reply := askAs(w, keys[0].Key)
	for _, bad := range refused(429).judge(reply, w, cases.Chat, false, nil) {
		t.Errorf("a key that has its share: %s", bad)
	}
	if reply.Header.Get("Retry-After") == "" {
		t.Error("the refusal of a key that has its share has no Retry-After")
	}
	for n := 1; taken < places; n++ {
		take(keys[n].Key)
	}
	for _, w := range ways() {
		reply := w.ask(t, g, "m") // while no place becomes free
		for _, bad := range refused(503).judge(reply, w, cases.Chat, false, nil) {
			t.Errorf("%s: %s", w, bad)
		}
		if reply.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", w)
		}
	}
	if response, err := client.Get(g.URL + "/healthz"); err != nil || response.StatusCode != 200 {
		t.Errorf("health: %v, %v", response, err)
	} else {
		_ = response.Body.Close()
	}
	close(release)
	wg.Wait()
	// It would not fit an idle gateway either: to try again would not help.
	t.Run("a body that never fits", func(t *testing.T) {
		w := way{cases.Chat, false}
		text := strings.Replace(w.body("m"), `"hi"`, `"`+strings.Repeat("a", 1<<20)+`"`, 1)
		r := w.request(t.Context(), t, g, "m")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range refused(413).judge(cases.ReadReply(response), w, cases.Chat, false, nil) {
			t.Error(bad)
		}
		for _, bad := range answered.judge(w.ask(t, g, "m"), w, cases.Chat, false, nil) {
			t.Errorf("a small one after it: %s", bad)
		}
	})
	t.Run("unknown keys", func(t *testing.T) {
		var statuses []int
		for range 5 {
			reply, _, _ := say(t, g, spoken("sd-guess", "Content-Length: 0\r\n", ""))
			statuses = append(statuses, reply.StatusCode)
		}
		if got := fmt.Sprint(statuses); got != "[401 401 401 429 429]" {
			t.Errorf("statuses of guesses: %s", got)
		}
		w := way{cases.Messages, false}
		for _, bad := range answered.judge(w.ask(t, g, "m"), w, cases.Chat, false, nil) {
			t.Errorf("a known key from the same address: %s", bad)
		}
	})
}

// Without descriptors left the gateway waits for some instead of ending (faults.md
// P13).
func TestMoreConnectionsThanDescriptors(t *testing.T) {
	t.Parallel()
	script := harness.Script(t, "few-descriptors", "#!/bin/sh\nulimit -n 128\nexec "+harness.Binary(t)+" \"$@\"\n")
	server := newServer(t)
	server.Handle("m", answering)
	g, err := harness.Launch(script, harness.Config{
		Providers: map[string]harness.Provider{
			"m": {Shape: "chat", BaseURL: "http://" + server.Addr() + "/m/v1", Timeouts: &patient},
		},
		Models: map[string]harness.Model{"m": {Targets: []harness.Target{{Provider: "m", Model: "m"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	}()
	var conns []net.Conn
	for range 300 { // the kernel accepts for the gateway what it cannot take
		conns = append(conns, dial(t, g))
	}
	for _, c := range conns {
		_ = c.Close()
	}
	w := way{cases.Messages, true}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		response, err := client.Do(w.request(t.Context(), t, g, "m"))
		if err == nil {
			if reply := cases.ReadReply(response); reply.Status == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer after the descriptors came back: %v", err)
		}
	}
}

// A process that was stopped for a while goes on where it was.
func TestAPausedProcessGoesOn(t *testing.T) {
	t.Parallel()
	begun, resume := make(chan struct{}), make(chan struct{})
	g, server := single(t, answering, nil)
	server.Handle("m", func(c *faultd.Conn) {
		events := chatWire.Stream()
		c.StartStream()
		c.Chunk(events[0])
		close(begun)
		<-resume
		c.Chunk(strings.Join(events[1:], ""))
		c.EndChunks()
	})
	w := way{cases.Messages, true}
	replied := make(chan *cases.Reply, 1)
	go func() { replied <- w.ask(t, g, "m") }()
	await(t, begun, "the upstream's call")
	if err := syscall.Kill(g.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // the pause itself
	close(resume)
	if err := syscall.Kill(g.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, bad := range answered.judge(await(t, replied, "the reply"), w, cases.Chat, false, nil) {
		t.Error(bad)
	}
}

// TestIdleConnectionsDoNotTakeTheDescriptorsOfRequests: with 64 descriptors and 400 idle
// connections, half of them after a request, streams are answered at once and the store
// can be written.
func TestIdleConnectionsDoNotTakeTheDescriptorsOfRequests(t *testing.T) {
	t.Parallel()
	script := harness.Script(t, "few-descriptors", "#!/bin/sh\nulimit -n 64\nexec "+harness.Binary(t)+" \"$@\"\n")
	server := newServer(t)
	server.Handle("m", answering)
	g, err := harness.Launch(script, harness.Config{
		Data: t.TempDir(),
		Providers: map[string]harness.Provider{
			"m": {Shape: "chat", BaseURL: "http://" + server.Addr() + "/m/v1", Timeouts: &patient},
		},
		Models: map[string]harness.Model{"m": {Targets: []harness.Target{{Provider: "m", Model: "m"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 400 {
		c := dial(t, g)
		defer c.Close() // before the stop, which would wait for a request
		if i%2 == 0 {
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
		}
	}
	var wg sync.WaitGroup
	for i := range 100 {
		// The store is written for those of the responses shape.
		w := way{cases.Shapes[i%len(cases.Shapes)], true}
		wg.Go(func() {
			response, err := client.Do(w.request(t.Context(), t, g, "m"))
			for range 2 {
				// A connection whose request does not arrive within 250 ms counts as idle, too. On a busy machine that
				// happens to some of these, and clients repeat requests to which there was no reply, as SDKs do.
				if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
					response, err = client.Do(w.request(t.Context(), t, g, "m"))
				}
			}
			if err != nil {
				t.Errorf("no reply: %v", err)
				return
			}
			reply := cases.ReadReply(response)
			if reply.Status == http.StatusTooManyRequests || reply.Status == http.StatusServiceUnavailable {
				return // there are few places, too
			}
			for _, bad := range answered.judge(reply, w, cases.Chat, false, nil) {
				t.Errorf("beside 400 idle connections: %s: %s", w, bad)
			}
		})
	}
	wg.Wait()
	if logs := g.Logs(); strings.Contains(logs, "too many open files") {
		t.Error("the process ran out of descriptors")
	}
}
