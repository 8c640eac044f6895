package ops

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

// streams is the number in flight when the gateway is stopped.
var streams = flag.Int("ops.streams", 100, "streams under way at the stop")

// Every stream that a stop meets ends as its shape says: those that can within
// the grace with their answer, the others with a retryable error. None breaks.
func TestEveryStreamOfADrainHasItsEnd(t *testing.T) {
	g, err := harness.Launch(harness.Binary(t), sandbox("memory", "4s"))
	launch(t, g, err)
	var mu sync.Mutex
	counts := map[string]int{}
	var begun, ended sync.WaitGroup
	for i := range *streams {
		shape, directives := cases.Shapes[i%len(cases.Shapes)], "pace=10, tokens=20" // two seconds
		if i/len(cases.Shapes)%2 == 1 {
			directives = "pace=10, tokens=6000" // ten minutes
		}
		begun.Add(1)
		ended.Go(func() {
			r, err := stream(t, g, shape, directives)
			begun.Done()
			how := "not begun"
			if err == nil {
				how = ending(t, shape, cases.ReadReply(r))
			}
			mu.Lock()
			counts[how]++
			mu.Unlock()
		})
	}
	begun.Wait()
	began := time.Now()
	stop(t, g)
	took := time.Since(began)
	ended.Wait()
	t.Logf("%d streams, stopped within %s: %s", *streams, took.Round(time.Millisecond), fmt.Sprint(counts))
	if counts["answer"]+counts["retryable error"] != *streams || counts["answer"] == 0 ||
		counts["retryable error"] == 0 {
		t.Errorf("not every stream has its end: %s", fmt.Sprint(counts))
	}
}

// ending says how a stream ended.
func ending(t *testing.T, shape cases.Shape, reply *cases.Reply) string {
	switch {
	case reply.Status != http.StatusOK:
		return http.StatusText(reply.Status)
	case reply.Aborted:
		return "cut off"
	}
	events, err := cases.Decode(reply.Body)
	if err != nil {
		return "broken"
	}
	if bad := cases.ClientRules(shape, events, false); len(bad) > 0 {
		t.Errorf("%s: %v", shape, bad)
		return "against the rules"
	}
	if !cases.Failed(shape, events) {
		return "answer"
	}
	if retryable(shape, reply.Body) {
		return "retryable error"
	}
	t.Logf("%s ends with %s", shape, reply.Body[max(0, len(reply.Body)-300):])
	return "another error"
}

// retryable tells whether a stream's error says that the same request may be sent
// again, in the words that the clients of its shape look for.
func retryable(shape cases.Shape, body []byte) bool {
	mark := map[cases.Shape]string{
		cases.Chat: `"code":"shutting_down"`, cases.Completions: `"code":"shutting_down"`,
		cases.Messages:  `"type":"overloaded_error"`,
		cases.Gemini:    `"status":"UNAVAILABLE"`,
		cases.Responses: `"code":"server_is_overloaded","message":"the gateway is shutting down, try again`,
	}[shape]
	return bytes.Contains(body, []byte(mark))
}
