package text_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state/identity"
)

// raw sends bytes on a new connection and returns it.
func (w *web) raw(t *testing.T, text string) net.Conn {
	t.Helper()
	c := w.dial()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// head is a request's head, for raw.
func (w *web) head(path string, fields ...string) string {
	return fmt.Sprintf(
		"POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n",
		path,
		w.g.secrets["all"],
		strings.Join(fields, "\r\n"),
	)
}

// readReply is the reply on a raw connection and how long it took to come.
func readReply(t *testing.T, c net.Conn) (reply, time.Duration) {
	t.Helper()
	start := time.Now()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("after %s: %v", time.Since(start), err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Close { // net/http takes the header away
		res.Header.Set("Connection", "close")
	}
	return reply{res.StatusCode, res.Header, body}, time.Since(start)
}

func TestASilentStreamIsKeptAliveTheWayItsClientsBear(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		beat             string
	}{
		{"chat", "/v1/chat/completions", `{"model":"alpha","stream":true,"messages":[{"role":"user","content":"[sandbox: stall=2]"}]}`, ": keep-alive\n"},
		{"completions", "/v1/completions", `{"model":"alpha","stream":true,"prompt":"[sandbox: stall=2]"}`,
			": keep-alive\n"},
		{"responses", "/v1/responses", `{"model":"alpha","stream":true,"input":"[sandbox: stall=2]"}`,
			": keep-alive\n"},
		{"background", "/v1/responses",
			`{"model":"alpha","stream":true,"background":true,"input":"[sandbox: stall=2]"}`, ": keep-alive\n"},
		{"messages", "/v1/messages", `{"model":"alpha","stream":true,"max_tokens":64,"messages":[{"role":"user","content":"[sandbox: stall=2]"}]}`, "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
		{"gemini", "/v1beta/models/alpha:streamGenerateContent?alt=sse",
			`{"contents":[{"parts":[{"text":"[sandbox: stall=2]"}]}]}`, "data: "},
		{"gemini array", "/v1beta/models/alpha:streamGenerateContent",
			`{"contents":[{"parts":[{"text":"[sandbox: stall=2]"}]}]}`, "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t).listen(t)
				s := w.stream(t, "POST", c.path, c.body)
				got := make(chan string, 1)
				go func() {
					b, _ := io.ReadAll(s.body) // ends when the test closes it
					got <- string(b)
				}()
				time.Sleep(70 * time.Second)
				s.Close()
				tail := <-got
				var beats int
				for strings.HasSuffix(tail, c.beat) && beats < 10 {
					tail, beats = strings.TrimSuffix(tail, c.beat), beats+1
				}
				if c.name == "gemini" {
					beats = strings.Count(tail, "data: ") - 2 // the answer's pieces
				}
				if beats < 3 || beats > 6 {
					t.Errorf("%d heartbeats in 70 s, before them %q", beats, tail)
				}
			})
		})
	}
}

// earlyStreams are streams of every shape whose answer is late, with what the client must read before it and in a
// failure in place of it.
var earlyStreams = []struct{ name, path, body, beat, failure string }{
	{"chat", "/v1/chat/completions", `{"model":"alpha","stream":true,"messages":[{"role":"user","content":"%s"}]}`,
		": keep-alive\n", `data: {"error":{`},
	{"completions", "/v1/completions", `{"model":"alpha","stream":true,"prompt":"%s"}`,
		": keep-alive\n", `data: {"error":{`},
	{"responses", "/v1/responses", `{"model":"alpha","stream":true,"input":"%s"}`, ": keep-alive\n", "event: error\n"},
	{"messages", "/v1/messages",
		`{"model":"alpha","stream":true,"max_tokens":64,"messages":[{"role":"user","content":"%s"}]}`,
		"event: ping\n", "event: error\n"},
	{"gemini", "/v1beta/models/alpha:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"%s"}]}]}`,
		"data: ", `data: {"error":{`},
	{"gemini array", "/v1beta/models/alpha:streamGenerateContent", `{"contents":[{"parts":[{"text":"%s"}]}]}`,
		"\n", `[{"error":{`},
}

func TestAStreamWhoseAnswerIsLateBeginsWithAHeartbeat(t *testing.T) {
	for _, c := range earlyStreams {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t).listen(t)
				began := time.Now()
				s := w.stream(t, "POST", c.path, fmt.Sprintf(c.body, "[sandbox: delay=40s tokens=3]"))
				defer s.Close()
				if took := time.Since(began); s.status != 200 || took < 14*time.Second || took > 16*time.Second {
					t.Errorf("status %d after %s", s.status, took)
				}
				b, _ := io.ReadAll(s.body)
				if !strings.HasPrefix(string(b), c.beat) || time.Since(began) < 40*time.Second {
					t.Errorf("after %s: %q", time.Since(began), b)
				}
			})
		})
	}
}

func TestAFailureAfterAHeartbeatIsTheStreamsErrorEvent(t *testing.T) {
	for _, c := range earlyStreams {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t).listen(t)
				s := w.stream(t, "POST", c.path, fmt.Sprintf(c.body, "[sandbox: delay=40s status=503]"))
				defer s.Close()
				b, _ := io.ReadAll(s.body)
				failures := strings.Count(string(b), c.failure)
				if s.status != 200 || failures != 1 || strings.Contains(string(b), "[DONE]") {
					t.Errorf("status %d: %q", s.status, b)
				}
			})
		})
	}
}

