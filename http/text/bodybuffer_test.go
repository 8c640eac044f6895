package text

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"stagedoor/http/overload"
)

// TestBuffersOfBodiesAreLittleLargerThanTheBodies: a body has room for its bytes and the end of the read, and at
// most a quarter of its size besides.
func TestBuffersOfBodiesAreLittleLargerThanTheBodies(t *testing.T) {
	for _, n := range []int{1, 100, minPooledBody, minPooledBody + 1, 10 << 10, 65537, 1<<20 + 1, 5<<20 + 7,
		maxBody + 1} {
		b := newBody(n)
		if room := cap(b.b); room < n || room > n+n/4+64 {
			t.Errorf("a body of %d bytes got a buffer of %d", n, room)
		}
	}
}

// slowly gives a body in pieces of 16 KiB, as a connection does.
type slowly struct{ r bytes.Reader }

func (s *slowly) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 16<<10)]) }
func (s *slowly) Close() error               { return nil }

// upload returns a request with a body of n bytes that has passed a limiter.
func upload(limits *overload.Limiter, body []byte, length int64) (*http.Request, *overload.Share, error) {
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", nil)
	in := &slowly{}
	in.r.Reset(body)
	r.Body, r.ContentLength = in, length
	return limits.Enter(r)
}

// TestBodiesArriveWholeWhateverTheirBuffers: with a buffer for all of it, with one that grows because none was
// allowed, and without a length.
func TestBodiesArriveWholeWhateverTheirBuffers(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 500_000)
	for name, c := range map[string]struct {
		limits overload.Limits
		length int64
	}{
		"all at once": {overload.Limits{}, int64(len(body))},
		"growing":     {overload.Limits{BodyBytes: 16 << 20}, int64(len(body))},
		"no length":   {overload.Limits{}, -1},
	} {
		limits := overload.New(c.limits)
		for range 2 { // the second request may get a used buffer
			r, share, err := upload(limits, body, c.length)
			if err != nil {
				t.Fatal(err)
			}
			b, err := receiveBody(httptest.NewRecorder(), r)
			if err != nil || !bytes.Equal(b.b, body) {
				t.Fatalf("%s: got an error or another body: %v", name, err)
			}
			b.free()
			share.End()
		}
	}
}

// BenchmarkBody receives bodies of known length.
func BenchmarkBody(b *testing.B) {
	limits := overload.New(overload.Limits{})
	for _, size := range []int{1 << 10, 64 << 10, 2 << 20, 16 << 20} {
		body := bytes.Repeat([]byte("x"), size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r, share, err := upload(limits, body, int64(size))
				if err != nil {
					b.Fatal(err)
				}
				got, err := receiveBody(httptest.NewRecorder(), r)
				if err != nil || len(got.b) != size {
					b.Fatal(err)
				}
				got.free()
				share.End()
			}
		})
	}
}
