package ops

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

// A gateway at its limits refuses more requests with Retry-After, and is still healthy
// and ready, because restarting it, or sending all clients elsewhere, would only move
// the load.
func TestHealthStaysGreenUnderOverload(t *testing.T) {
	const places = 5
	c := sandbox("memory", "100ms")
	c.Limits = &harness.Limits{Requests: places, BodyMiB: 1}
	// Each place goes to another owner, because one owner alone gets only half of the pool.
	for i := range places {
		name := fmt.Sprintf("owner-%d", i)
		c.Keys = append(c.Keys, harness.Key{Key: harness.TestKey + name, Name: name})
	}
	g, err := harness.Launch(harness.Binary(t), c)
	launch(t, g, err)
	var streams sync.WaitGroup
	for _, owner := range c.Keys {
		g.Key = owner.Key
		r, err := stream(t, g, cases.Chat, "pace=10, tokens=6000")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", r, err)
		}
		streams.Go(func() { cases.ReadReply(r) })
	}
	for range 50 {
		r, err := stream(t, g, cases.Chat, "")
		if err != nil {
			t.Fatal(err)
		}
		if reply := cases.ReadReply(r); reply.Status != http.StatusServiceUnavailable ||
			reply.Header.Get("Retry-After") == "" {
			t.Fatalf("one too many is answered %d", reply.Status)
		}
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
		var reply struct{ Status string }
		if status := ask(t, g, http.MethodGet, path, "", &reply); status != http.StatusOK || reply.Status != want {
			t.Errorf("%s: %d %+v", path, status, reply)
		}
	}
	// Nor are operators kept from looking, and from ending what is too much.
	for _, path := range []string{"/admin/v1/flow", "/metrics", "/flow", "/signin"} {
		r, err := client.Get(g.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if r.Body.Close(); r.StatusCode == http.StatusServiceUnavailable {
			t.Errorf("%s is refused under overload", path)
		}
	}
	stop(t, g)
	streams.Wait()
}
