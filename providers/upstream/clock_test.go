package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/providers/shapes"
)

func TestSwitchingProtocolsIsRefused(t *testing.T) {
	gone := make(chan error, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, err = bufio.NewReader(c).ReadByte() // until the gateway closes it
		gone <- err
	}))
	defer server.Close()
	client, err := New(Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	calls := map[string]func() error{
		"Do": func() error {
			_, err := client.Do(context.Background(), shapes.Call{Body: []byte("{}")}, nil, "")
			return err
		},
		"Send": func() error {
			_, err := client.Send(context.Background(), Request{Method: http.MethodGet, Path: "/x"}, nil, "")
			return err
		},
	}
	for name, call := range calls {
		var f *Failure
		if err := call(); !errors.As(err, &f) || f.Err.Code != "upstream_invalid_response" {
			t.Errorf("%s: got %v", name, err)
		}
		if err := <-gone; err == nil {
			t.Errorf("%s: the connection is still there", name)
		}
	}
}

// silentBody is a body whose upstream says nothing.
type silentBody struct{ ctx context.Context }

func (s silentBody) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (silentBody) Close() error { return nil }

type headersOnly struct{}

func (headersOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: silentBody{r.Context()}, ContentLength: -1}, nil
}

func TestIdleBindsFromTheHeadersOn(t *testing.T) {
	for _, clocks := range []Timeouts{
		{FirstByte: time.Minute, Idle: 5 * time.Second, Total: time.Hour},
		{FirstByte: time.Second, Idle: 5 * time.Second, Total: time.Hour},
		{FirstByte: time.Minute, Idle: time.Minute, Total: 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, err := New(Options{BaseURL: "http://a.test", Timeouts: clocks, Transport: headersOnly{}})
			if err != nil {
				t.Fatal(err)
			}
			reply, err := client.Do(t.Context(), shapes.Call{}, nil, "")
			if err != nil {
				t.Fatal(err)
			}
			defer reply.Close()
			start := time.Now()
			_, err = reply.ReadAll(nil)
			if took := time.Since(start); err == nil || took.Round(time.Millisecond) != 5*time.Second {
				t.Errorf("%+v: %v after %v", clocks, err, took)
			}
		})
	}
}
