// Package embedded offers the simulator's video jobs as a video.Upstream inside the gateway. It is the client of the
// videos shape in front of the simulator's own HTTP handler, without a network between them. Prompts request faults.
//
// The id of a job contains everything about it, so jobs outlive the process. A submission that is repeated after a
// restart starts the same job again, because its key is part of the id, and its video has the same bytes.
package embedded

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/sandbox/media"
	"stagedoor/providers/shapes/videos"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// NewVideos returns an upstream. All upstreams of a process should share one engine, which remembers deleted jobs.
func NewVideos(model *sandbox.Model, engine *job.Engine) video.Upstream {
	handler := media.Handler(model, engine, http.NotFoundHandler())
	client, err := upstream.New(upstream.Options{BaseURL: "http://sandbox", Transport: transport{handler}})
	if err != nil {
		panic(err) // cannot happen, because the address is valid
	}
	return videos.New(client, true)
}

// transport calls a handler in place of a server and keeps the whole reply in memory.
type transport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			err = io.ErrUnexpectedEOF
		} else if p != nil {
			panic(p)
		}
	}()
	w := &reply{header: http.Header{}, status: http.StatusOK}
	t.ServeHTTP(w, in)
	w.length = int64(w.Len())
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil {
		w.length = n
	}
	return &http.Response{StatusCode: w.status, Header: w.header, Body: w, ContentLength: w.length, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

// reply is a reply of a handler, and its body for the client.
type reply struct {
	bytes.Buffer
	header       http.Header
	status       int
	read, length int64
}

func (w *reply) Header() http.Header    { return w.header }
func (w *reply) WriteHeader(status int) { w.status = status }
func (w *reply) Flush()                 {}
func (w *reply) Close() error           { return nil }

// Read implements io.Reader. A body that is shorter than its Content-Length was broken off as requested.
func (w *reply) Read(p []byte) (int, error) {
	n, err := w.Buffer.Read(p)
	if w.read += int64(n); err == io.EOF && w.read < w.length {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
