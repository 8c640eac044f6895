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

// pieceBytes is the number of bytes of a stored stream from which on a piece of it is sent.
const pieceBytes = 64 << 10

// eachPiece calls send with the events of a log that follow a sequence number, some whole events at a time, and with
// the number of the last one. A stream that must end can end between two pieces.
func eachPiece(log []byte, after int64, send func(piece []byte, last int64) error) error {
	events := upstream.NewEventReader(bytes.NewReader(log))
	begin, end, last := 0, 0, after
	for {
		ev, err := events.Next()
		if err == nil {
			number := gjson.GetBytes(ev.Data, "sequence_number").Int()
			if end += len(ev.Raw); last == after && number <= after {
				begin = end
				continue
			}
			last = number
		} else {
			end = len(log)
		}
		if end-begin >= pieceBytes || err != nil && end > begin {
			if err := send(log[begin:end], last); err != nil {
				return err
			}
			begin = end
		}
		if err != nil {
			return nil
		}
	}
}
