package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A stand-by answers health checks, over TLS too, and refuses everything else. Its listeners serve afterwards.
func TestAStandbyAnswersHealthChecksAndLeavesItsListenersOpen(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		s, config := newServerOver(t, secure)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		url := "http://" + listener.Addr().String()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		if secure {
			url = "https" + strings.TrimPrefix(url, "http")
		}
		get := func(path string) (int, string) {
			res, err := client.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			return res.StatusCode, string(text)
		}
		o := Options{Logger: slog.New(slog.DiscardHandler), CertFile: s.options.CertFile, KeyFile: s.options.KeyFile,
			Health: func(context.Context) Health { return Health{Blocking: []Condition{{Code: "waits"}}} }}
		for range 2 { // as often as one likes
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := StandBy(ctx, []net.Listener{listener}, o); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			paths := map[string]string{"/healthz": `"ok"`, "/readyz": `"waits"`, "/v1/models": `"standby"`}
			for path, want := range paths {
				code, text := get(path)
				if (code == http.StatusOK) != (path == "/healthz") || !strings.Contains(text, want) {
					t.Errorf("%s: %s: %d %s", name, path, code, text)
				}
			}
			idle, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			wg.Wait()
			idle.Close()
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Serve([]net.Listener{listener}); err != nil {
				t.Errorf("%s: Serve: %v", name, err)
			}
		})
		if code, text := get("/readyz"); code != http.StatusOK {
			t.Errorf("%s: /readyz of the server that follows: %d %s", name, code, text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		wg.Wait()
	}
}

func TestAGatewayWhoseKnowledgeIsOldAnswersHealthChecksAndMetricsOnly(t *testing.T) {
	stale := true
	s, _ := newServer(t, func(o *Options) { o.Stale = func() bool { return stale } })
	paths := map[string]bool{"/healthz": false, "/readyz": false, "/metrics": false, "/v1/models": true}
	for path, refused := range paths {
		r, err := http.NewRequest(http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if code := get(s, r).Code; (code == http.StatusServiceUnavailable) != refused {
			t.Errorf("%s: %d", path, code)
		}
	}
	stale = false
	r, err := http.NewRequest(http.MethodGet, "/nowhere", nil)
	if err != nil {
		t.Fatal(err)
	}
	if code := get(s, r).Code; code != http.StatusNotFound {
		t.Errorf("afterwards: %d", code)
	}
}
