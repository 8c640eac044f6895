package faults

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/faults/faultd"
	"stagedoor/test/harness"
)

// A flapper is an upstream that is well or not, as a test says.
type flapper struct {
	well atomic.Bool
}

func (f *flapper) play(c *faultd.Conn) {
	if !f.well.Load() {
		c.Whole(http.StatusInternalServerError, "application/json", chatWire.Error(500, "api_error", "no"))
		return
	}
	good(c, chatWire, wantsStream(c))
}

// flapping is a gateway with retries before two flappers; the model alone has the
// first one, the model both has the two.
func flapping(t *testing.T) (g *harness.Gateway, server *faultd.Server, first, second *flapper) {
	t.Helper()
	server = newServer(t)
	first, second = new(flapper), new(flapper)
	server.Handle("first", first.play)
	server.Handle("second", second.play)
	provider := func(name string) harness.Provider {
		return harness.Provider{
			Shape:    "chat",
			BaseURL:  "http://" + server.Addr() + "/" + name + "/v1",
			Retries:  2,
			Timeouts: &patient,
		}
	}
	one, other := harness.Target{Provider: "first", Model: "m"}, harness.Target{Provider: "second", Model: "m"}
	return harness.Start(t, harness.Config{
		Providers: map[string]harness.Provider{"first": provider("first"), "second": provider("second")},
		Models: map[string]harness.Model{
			"alone": {Targets: []harness.Target{one}},
			"both":  {Targets: []harness.Target{one, other}},
		},
	}), server, first, second
}

// crowd asks for a model from several sides at once and counts what came back.
func crowd(t *testing.T, g *harness.Gateway, model string, askers, times int) map[int]int {
	t.Helper()
	var mu sync.Mutex
	statuses := map[int]int{}
	var wg sync.WaitGroup
	w := way{cases.Chat, false}
	for range askers {
		wg.Go(func() {
			for range times {
				reply := w.ask(t, g, model)
				mu.Lock()
				statuses[reply.Status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return statuses
}

// While everything fails, trying again must not become a load of its own: the
// upstream is called at most 1.2 times for each request.
func TestRetriesDoNotMultiplyAnOutage(t *testing.T) {
	t.Parallel()
	g, server, _, _ := flapping(t)
	const askers, times = 40, 10
	statuses := crowd(t, g, "alone", askers, times)
	if statuses[http.StatusOK] > 0 {
		t.Fatalf("answers of an upstream that is down: %v", statuses)
	}
	for status := range statuses {
		if status != 500 && status != 503 {
			t.Errorf("statuses %v, want the upstream's 500 or 503", statuses)
		}
	}
	if calls := server.Calls("first"); calls > askers*times*12/10 {
		t.Errorf("%d calls for %d requests, want at most 1.2 each", calls, askers*times)
	}
	if statuses[http.StatusServiceUnavailable] == 0 {
		t.Errorf("the breaker never opened: %v", statuses)
	}
}

// usedWithin is much longer than the minute for which the breaker is open at most. How
// long it is open depends on how many trials failed before, so on the machine's load.
// TestAnUpstreamThatIsWellAgainIsUsedWithinTenSeconds of actors/text measures it.
const usedWithin = 3 * time.Minute

// An upstream that is well again is used again, and until then the other one stands in.
func TestAFlappingUpstreamIsUsedAgain(t *testing.T) {
	t.Parallel()
	g, server, first, second := flapping(t)
	second.well.Store(true)
	if statuses := crowd(t, g, "both", 4, 20); statuses[http.StatusOK] != 80 {
		t.Errorf("with one of two down: %v, want answers only", statuses)
	}
	spared := server.Calls("first")
	if spared > 40 {
		t.Errorf("the upstream that is down was called %d times for 80 requests", spared)
	}
	first.well.Store(true)
	healed := time.Now()
	for server.Calls("first") < spared+10 {
		if statuses := crowd(t, g, "both", 1, 4); statuses[http.StatusOK] != 4 {
			t.Fatalf("while it recovers: %v, want answers only", statuses)
		}
		if time.Since(healed) > usedWithin {
			t.Fatalf("not used again %s after it was well", time.Since(healed))
		}
		time.Sleep(50 * time.Millisecond) // otherwise the wait is a load test
	}
}

// A model whose only upstream is down fails at once, and is served again by the first
// request after the upstream is well.
func TestALoneUpstreamIsTriedAsSoonAsItIsWell(t *testing.T) {
	t.Parallel()
	g, _, first, _ := flapping(t)
	crowd(t, g, "alone", 10, 4)
	first.well.Store(true)
	healed := time.Now()
	for {
		if crowd(t, g, "alone", 1, 1)[http.StatusOK] == 1 {
			return
		}
		if time.Since(healed) > usedWithin {
			t.Fatalf("not used again %s after it was well", time.Since(healed))
		}
		time.Sleep(50 * time.Millisecond) // as above
	}
}
