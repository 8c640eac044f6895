package faultd

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"stagedoor/test/cases"
)

func TestGoodWiresKeepTheRulesOfTheirShape(t *testing.T) {
	for shape, w := range Wires {
		events, err := cases.Decode([]byte(strings.Join(w.Stream(), "")))
		if err != nil {
			t.Fatalf("%s: %v", shape, err)
		}
		if bad := cases.ClientRules(shape, events, false); len(bad) > 0 {
			t.Errorf("%s: %q", shape, bad)
		}
		reply := &cases.Reply{
			Status: 200,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   []byte(w.Whole),
		}
		if _, bad := cases.WholeRules(shape, reply, false); len(bad) > 0 {
			t.Errorf("%s: %q", shape, bad)
		}
		failed, err := cases.Decode([]byte(w.Begun() + w.Event("overloaded_error", "busy")))
		if err != nil || !cases.Failed(shape, failed) {
			t.Errorf("%s: an error event is not one: %v, %v", shape, failed, err)
		}
	}
}

func TestScriptsAreChosenByPathAndCounted(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Handle("hello", func(c *Conn) {
		c.StartStream("X-Call: yes")
		c.Chunk("data: " + string(c.Body) + "\n\n")
		c.EndChunks()
		c.KeepAlive()
	})
	for range 2 {
		response, err := http.Post("http://"+s.Addr()+"/hello/v1/x", "text/plain", strings.NewReader("ping"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(body) != "data: ping\n\n" || response.Header.Get("X-Call") != "yes" {
			t.Errorf("got %q, %v, %v", body, err, response.Header)
		}
	}
	if got := s.Calls("hello"); got != 2 {
		t.Errorf("counted %d calls, want 2", got)
	}
}

func TestResetIsNoEnd(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Handle("torn", func(c *Conn) { c.Reset() })
	if response, err := http.Get("http://" + s.Addr() + "/torn/"); err == nil {
		_ = response.Body.Close()
		t.Error("a reset connection gave a response")
	}
}
