package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// loopback serves s on a real socket until the test ends, and returns its address.
func loopback(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve([]net.Listener{l}); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() { s.Close(); wg.Wait() })
	return l.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	bothFields  = "POST /v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
	getHealth   = "GET /healthz HTTP/1.1\r\nHost: a\r\n"
	postHealth  = "POST /healthz HTTP/1.1\r\nHost: a\r\n"
	goodRequest = getHealth + "\r\n"
	hiddenBody  = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// ambiguousCases lists bytes from a client and the statuses of the replies. After 400 the connection ends.
var ambiguousCases = []struct {
	name, sent string
	statuses   []int
}{
	{"length first", bothFields + "0\r\n\r\n" + goodRequest, []int{400}},
	{
		"encoding first",
		getHealth + "transfer-ENCODING:chunked\r\ncontent-length:0\r\n\r\n0\r\n\r\n" + goodRequest,
		[]int{400},
	},
	{
		"folded values",
		getHealth + "Content-Length:\r\n 3\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n" + goodRequest,
		[]int{400},
	},
	{
		"several lengths",
		getHealth + "Content-Length: 3\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
			goodRequest,
		[]int{400},
	},
	{
		"an unknown encoding",
		getHealth + "Content-Length: 3\r\nTransfer-Encoding: gzip\r\n\r\nabc" + goodRequest,
		[]int{400},
	},
	{
		"an encoding in HTTP/1.0",
		"GET /healthz HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + goodRequest,
		[]int{400},
	},
	{"line ends without CR", strings.ReplaceAll(bothFields, "\r", "") + "0\r\n\r\n" + goodRequest, []int{400}},
	{"second request", goodRequest + bothFields + "0\r\n\r\n" + goodRequest, []int{200, 400}},
	{
		"after a body",
		postHealth + "Content-Length: 3\r\n\r\nabc" + bothFields + "0\r\n\r\n",
		[]int{405, 400},
	},
	{
		"after chunks",
		postHealth + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + bothFields + "0\r\n\r\n",
		[]int{405, 400},
	},
	{
		"both in a body",
		fmt.Sprintf(postHealth+"Content-Length: %d\r\n\r\n%s", len(hiddenBody), hiddenBody) + goodRequest,
		[]int{405, 200},
	},
	{
		"both in a chunk",
		fmt.Sprintf(postHealth+"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(hiddenBody),
			hiddenBody) + goodRequest,
		[]int{405, 200},
	},
	{
		"a length in a trailer",
		postHealth + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 4\r\n\r\n" + goodRequest,
		[]int{405, 200},
	},
	{
		"one in each request",
		postHealth + "Content-Length: 0\r\n\r\n" + postHealth + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		[]int{405, 405},
	},
}

// checkAmbiguous sends each case over a connection in pieces of the size.
func checkAmbiguous(t *testing.T, size int, dial func() net.Conn) {
	t.Helper()
	for _, c := range ambiguousCases {
		conn := dial()
		go func() {
			for piece := range slices.Chunk([]byte(c.sent), size) {
				if _, err := conn.Write(piece); err != nil {
					return // the server has closed the connection
				}
			}
		}()
		in := bufio.NewReader(conn)
		for i, want := range c.statuses {
			r, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s, reply %d: %v", c.name, i, err)
			}
			var reply struct{ Error struct{ Code string } }
			text, err := io.ReadAll(r.Body)
			if r.StatusCode != want || err != nil {
				t.Fatalf("%s, reply %d: %d %s %v, want %d", c.name, i, r.StatusCode, text, err, want)
			}
			if want != 400 {
				continue
			}
			if err := json.Unmarshal(text,
				&reply); err != nil || reply.Error.Code != "ambiguous_length" || !r.Close ||
				r.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s: %v %s", c.name, r.Header, text)
			}
			if more, _ := io.ReadAll(in); len(more) > 0 {
				t.Errorf("%s: after the refusal comes %q", c.name, more)
			}
		}
		conn.Close()
	}
}

func TestContentLengthBesideTransferEncodingIsRefused(t *testing.T) {
	eachTransport(t, func(t *testing.T, secure bool) {
		s, config := newServerOver(t, secure)
		address := loopback(t, s)
		for _, size := range []int{1 << 20, 7, 1} {
			checkAmbiguous(t, size, func() net.Conn { return connect(t, address, config) })
		}
	})
}

func TestClientsCannotMarkRequestsThemselves(t *testing.T) {
	s, _ := newServer(t, nil)
	conn := dial(t, loopback(t, s))
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n%s: guess\r\n\r\n", markName)
	if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || r.StatusCode != 200 {
		t.Errorf("%v %v", r, err)
	}
}