func TestAClientThatReadsNothingIsDropped(t *testing.T) {
	for _, c := range []struct{ name, body string }{
		{"stream", `{"model":"alpha","stream":true,"messages":[{"role":"user","content":"[sandbox: tokens=200000]"}]}`},
		{"whole", `{"model":"alpha","messages":[{"role":"user","content":"[sandbox: tokens=200]"}]}`},
		{"error", `{"model":"alpha"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t)
				w := g.listen(t)
				conn := w.raw(t, w.head("/v1/chat/completions", fmt.Sprintf("Content-Length: %d", len(c.body)))+c.body)
				defer conn.Close()
				time.Sleep(14 * time.Second)
				if c.name == "stream" && g.runtime.Engine().InFlight() != 1 {
					t.Error("it was dropped too soon")
				}
				time.Sleep(3 * time.Second)
				if n := g.runtime.Engine().InFlight(); n != 0 {
					t.Errorf("%d requests are under way", n)
				}
				if _, err := conn.Write([]byte("GET")); err == nil {
					t.Error("the connection is still open")
				}
			})
		})
	}
}

func TestASlowReaderThatGoesOnReadingIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		w := g.listen(t)
		s := w.stream(t, "POST", "/v1/chat/completions",
			`{"model":"alpha","stream":true,"messages":[{"role":"user","content":"[sandbox: tokens=400]"}]}`)
		defer s.Close()
		last := ""
		for {
			time.Sleep(100 * time.Millisecond)
			ev, err := s.body.ReadString('\n')
			if err != nil {
				break
			}
			if ev != "\n" {
				last = ev
			}
		}
		if last != "data: [DONE]\n" {
			t.Errorf("it ends with %q", last)
		}
	})
}

func TestABodyThatDoesNotComeIsA408(t *testing.T) {
	const body = `{"model":"alpha","messages":[]}`
	for _, c := range []struct {
		name  string
		sent  string
		every time.Duration // a byte; 0: none
		least time.Duration
		most  time.Duration
	}{
		{"nothing", "", 0, 9 * time.Second, 11 * time.Second},
		{"half of it", body[:10], 0, 9 * time.Second, 11 * time.Second},
		{"a byte now and then", body[:1], 2 * time.Second, 29 * time.Second, 41 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(t).listen(t)
				conn := w.raw(t, w.head("/v1/chat/completions", "Content-Length: 100000")+c.sent)
				defer conn.Close()
				if c.every > 0 {
					go func() {
						for {
							time.Sleep(c.every)
							if _, err := conn.Write([]byte(" ")); err != nil {
								return
							}
						}
					}()
				}
				r, took := readReply(t, conn)
				want(t, r, 408, "request_timeout")
				if took < c.least || took > c.most {
					t.Errorf("it took %s", took)
				}
				if r.header.Get("Connection") != "close" {
					t.Error("the connection is kept")
				}
			})
		})
	}
}

func TestARefusedRequestDoesNotWaitForItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t).listen(t)
		conn := w.raw(t, "POST /v1/messages HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1000\r\n\r\n")
		defer conn.Close()
		r, took := readReply(t, conn)
		want(t, r, 401, "missing_api_key")
		if took > 11*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAWrongKeyNeedsNoBodyToBeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t).listen(t)
		conn := w.raw(
			t,
			"POST /v1/messages HTTP/1.1\r\nHost: gateway\r\nX-Api-Key: sd-wrong\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n",
		)
		defer conn.Close()
		r, took := readReply(t, conn)
		want(t, r, 401, "invalid_api_key")
		if took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAKeptConnectionOutlivesItsDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t).listen(t)
		for i, body := range []string{asks[0].body, strings.Replace(asks[0].body, "{", `{"stream":true,`, 1), asks[0].body} {
			s := w.stream(t, "POST", asks[0].path, body)
			if _, err := io.ReadAll(s.body); err != nil || s.status != 200 {
				t.Fatalf("request %d: %d %v", i, s.status, err)
			}
			s.Close()
			time.Sleep(40 * time.Second)
		}
	})
}

func TestAnswersThatTakeMinutesArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t).listen(t)
		s := w.stream(t, "POST", asks[0].path, strings.Replace(asks[0].body, "hi", "[sandbox: delay=5m]", 1))
		defer s.Close()
		if b, err := io.ReadAll(s.body); err != nil || s.status != 200 {
			t.Errorf("%d %s %v", s.status, b, err)
		}
	})
}

func TestAClientThatLeavesFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		g.key("one", func(k *identity.Key) { k.Limits.Concurrency = 1 })
		w := g.listen(t)
		body := strings.Replace(asks[0].body, "{", `{"stream":true,`, 1)
		body = strings.Replace(body, "hi", "[sandbox: stall=2]", 1)
		head := strings.Replace(w.head(asks[0].path, fmt.Sprintf("Content-Length: %d", len(body))), g.secrets["all"],
			g.secrets["one"], 1)
		conn := w.raw(t, head+body)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(err)
		}
		want(t, g.do("POST", asks[0].path, asks[0].body, g.as("one")...), 429, "rate_limit_exceeded")
		conn.Close()
		time.Sleep(100 * time.Millisecond)
		if r := g.do("POST", asks[0].path, asks[0].body, g.as("one")...); r.status != 200 {
			t.Errorf("after it left: %d %s", r.status, r.body)
		}
		lines := g.log.lines()
		if status := lines[1].Get("status").Int(); status != 499 {
			t.Errorf("its line: %s", lines[1].Raw)
		}
	})
}
