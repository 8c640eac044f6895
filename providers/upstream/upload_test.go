package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"stagedoor/providers/shapes"
)

func TestUploadsArriveWhole(t *testing.T) {
	got := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- body
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	client, err := New(Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, size := range []int{0, 1, 3 << 10, 5 << 10, 64 << 10, 3 << 20} {
		body := bytes.Repeat([]byte("0123456789abcdef+"), size/17+1)[:size]
		reply, err := client.Do(context.Background(), shapes.Call{Body: body}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		reply.Close()
		if !bytes.Equal(<-got, body) {
			t.Errorf("a body of %d bytes arrived otherwise", size)
		}
	}
}

// After Close the caller may write over the body, although the upstream has not read it yet.
func TestARevokedUploadIsNotReadAgain(t *testing.T) {
	up := &upload{body: append([]byte("prompt"), make([]byte, MaxKept)...)}
	first, again := up.open(), up.open()
	if b, err := io.ReadAll(io.LimitReader(first, 3)); err != nil || string(b) != "pro" {
		t.Fatalf("got %q, %v", b, err)
	}
	up.revoke()
	for _, body := range []io.ReadCloser{first, again, up.open()} {
		r := body.(*uploadReader)
		if n, err := r.Read(make([]byte, 8)); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("read %d bytes, %v", n, err)
		}
		if n, err := r.writeTo(io.Discard, 8); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
	}
}

func TestAnEarlyAnswerEndsTheUpload(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized) // without a look at the body
	}))
	defer server.Close()
	client, err := New(Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	body := make([]byte, 16<<20)
	reply, err := client.Do(context.Background(), shapes.Call{Body: body}, nil, "")
	if err == nil { // the transport may as well see the broken connection first
		reply.Close()
	}
	clear(body) // the race detector finds a read that is still running
}

// Servers on some platforms write a byte order mark before their JSON, which clients refuse.
func TestTheByteOrderMarkOfABodyIsLeftOut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "\uFEFF{}\uFEFF")
	}))
	defer server.Close()
	client, err := New(Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	reply, err := client.Do(context.Background(), shapes.Call{}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Close()
	if body, err := reply.ReadAll(nil); err != nil || string(body) != "{}\uFEFF" {
		t.Errorf("got %q, %v", body, err)
	}
}

// What an upstream says before it breaks off an upload is its answer, although the
// upload fails (faults.md U43).
func TestAnEarlyAnswerCountsMoreThanTheUploadItBroke(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, c, 100<<10)
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
			_ = c.(*net.TCPConn).SetLinger(0) // what is unread makes it a reset anyway
			_ = c.Close()
		}
	}()
	client, err := New(Options{BaseURL: "http://" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 5 {
		reply, err := client.Do(context.Background(), shapes.Call{Body: make([]byte, 16<<20)}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if reply.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", reply.Status)
		}
		reply.Close()
	}
}

// BenchmarkDo is a call with a whole reply of 1 KiB, over a real connection.
func BenchmarkDo(b *testing.B) {
	answer := bytes.Repeat([]byte("x"), 1<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	client, err := New(Options{BaseURL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for name, size := range map[string]int{"1KiB": 1 << 10, "64KiB": 64 << 10} {
		b.Run(name, func(b *testing.B) {
			body := make([]byte, size)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				reply, err := client.Do(context.Background(), shapes.Call{Body: body}, nil, "")
				if err != nil {
					b.Fatal(err)
				}
				if buf, err = reply.ReadAll(buf[:0]); err != nil {
					b.Fatal(err)
				}
				reply.Close()
			}
		})
	}
}
