package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
	"stagedoor/test/harness"
)

// dial opens a connection to a gateway, as a client that speaks HTTP by hand.
func dial(t testing.TB, g *harness.Gateway) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// say sends text on a connection of its own and reads one reply. A peer that
// answers before it has everything may break what is still being sent.
func say(t testing.TB, g *harness.Gateway, text string) (reply *http.Response, body []byte, closed bool) {
	t.Helper()
	c := dial(t, g)
	go func() { _, _ = io.WriteString(c, text) }()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	reply, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("no reply: %v", err)
	}
	body, err = io.ReadAll(reply.Body)
	if err != nil {
		t.Fatalf("half a reply: %v", err)
	}
	return reply, body, reply.Close
}

// spoken is a chat request, with further header lines and a body.
func spoken(key, lines, body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n%s\r\n%s", key,
		lines, body)
}

// TestClientsThatSpeakBadly is faults.md C6 to C27 for the program as a whole: each
// is refused with the right status, and costs its upstream no call; or is one
// request, and one call.
func TestClientsThatSpeakBadly(t *testing.T) {
	b := newBench(
		t,
		[]cell{
			{
				name:     "m",
				upstream: cases.Chat,
				timeouts: patient,
				script:   func(c *faultd.Conn) { good(c, chatWire, wantsStream(c)) },
			},
		},
	)
	key := b.gateway.Key
	whole := way{cases.Chat, false}.body("m")
	length := func(body string) string {
		return fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	plain := func(body string) string { return spoken(key, length(body), body) }
	chunked := func(body string) string {
		return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	messages := func(content string) string {
		return plain(`{"model":"m","messages":[{"role":"user","content":` + content + `}]}`)
	}
	nested := func(n int) string { return messages(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	const kind = "Content-Type: application/json\r\n"
	for _, row := range []struct {
		id, title, text string
		status, calls   int
	}{
		{"c6a", "a length beyond the limit", spoken(key, kind+"Content-Length: 99999999\r\n", ""), 413, 0},
		{"c6b", "chunks beyond the limit", spoken(key, kind+"Transfer-Encoding: chunked\r\n",
			chunked(`{"model":"`+strings.Repeat("m", 33<<20))), 413, 0},
		{"c7a", "nesting of 200", nested(200), 400, 0},
		{"c7b", "nesting of a million", nested(1 << 20), 400, 0},
		{"c7c", "a million open brackets", plain(strings.Repeat("[", 1<<20)), 400, 0},
		{"c8", "a name twice", plain(`{"model":"m","model":"m2","messages":[]}`), 400, 0},
		{"c8b", "a name twice, once escaped", plain(`{"model":"m","\u006dodel":"m2","messages":[]}`), 400, 0},
		{"c9a", "invalid UTF-8", messages("\"\xff\""), 400, 0},
		{"c9b", "two documents", plain(whole + whole), 400, 0},
		{"c9c", "NaN", plain(strings.Replace(whole, `{`, `{"temperature":NaN,`, 1)), 400, 0},
		{"c9d", "1e999", plain(strings.Replace(whole, `{`, `{"temperature":1e999,`, 1)), 400, 0},
		{"c9e", "nothing", plain(""), 400, 0},
		{"c10a", "another media type", spoken(key, strings.Replace(length(whole), "json", "xml", 1), whole), 415, 0},
		{"c10b", "UTF-16", spoken(key, strings.Replace(length(whole), "json", "json; charset=utf-16", 1), whole), 415,
			0},
		{"c11", "a compressed body", spoken(key, "Content-Encoding: gzip\r\n"+length(whole), whole), 415, 0},
		{"c17", "length and chunks", spoken(key, kind+"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
			chunked(whole)), 400, 0},
		{"c18a", "two lengths", spoken(key, kind+"Content-Length: 5\r\nContent-Length: 6\r\n", whole), 400, 0},
		{"c18b", "a signed length", spoken(key, kind+"Content-Length: +5\r\n", whole), 400, 0},
		{"c18c", "a length in hexadecimal", spoken(key, kind+"Content-Length: 0x5\r\n", whole), 400, 0},
		{"c19a", "an unknown coding", spoken(key, kind+"Transfer-Encoding: xchunked\r\n", chunked(whole)), 501, 0},
		{"c19b", "chunks twice", spoken(key, kind+"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
			chunked(whole)), 501, 0},
		{"c20a", "a space before the colon", spoken(key, "Content-Type : application/json\r\n", ""), 400, 0},
		{"c20b", "two hosts", spoken(key, "Host: b\r\n"+length(whole), whole), 400, 0},
		{"c20c", "a zero byte in a header", spoken(key, "X-A: a\x00b\r\n"+length(whole), whole), 400, 0},
		{"c21a", "a folded header", spoken(key, "X-A: a\r\n b\r\n"+length(whole), whole), 200, 1},
		{"c21b", "chunk extensions", spoken(key, kind+"Transfer-Encoding: chunked\r\n",
			strings.Replace(chunked(whole), "\r\n", ";x=y\r\n", 1)), 200, 1},
		{"c22a", "a chunk size that overflows",
			spoken(key, kind+"Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n"+whole), 400, 0},
		{"c22b", "a chunk that is longer than it says",
			spoken(key, kind+"Transfer-Encoding: chunked\r\n", "5\r\n"+whole+"\r\n0\r\n\r\n"), 400, 0},
		{"c23", "another host in the request line", strings.Replace(plain(whole), "POST ", "POST http://elsewhere", 1),
			200, 1},
		{"c24", "a path that climbs", strings.Replace(plain(whole), "/v1/", "/v1/x/../", 1), 404, 0},
		{"c26a", "two different keys", spoken(key, "X-Api-Key: other\r\n"+length(whole), whole), 401, 0},
		{"c26b", "a key of 30 KB", strings.Replace(plain(whole), key, strings.Repeat("k", 30<<10), 1), 401, 0},
		{"c27", "a bad key with Expect: 100-continue", spoken("bad", "Expect: 100-continue\r\n"+length(whole), ""), 401,
			0},
	} {
		t.Run(row.id, func(t *testing.T) {
			before := b.server.Calls("m")
			reply, body, closed := say(t, b.gateway, row.text)
			if reply.StatusCode != row.status {
				t.Errorf("%s: status %d, want %d: %.200s", row.title, reply.StatusCode, row.status, body)
			}
			if got := b.server.Calls("m") - before; got != row.calls {
				t.Errorf("%s: %d calls, want %d", row.title, got, row.calls)
			}
			// What net/http refuses by itself is plain text, on a connection that it closes.
			if id := reply.Header.Get("X-Request-Id"); id == "" && !closed {
				t.Errorf("%s: no request id, and the connection stays open", row.title)
			} else if id != "" && row.status != 200 {
				var e struct {
					Error struct{ Message, Type string }
				}
				if err := json.Unmarshal(body, &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
					t.Errorf("%s: no envelope: %s", row.title, body)
				}
			}
		})
	}
}

// Requests that come in one piece are answered one by one, and what is behind a
// refused one is not taken for another request.
func TestPipelinedRequestsKeepTheirOrder(t *testing.T) {
	b := newBench(
		t,
		[]cell{
			{
				name:     "m",
				upstream: cases.Chat,
				timeouts: patient,
				script:   func(c *faultd.Conn) { good(c, chatWire, wantsStream(c)) },
			},
		},
	)
	body := way{cases.Messages, false}.body("m")
	var text strings.Builder
	const n = 20
	for i := range n {
		fmt.Fprintf(
			&text,
			"POST /v1/messages HTTP/1.1\r\nHost: a\r\nX-Api-Key: %s\r\nX-Request-Id: r%d\r\n"+
				"Content-Length: %d\r\n\r\n%s",
			b.gateway.Key,
			i,
			len(body),
			body,
		)
	}
	// The last one is refused for what it says of itself; what follows hides a request.
	fmt.Fprintf(&text, "POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n%s",
		"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
	c := dial(t, b.gateway)
	go func() { _, _ = io.WriteString(c, text.String()) }()
	in := bufio.NewReader(c)
	for i := range n {
		reply, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, reply.Body); err != nil {
			t.Fatal(err)
		}
		if id := reply.Header.Get("X-Request-Id"); reply.StatusCode != 200 || id != fmt.Sprintf("r%d", i) {
			t.Errorf("reply %d is %d to %q", i, reply.StatusCode, id)
		}
	}
	if reply, err := http.ReadResponse(in, nil); err != nil || reply.StatusCode != 400 {
		t.Fatalf("the last: %v, %v", reply, err)
	} else if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		t.Fatal(err)
	}
	if extra, err := http.ReadResponse(in, nil); err == nil {
		t.Errorf("what was hidden behind it was answered: %d", extra.StatusCode)
	}
	if got := b.server.Calls("m"); got != n {
		t.Errorf("%d calls, want %d", got, n)
	}
}

// An upstream learns nothing of a client but its request: no cookie, no address, no
// key; and a client cannot write lines into the log (S14).
func TestWhatAClientSendsGoesNoFurther(t *testing.T) {
	headers := make(chan http.Header, 1)
	b := newBench(t, []cell{{name: "m", upstream: cases.Chat, timeouts: patient, script: func(c *faultd.Conn) {
		headers <- c.Request.Header
		good(c, chatWire, wantsStream(c))
	}}})
	for _, w := range []way{{cases.Chat, false}, {cases.Messages, true}} { // untouched, and translated
		r := w.request(t.Context(), t, b.gateway, "m")
		for name, value := range map[string]string{"Cookie": "session=marker-cookie", "X-Forwarded-For": "203.0.113.77", "Forwarded": "for=203.0.113.77",
			"Via": "1.1 marker-proxy", "Proxy-Authorization": "Basic marker", "Te": "trailers",
			"Origin": "https://marker.example", "Referer": "https://marker.example/"} {
			r.Header.Set(name, value)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		cases.ReadReply(response)
		seen := await(t, headers, "the upstream's call")
		for _, secret := range []string{"marker", "203.0.113.77", b.gateway.Key} {
			if strings.Contains(fmt.Sprint(seen), secret) {
				t.Errorf("%s: the upstream received %q: %v", w, secret, seen)
			}
		}
	}
	forged := `x\r\nlevel=ERROR msg=forged\u001b[31m`
	reply, body, _ := say(
		t,
		b.gateway,
		spoken(b.gateway.Key, "Content-Type: application/json\r\nContent-Length: "+fmt.Sprint(len(forged)+40)+"\r\n",
			fmt.Sprintf("%-*s", len(forged)+40, `{"model":"`+forged+`","messages":[]}`)),
	)
	if reply.StatusCode == 200 {
		t.Errorf("answered: %s", body)
	}
	if log := b.gateway.Logs(); strings.Contains(log, "\nlevel=ERROR msg=forged") || strings.Contains(log, "\x1b") {
		t.Error("a client wrote a line into the log")
	}
}
