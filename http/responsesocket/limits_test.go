package responsesocket_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/share"
)

func TestAMessageThatIsTooLargeEndsTheConnectionWith1009(t *testing.T) {
	g := open(t)
	g.socket.Limits(0, 0, 0, 0, 1<<20)
	c := g.connect()
	c.turn(create("sandbox", "[sandbox: tokens=2]"+strings.Repeat(" word", (1<<20-200)/5))) // fits
	c.say(create("sandbox", strings.Repeat("x", 1<<20)))
	if code, reason := c.closed(); code != websocket.CloseMessageTooBig || reason == "" {
		t.Errorf("closed with %d %q", code, reason)
	}
	// One in fragments, which is never finished.
	c = g.connect()
	w, err := c.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 3 && err == nil; i++ {
		_, err = io.WriteString(w, strings.Repeat("x", 1<<19))
	}
	if code, _ := c.closed(); code != websocket.CloseMessageTooBig {
		t.Errorf("closed with %d", code)
	}
	await(t, "no message that was refused is held", func() bool { return g.memory.Used() < 1<<20 })
}

// A client that goes on sending after the close is cut off.
func TestAClientThatIgnoresTheCloseIsCutOff(t *testing.T) {
	g := open(t)
	g.socket.Limits(0, 0, 0, 50*time.Millisecond, 1<<20)
	c := g.connect()
	var err error
	for began := time.Now(); err == nil && time.Since(began) < time.Minute; {
		err = c.WriteMessage(websocket.TextMessage, make([]byte, 1<<20+1))
	}
	if err == nil {
		t.Error("the connection goes on")
	}
	await(t, "the connection has ended", func() bool { return g.live.Watching() == 0 })
}

func TestAMessageInFragmentsIsOneMessage(t *testing.T) {
	g := open(t)
	c := g.connect()
	message := create("sandbox", "in many pieces")
	conn := c.NetConn()
	for i := range len(message) {
		head := []byte{0x00, 0x81, 0, 0, 0, 0} // a masked piece of one byte; the mask is 0
		if i == 0 {
			head[0] |= websocket.TextMessage
		}
		if i == len(message)-1 {
			head[0] |= 0x80
		}
		if _, err := conn.Write(append(head, message[i])); err != nil {
			t.Fatal(err)
		}
	}
	c.until("response.completed")
}

