package gemini

import (
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// counter implements shapes.Counter.
type counter struct{}

// CountedRequest implements shapes.Counter. A countTokens body is the request itself, or wraps
// it as generateContentRequest.
func (counter) CountedRequest(body []byte) ([]byte, error) {
	doc := gjson.ParseBytes(body)
	if !doc.IsObject() {
		return nil, dialogue.Invalid("body", "must be a JSON object")
	}
	inner := field(doc, "generateContentRequest")
	switch {
	case !inner.Exists():
		return body, nil
	case field(doc, "contents").Exists():
		return nil, dialogue.Invalid("generateContentRequest", "cannot be combined with contents")
	case !inner.IsObject():
		return nil, dialogue.Invalid("generateContentRequest", "must be an object")
	}
	return []byte(inner.Raw), nil
}

// CountCall implements shapes.Counter. The request is wrapped, because otherwise its
// instructions and tools do not count.
func (counter) CountCall(c shapes.Call) (shapes.Call, bool, error) {
	at := strings.LastIndexByte(c.Path, ':')
	// The wrapped form has no model in the path, so the request inside must name it.
	inner, err := sjson.SetBytes(c.Body, "model", strings.TrimPrefix(c.Path[:at], "/v1beta/"))
	if err != nil {
		return c, true, err
	}
	c.Body, err = sjson.SetRawBytes([]byte(`{}`), "generateContentRequest", inner)
	c.Path, c.Query, c.Stream = c.Path[:at]+":"+countTokens, "", false
	return c, true, err
}

// IsCount implements shapes.Counter.
func (counter) IsCount(reply []byte) bool {
	return gjson.GetBytes(reply, "totalTokens").Type == gjson.Number
}

// CountReply implements shapes.Counter.
func (counter) CountReply(tokens int64) []byte {
	var w jsonw.Writer
	w.Object().Key("totalTokens").Int(tokens).End()
	return w.Buf
}