// halfClosing serves one request that waits for release or its own end, and closes the client's
// sending side while it waits. begin writes the beginning of the reply, if there is to be one.
func halfClosing(t *testing.T, secure bool, version string,
	begin func(http.ResponseWriter)) (client duplex, in *bufio.Reader, release chan struct{}, ended chan error) {
	t.Helper()
	s, config := newServerOver(t, secure)
	started := make(chan struct{})
	release, ended = make(chan struct{}), make(chan error, 1)
	s.http.Handler = s.handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if begin != nil {
			begin(w)
		}
		close(started)
		select {
		case <-release:
			_, err := io.WriteString(w, "data: whole\n\n")
			ended <- err
		case <-r.Context().Done():
			ended <- context.Cause(r.Context())
		}
	}))
	client = connect(t, loopback(t, s), config)
	fmt.Fprintf(client, "POST /v1/models HTTP/%s\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", version)
	<-started
	return client, bufio.NewReader(client), release, ended
}

// beginnings lists the progress of a reply when its client closes something.
var beginnings = map[string]func(http.ResponseWriter){
	"no reply yet": nil,
	"a stream": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		io.WriteString(w, "data: begun\n\n")
		http.NewResponseController(w).Flush()
	},
	"the head of a stream": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush()
	},
}

func TestAClientThatClosesItsSendingSideGetsItsReply(t *testing.T) {
	eachTransport(t, func(t *testing.T, secure bool) {
		for name, begin := range beginnings {
			t.Run(name, func(t *testing.T) {
				client, in, release, ended := halfClosing(t, secure, "1.1", begin)
				if err := client.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				// The probe shows that the server has noticed.
				if begin == nil {
					if head, err := in.Peek(25); err != nil || string(head) != "HTTP/1.1 100 Continue\r\n\r\n" {
						t.Fatalf("%q %v", head, err)
					}
				}
				r, err := http.ReadResponse(in, nil)
				if err == nil && r.StatusCode == 100 {
					close(release)
					r, err = http.ReadResponse(in, nil)
				}
				if err != nil || r.StatusCode != 200 {
					t.Fatalf("%v %v", r, err)
				}
				body := bufio.NewReader(r.Body)
				var text strings.Builder
				for begin != nil {
					line, err := body.ReadString('\n')
					text.WriteString(line)
					if line == ":\n" {
						close(release)
						break
					}
					if err != nil {
						t.Fatalf("%q %v", &text, err)
					}
				}
				rest, err := io.ReadAll(body)
				text.Write(rest)
				if err != nil || !strings.HasSuffix(text.String(), "data: whole\n\n") {
					t.Errorf("%q %v", &text, err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	})
}

func TestAClientThatLeavesIsNoticedBeforeTheNextWrite(t *testing.T) {
	eachTransport(t, func(t *testing.T, secure bool) {
		for name, begin := range beginnings {
			versions := []string{"1.1"}
			if begin == nil {
				versions = append(versions, "1.0")
			}
			for _, version := range versions {
				t.Run(name+" of HTTP "+version, func(t *testing.T) {
					client, in, _, ended := halfClosing(t, secure, version, begin)
					if begin != nil { // read it, because unread bytes make any system send a reset
						for line := ""; line != "\r\n"; {
							line, _ = in.ReadString('\n')
						}
					}
					left := time.Now()
					client.Close()
					if err := <-ended; err == nil {
						t.Error("the reply was written")
					}
					t.Logf("noticed after %s", time.Since(left))
				})
			}
		}
	})
}

// TestARefusedUploadGetsItsReply sends a large body to a path that nothing reads. The connection must not be
// reset while the client sends, because its system would then drop the reply.
func TestARefusedUploadGetsItsReply(t *testing.T) {
	s, _ := newServer(t, nil)
	address := loopback(t, s)
	piece := bytes.Repeat([]byte("a"), 256<<10)
	for _, connection := range []string{"keep-alive", "close"} {
		for range 5 {
			conn := dial(t, address)
			fmt.Fprintf(conn, "POST /none HTTP/1.1\r\nHost: a\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n",
				connection, 8*len(piece))
			if _, err := conn.Write(piece); err != nil {
				t.Fatalf("%s: %v", connection, err)
			}
			in := bufio.NewReader(conn)
			r, err := http.ReadResponse(in, nil)
			if err != nil || r.StatusCode != http.StatusNotFound {
				t.Fatalf("%s: %v %v", connection, r, err)
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Errorf("%s: %v", connection, err)
			}
			for range 2 {
				if _, err := conn.Write(piece[:1000]); err != nil {
					t.Errorf("%s: the connection is reset while the client sends: %v", connection, err)
				}
				if _, err := in.ReadByte(); err != io.EOF {
					t.Errorf("%s: after the reply: %v", connection, err)
				}
			}
			conn.Close()
		}
	}
}
