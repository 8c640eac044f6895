package live_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// Streams of events and sockets of a key end within a second of it, and say why. Those
// of other keys go on.
func TestWatchersOfARevokedKeyEndWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.auth.EndRevoked(ctx, nil) })
		defer wg.Wait()
		defer cancel()
		job := s.job(me)
		_, events := s.get("/v1/videos/events", key)
		_, one := s.get("/v1/videos/"+job.ID+"/events", key)
		s.get("/v1/videos/events", foreign)
		socket := s.socket()
		time.Sleep(5 * time.Second)
		began := time.Now()
		s.keys(foreign)
		code, _ := ended(t, socket)
		for name, text := range map[string]string{"all": body(t, events), "one": body(t, one)} {
			if !strings.Contains(text, "event: error\n") || !strings.Contains(text, `"code":"invalid_api_key"`) {
				t.Errorf("the stream of %s ended with %q", name, text)
			}
		}
		if took := time.Since(began); took > time.Second || code != websocket.ClosePolicyViolation {
			t.Errorf("the socket ended with %d, all after %s", code, took)
		}
		synctest.Wait()
		if n := s.handlers.Watching(); n != 1 {
			t.Errorf("%d watch", n)
		}
	})
}

// A watcher uses one of its key's requests per minute.
func TestKeysRequestRateCountsWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		job := s.job(me)
		s.auth.SetFixed(
			[]identity.Key{
				{
					ID:      "cfg_slow",
					Hash:    state.HashSecret(key),
					User:    "ann",
					Enabled: true,
					Limits:  identity.Limits{RPM: 2, Concurrency: 1},
				},
			},
		)
		s.get("/v1/videos/events", key)
		s.get("/v1/videos/"+job.ID+"/events", key)
		reply, _ := s.get("/v1/videos/events", key)
		if reply.StatusCode != 429 || reply.Header.Get("X-Ratelimit-Limit-Requests") != "2" {
			t.Errorf("a third stream of a key with 2 requests a minute gets %d, %v", reply.StatusCode, reply.Header)
		}
		if _, reply, err := s.dial(map[string][]string{"Authorization": {"Bearer " + key}}); err == nil ||
			reply.StatusCode != 429 {
			t.Errorf("a socket beyond the rate: %v", err)
		}
	})
}
