package text

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"

	"github.com/tidwall/gjson"

	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

type jsonRaw = json.RawMessage

const streamMode = shapes.Stream

// pick returns a random number below n, to choose among weighted targets.
func pick(n int) int { return rand.IntN(n) }

// eventsAfter returns the events of a log that follow a sequence number.
func eventsAfter(log []byte, after int64) []byte {
	events := upstream.NewEventReader(bytes.NewReader(log))
	skip := 0
	for {
		ev, err := events.Next()
		if err != nil || gjson.GetBytes(ev.Data, "sequence_number").Int() > after {
			return log[skip:]
		}
		skip += len(ev.Raw)
	}
}
