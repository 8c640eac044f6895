package recording

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"stagedoor/providers/upstream"
)

// TestLargeBodiesAreCutWhileTheyArrive without leaving the beginning of a secret at the cut, and what goes on after the
// end of the exchange changes nothing. A recording for a replay has no such exchange.
func TestLargeBodiesAreCutWhileTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := startTested(t, day)
		defer k.Close()
		file, err := k.recorder.Start("k")
		if err != nil {
			t.Fatal(err)
		}
		// The upstream repeats its key so often that what is kept ends in the middle of one.
		const secret = "sk-vendor-secret-0123456789"
		body := strings.Repeat("sk-vendor-secret-0123456789 ", maxText/20)
		r := httptest.NewRequest(http.MethodPost, "/v1/images/edits", strings.NewReader(strings.Repeat("x", 4*maxText)))
		r.Header.Set("Authorization", "Bearer sd-client-secret")
		w, r, end := k.recorder.Serve(httptest.NewRecorder(), r, "images", "req_1", "k")
		draft := From(r.Context())
		draft.Try("vendor", "m", false, []string{secret})
		sent := &upstream.Request{Path: "/images",
			Body: func() (io.ReadCloser, error) { return io.NopCloser(r.Body), nil }}
		answered := draft.Observe(sent)
		for range 2 { // a connection that was closed meanwhile
			if b, err := sent.Body(); err != nil {
				t.Fatal(err)
			} else if _, err := io.Copy(io.Discard, b); err != nil {
				t.Fatal(err)
			}
		}
		w.WriteHeader(http.StatusBadGateway)
		for rest := body; rest != ""; {
			n := min(len(rest), 1000)
			if _, err := io.WriteString(w, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		end()
		answered(nil, errors.New("too late"))
		if draft.Observe(sent)(nil, io.EOF); len(draft.x.Attempts) != 1 || len(draft.x.Attempts[0].Calls) != 1 {
			t.Error("a call after the end is kept")
		}
		synctest.Wait()
		x := k.find(t, "req_1")
		if x == nil || x.Client.Path != "/v1/images/edits" || !x.Shortened || x.Reply.Status != http.StatusBadGateway {
			t.Fatalf("got %+v", x)
		}
		if n := len(x.Client.Body); n < maxText || n > maxText+100 {
			t.Errorf("%d bytes of the request are kept", n)
		}
		if text := string(x.Reply.Error); len(text) < maxText/4 || strings.Contains(text, "sk-v") {
			t.Errorf("%d bytes of the reply are kept, which end with %q", len(text), text[max(len(text)-40, 0):])
		}
		if c := x.Attempts[0].Calls[0]; c.Cut != "" || x.Attempts[0].Target.Provider != "vendor" {
			t.Errorf("the attempt is %+v", x.Attempts[0])
		}
		if k.sink.room.Load() != room || file.begun.Load() != 0 {
			t.Error("room is lost, or a recording for a replay has the exchange")
		}
		if _, same, _ := k.recorder.Serve(w, r, "images", "req_2", "other"); same != r {
			t.Error("another key is recorded")
		}
		var none *Recorder
		if _, same, _ := none.Serve(w, r, "images", "req_3", "k"); same != r {
			t.Error("a recorder that is nil records")
		}
	})
}
