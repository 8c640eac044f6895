package messages

import (
	"strconv"

	"github.com/tidwall/gjson"

	"stagedoor/providers/shapes"
)

// counter implements shapes.Counter. The vendor counts a request that is written like one for a
// reply, so hardly anything has to change.
type counter struct{}

// CountedRequest implements shapes.Counter. The body is the request, without max_tokens.
func (counter) CountedRequest(body []byte) ([]byte, error) { return body, nil }

// CountCall implements shapes.Counter. Patch has chosen the path already, by the client's.
func (counter) CountCall(c shapes.Call) (shapes.Call, bool, error) { return c, true, nil }

// IsCount implements shapes.Counter.
func (counter) IsCount(reply []byte) bool {
	return gjson.GetBytes(reply, "input_tokens").Type == gjson.Number
}

// CountReply implements shapes.Counter.
func (counter) CountReply(tokens int64) []byte {
	return append(strconv.AppendInt([]byte(`{"input_tokens":`), tokens, 10), '}')
}