// A silent response gets text messages and pings, so that neither clients nor proxies give up. The failure after it
// still has its status.
func TestASilentResponseIsKeptAlive(t *testing.T) {
	g := open(t)
	g.socket.Limits(20*time.Millisecond, 0, 0, 0, 0)
	release := make(chan struct{})
	g.scripts = func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}`)
	}
	c := g.connect()
	pings := 0
	c.SetPingHandler(func(string) error { pings++; return nil })
	c.say(create("script", "hi"))
	for range 3 {
		if m := c.hear(); !strings.Contains(m.Get("type").Str, "keepalive") {
			t.Errorf("got %s", m.Raw)
		}
	}
	close(release)
	for {
		if m := c.hear(); m.Get("type").Str == "error" {
			if m.Get("status").Int() != 400 || m.Get("error.code").Str != "context_length_exceeded" {
				t.Error(m.Raw)
			}
			break
		}
	}
	if pings == 0 {
		t.Error("there were no pings")
	}
}

// Between responses there are pings and no messages, and a client that answers nothing is given up.
func TestAnIdleClientThatAnswersNothingIsGivenUp(t *testing.T) {
	g := open(t)
	g.socket.Limits(10*time.Millisecond, 300*time.Millisecond, 0, 20*time.Millisecond, 0)
	c := g.connect()
	pings := 0
	c.SetPingHandler(func(string) error { pings++; return nil })
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	_, message, err := c.ReadMessage()
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() || pings == 0 {
		t.Errorf("got %q, %v after %d pings", message, err, pings)
	}
}

func TestAConnectionEndsAtItsAgeOnceWhatRunsHasEnded(t *testing.T) {
	g := open(t)
	aged := make(chan time.Time)
	age := g.socket.AgeBy(aged)
	release := make(chan struct{})
	g.scripts = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, scriptedStart+scriptedItem)
		w.(http.Flusher).Flush()
		<-release
		fmt.Fprint(w, scriptedEnd)
	}
	c := g.connect()
	c.say(create("script", "hi", lane("a")))
	c.say(create("script", "waits", lane("a")))
	c.until("response.output_item.done")
	if age() != time.Hour {
		t.Errorf("a connection lasts %s", age())
	}
	aged <- time.Now()
	// The one that waits is refused at the age, and so are later ones. What runs is finished.
	c.isError(400, "websocket_connection_limit_reached", "", "a")
	c.refused(create("sandbox", "late", lane("b")), 400, "websocket_connection_limit_reached", "", "b")
	close(release)
	c.until("response.completed")
	c.isError(400, "websocket_connection_limit_reached", "", "")
	if code, reason := c.closed(); code != websocket.CloseGoingAway || !strings.Contains(reason, "60 minutes") {
		t.Errorf("closed with %d %q", code, reason)
	}
}

func TestADrainFinishesWhatRunsAndClosesWith1012(t *testing.T) {
	g := open(t)
	busy, idle := g.connect(), g.connect()
	busy.say(create("sandbox", "[sandbox: pace=30 tokens=10]"))
	busy.say(create("sandbox", "waits"))
	busy.until("response.output_text.delta")
	g.live.Drain()
	if code, reason := idle.closed(); code != websocket.CloseServiceRestart || reason == "" {
		t.Errorf("idle: closed with %d %q", code, reason)
	}
	completed, refused := false, false
	for !completed || !refused {
		m := busy.hear()
		switch m.Get("type").Str {
		case "response.completed":
			completed = true
		case "error":
			refused = m.Get("error.code").Str == "shutting_down" && m.Get("status").Int() == 503
			if !refused {
				t.Fatal(m.Raw)
			}
		}
	}
	if code, _ := busy.closed(); code != websocket.CloseServiceRestart {
		t.Errorf("busy: closed with %d", code)
	}
	if _, res, err := g.dial("all"); err == nil || res.StatusCode != 503 {
		t.Errorf("a new connection: %v, %v", res, err)
	}
}

func TestARevokedKeyEndsItsConnectionWithA401And1008(t *testing.T) {
	g := open(t)
	for _, running := range []bool{false, true} {
		g.key(fmt.Sprint("leaves", running), nil)
		c, _, err := g.dial(fmt.Sprint("leaves", running))
		if err != nil {
			t.Fatal(err)
		}
		if running {
			c.say(create("sandbox", "[sandbox: stall=2]"))
			c.until("response.output_text.delta")
		}
		if _, err := identity.RevokeKey(t.Context(), g.state, fmt.Sprint("key_leaves", running)); err != nil {
			t.Fatal(err)
		}
		failed := false
		for {
			m := c.hear()
			failed = failed || m.Get("type").Str == "response.failed"
			if m.Get("type").Str == "error" {
				if m.Get("status").Int() != 401 || m.Get("error.code").Str != "invalid_api_key" {
					t.Error(m.Raw)
				}
				break
			}
		}
		if code, reason := c.closed(); code != websocket.ClosePolicyViolation || reason == "" || failed != running {
			t.Errorf("closed with %d %q, failed %v", code, reason, failed)
		}
	}
}

// A client that never reads stops its upstream, is dropped, and holds nothing afterwards.
func TestAClientThatNeverReadsIsDropped(t *testing.T) {
	g := open(t)
	g.socket.Limits(20*time.Millisecond, 0, 200*time.Millisecond, 50*time.Millisecond, 0)
	// The server's own connections have a longer limit.
	front := httptest.NewServer(g.server.Handler())
	defer front.Close()
	g.url = strings.TrimPrefix(front.URL, "http://")
	c := g.connect()
	if err := c.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		c.say(create("sandbox", "[sandbox: tokens=100000]", lane(fmt.Sprint("l", i))))
	}
	// On a busy machine the client can be dropped before its last response has begun.
	await(t, "it runs", func() bool { return g.runtime.Text().InFlight() == 8 || g.live.Watching() == 0 })
	await(t, "it is dropped", func() bool { return g.live.Watching() == 0 && g.runtime.Text().InFlight() == 0 })
}

// Owners have shares of the memory for messages and for remembered responses.
func TestMemoryOfConnectionsIsBoundedAndShared(t *testing.T) {
	g := open(t, func(g *gateway) { g.memory = share.New(share.Sockets, 400<<10, 1) })
	c := g.connect()
	word := strings.Repeat("x ", 20<<10)
	first := c.turn(create("sandbox", "[sandbox: tokens=2] "+word, lane("a"))).Get("id").Str
	second := c.turn(create("sandbox", "[sandbox: tokens=2] "+word, lane("b"))).Get("id").Str
	third := c.turn(create("sandbox", "[sandbox: tokens=2] "+word+word, lane("c"))).Get("id").Str
	if used := g.memory.Used(); used > 200<<10 {
		t.Errorf("%d bytes are held by one owner of %d", used, 400<<10)
	}
	// The response that was not used for longest was forgotten for the newest.
	for id, known := range map[string]bool{first: false, third: true} {
		c.say(create("sandbox", "[sandbox: tokens=2]", lane("d"), warmUp, after(id)))
		kind := c.hear().Get("type").Str
		if kind == "response.created" {
			kind = c.hear().Get("type").Str
		}
		if (kind == "response.completed") != known {
			t.Errorf("%s of %s, %s, %s: got %s", id, first, second, third, kind)
		}
	}
	// A message for which there is no room at the moment is refused, and the connection stays.
	owner := string(state.OwnerOf("key_all", ""))
	taken := g.memory.Most() - g.memory.Held(owner) - 8<<10
	if err := g.memory.Take(owner, taken); err != nil {
		t.Fatal(err)
	}
	empty := g.connect() // has nothing to forget
	empty.refused(create("sandbox", word), 429, "sockets_share_exceeded", "", "")
	empty.turn(create("sandbox", "a small one is served"))
	other, _, err := g.dial("other")
	if err != nil {
		t.Fatal(err)
	}
	other.turn(create("sandbox", "another owner is served"))
	g.memory.Give(owner, taken)
	// A message for which there can never be room ends the connection.
	c.say(create("sandbox", strings.Repeat("x", 300<<10)))
	if code, _ := c.closed(); code != websocket.CloseMessageTooBig {
		t.Errorf("closed with %d", code)
	}
}

// Floods of requests, names and mistakes leave the gateway with nothing.
func TestAFloodOfOneConnectionLeavesNothing(t *testing.T) {
	g := open(t)
	var wg sync.WaitGroup
	for flood, message := range map[string]func(i int) string{
		"creates":  func(int) string { return create("sandbox", "[sandbox: tokens=1]") },
		"names":    func(i int) string { return create("sandbox", "x", lane(fmt.Sprint("n", i))) },
		"mistakes": func(int) string { return `{"type":"` + strings.Repeat("x", 1000) + `"}` },
		"warm-ups": func(int) string { return create("sandbox", "x", warmUp) },
	} {
		wg.Go(func() {
			c, _, err := g.dial("all")
			if err != nil {
				t.Error(flood, err)
				return
			}
			answers := make(chan int)
			go func() {
				n := 0
				for {
					_, b, err := c.ReadMessage()
					if err != nil {
						answers <- n
						return
					}
					switch gjson.GetBytes(b, "type").Str {
					case "error", "response.completed", "response.failed":
						if n++; n == 300 {
							answers <- n
							return
						}
					}
				}
			}()
			for i := range 300 {
				if err := c.WriteMessage(websocket.TextMessage, []byte(message(i))); err != nil {
					t.Error(flood, err)
				}
			}
			if n := <-answers; n != 300 {
				t.Errorf("%s: %d answers to 300 messages", flood, n)
			}
			c.Close()
		})
	}
	wg.Wait()
	await(t, "all connections have ended", func() bool { return g.live.Watching() == 0 && g.memory.Used() == 0 })
}

// What two lanes say at the same time arrives as whole messages, each with the events of one response in order.
func TestEventsOfManyLanesDoNotMix(t *testing.T) {
	g := open(t)
	c := g.connect()
	const lanes = 12
	for i := range lanes {
		for range 3 {
			c.say(create("sandbox", "[sandbox: tokens=30]", lane(fmt.Sprint("l", i))))
		}
	}
	next := map[string]int64{}
	for done := 0; done < 3*lanes; {
		m := c.hear()
		if !json.Valid([]byte(m.Raw)) {
			t.Fatal(m.Raw)
		}
		name := m.Get("stream_id").Str
		if m.Get("sequence_number").Int() != next[name] {
			t.Fatalf("%s after %d", m.Raw, next[name])
		}
		next[name]++
		if m.Get("type").Str == "response.completed" {
			next[name] = 0
			done++
		}
	}
}
