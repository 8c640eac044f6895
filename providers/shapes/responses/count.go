package responses

import (
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// counter implements shapes.Counter. Few servers of the shape can count, so the gateway estimates
// instead of asking the upstream.
type counter struct{}

// CountedRequest implements shapes.Counter.
func (counter) CountedRequest(body []byte) ([]byte, error) { return body, nil }

// CountCall implements shapes.Counter.
func (counter) CountCall(c shapes.Call) (shapes.Call, bool, error) { return c, false, nil }

// IsCount implements shapes.Counter.
func (counter) IsCount([]byte) bool { return false }

// CountReply implements shapes.Counter.
func (counter) CountReply(tokens int64) []byte {
	var w jsonw.Writer
	return w.Object().Key("object").String("response.input_tokens").Key("input_tokens").Int(tokens).End().Buf
}
