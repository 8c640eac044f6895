package ops

import (
	"net/http"
	"sync"
	"testing"

	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

// A key without limits that opens as many streams as it gets leaves room for other keys, and
// gets an error that says that its share of the requests is used up.
func TestOneKeyCannotTakeAllRequests(t *testing.T) {
	const places = 8
	c := sandbox("memory", "100ms")
	c.Limits = &harness.Limits{Requests: places, BodyMiB: 1}
	for _, name := range []string{"greedy", "modest"} {
		c.Keys = append(c.Keys, harness.Key{Key: harness.TestKey + name, Name: name})
	}
	g, err := harness.Launch(harness.Binary(t), c)
	launch(t, g, err)
	var streams sync.WaitGroup
	opened := 0
	g.Key = c.Keys[0].Key
	for range places {
		r, err := stream(t, g, cases.Chat, "pace=10, tokens=6000")
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode == http.StatusOK {
			opened++
			streams.Go(func() { cases.ReadReply(r) })
			continue
		}
		if reply := cases.ReadReply(r); reply.Status != http.StatusTooManyRequests {
			t.Errorf("beyond its share it is answered %d", reply.Status)
		}
	}
	if opened != places/2 {
		t.Errorf("one key opened %d streams of %d, want half", opened, places)
	}
	g.Key = c.Keys[1].Key
	r, err := stream(t, g, cases.Chat, "")
	if err != nil {
		t.Fatal(err)
	}
	if reply := cases.ReadReply(r); reply.Status != http.StatusOK {
		t.Errorf("another key is answered %d", reply.Status)
	}
	stop(t, g)
	streams.Wait()
}
