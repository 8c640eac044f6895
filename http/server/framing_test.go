package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// requestsOf returns where net/http finds the requests of a connection, and how many of them it
// accepts before one that is ambiguous. The last position is where it stops.
func requestsOf(text []byte) (starts []int, ambiguous bool) {
	unread := bytes.NewReader(text)
	in := bufio.NewReader(unread)
	for {
		at := len(text) - unread.Len() - in.Buffered()
		starts = append(starts, at)
		r, err := http.ReadRequest(in)
		if err != nil || r.ProtoMajor != 1 {
			return starts, false
		}
		if ambiguousHeader(text[at:], r) {
			return starts, true
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return starts, false
		}
	}
}

func ambiguousHeader(text []byte, r *http.Request) bool {
	in := textproto.NewReader(bufio.NewReader(bytes.NewReader(text)))
	if _, err := in.ReadLine(); err != nil {
		return false
	}
	h, err := in.ReadMIMEHeader()
	return err == nil && h["Transfer-Encoding"] != nil && (h["Content-Length"] != nil || !r.ProtoAtLeast(1, 1))
}

// followed returns what a framing finds in text that arrives in pieces of at most size bytes.
func followed(text []byte, size int) (starts []int, ambiguousAt int) {
	var f framing
	for i := range text {
		// Byte by byte first: the state says where requests begin.
		if f.state == messageStart && text[i] != '\r' && text[i] != '\n' {
			starts = append(starts, i)
		}
		if _, ambiguous := f.follow(text[i : i+1]); ambiguous {
			ambiguousAt = i + 1
			break
		}
	}
	var pieces framing
	at := 0
	for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
		if n, ambiguous := pieces.follow(rest[:min(size, len(rest))]); ambiguous {
			at = len(text) - len(rest) + n
			break
		}
	}
	if at != ambiguousAt {
		return starts, -1 // the pieces made a difference
	}
	return starts, ambiguousAt
}

// agree compares a framing with net/http.
func agree(t *testing.T, text []byte, size int) {
	t.Helper()
	want, ambiguous := requestsOf(text)
	got, at := followed(text, size)
	if at < 0 {
		t.Fatalf("pieces of %d bytes make a difference: %q", size, text)
	}
	whole := want[:len(want)-1] // net/http accepted all of these
	if ambiguous {
		whole = want
	}
	if len(got) < len(whole) || !slices.Equal(got[:len(whole)], whole) {
		t.Fatalf("requests at %v, want %v: %q", got, want, text)
	}
	switch last := want[len(want)-1]; {
	case ambiguous && at <= last:
		t.Fatalf("the ambiguous request at %d was not found: %q", last, text)
	case !ambiguous && at > 0 && at <= last:
		t.Fatalf("ambiguous at %d, before %d: %q", at, last, text)
	}
}

// generate makes a pipeline of requests, most of them right.
func generate(r *rand.Rand) []byte {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var out bytes.Buffer
	for range 1 + r.IntN(5) {
		end := pick("\r\n", "\r\n", "\r\n", "\n")
		fmt.Fprintf(&out, "%s / HTTP/1.%s%s", pick("GET", "POST", "PUT"), pick("1", "1", "1", "0"), end)
		fields := []string{"Host: a"}
		if r.IntN(2) == 0 {
			fields = append(fields, pick("X", "Content-Type", "content-length-x", "xcontent-length")+": "+
				pick("a", "text/event-stream", "7", "a"+end+" Content-Length: 3", ":", ""))
		}
		data := pick("", "x", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
			strings.Repeat("\r\n", 9), strings.Repeat("abc\n", 1500))
		framed := ""
		kind := r.IntN(8)
		if kind < 3 || kind == 7 {
			name := pick("Content-Length", "content-length", "CONTENT-LENGTH")
			value := fmt.Sprintf(pick("%d", "%d", " %d ", "0%d", "\t%d", end+" %d", "+%d", "%d"+end+" ", "%dx"),
				len(data))
			for range 1 + r.IntN(8)/7 {
				fields = append(fields, name+":"+value)
			}
			framed = data
		}
		if kind >= 3 && kind < 6 || kind == 7 && r.IntN(2) == 0 {
			fields = append(fields, pick("Transfer-Encoding", "transfer-encoding", "TRANSFER-encoding")+":"+
				pick("chunked", " chunked", "\tChunked ", end+" chunked", " chunked", "gzip, chunked", " identity"))
			var chunks strings.Builder
			for rest := data; len(rest) > 0; {
				n := 1 + r.IntN(len(rest))
				fmt.Fprintf(&chunks, pick("%x", "%X", "0%x", "%x;a=b", "%x ", "%x")+"\r\n%s\r\n", n, rest[:n])
				rest = rest[n:]
			}
			chunks.WriteString(
				pick("0", "00", "0;x") + "\r\n" + pick("", "", "A: b\r\n", "Content-Length: 5\r\n c\r\n") +
					pick("\r\n", "\r\n", "\r\n", "\n"),
			)
			framed = chunks.String()
		}
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		for _, f := range fields {
			out.WriteString(f + end)
		}
		out.WriteString(end + framed)
	}
	return out.Bytes()
}

// mutate overwrites some bytes with others that matter to HTTP.
func mutate(r *rand.Rand, text []byte) []byte {
	const meaningful = "\r\n\t :;0159afTtCc-\x00\xff"
	for range 1 + r.IntN(3) {
		text[r.IntN(len(text))] = meaningful[r.IntN(len(meaningful))]
	}
	return text
}

// TestFramingFindsTheRequestsThatNetHTTPFinds compares both over generated pipelines.
func TestFramingFindsTheRequestsThatNetHTTPFinds(t *testing.T) {
	pipelines, ambiguous, texts := 0, 0, 5000
	if testing.Short() {
		texts = 1000
	}
	for seed := range uint64(texts) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := generate(r)
		agree(t, text, 1+r.IntN(100))
		agree(t, mutate(r, bytes.Clone(text)), 1+r.IntN(100))
		starts, found := requestsOf(text)
		if len(starts) > 2 {
			pipelines++
		}
		if found {
			ambiguous++
		}
	}
	if pipelines < texts/10 || ambiguous < texts/20 {
		t.Errorf("%d pipelines and %d ambiguous requests are too few", pipelines, ambiguous)
	}
}

func FuzzFraming(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(generate(rand.New(rand.NewPCG(seed, 2))), 7)
	}
	f.Fuzz(func(t *testing.T, text []byte, size int) { agree(t, text, 1+max(0, size)%100) })
}

func BenchmarkFraming(b *testing.B) {
	text := []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: Go-http-client/1.1\r\n" +
		"Content-Length: 2000\r\nAuthorization: Bearer sd-0123456789012345678901234567890123456789\r\n" +
		"Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n" + strings.Repeat("x", 2000))
	var fr framing
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		fr.follow(text)
	}
}
