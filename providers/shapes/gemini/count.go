package gemini

import (
	"strings"

	"github.com/tidwall/sjson"

	"stagedoor/providers/shapes"
)

// CountTokensCall makes of a call for a generation one for the tokens of its
// request. The request is wrapped: only so its instructions and tools count.
func CountTokensCall(c shapes.Call) (shapes.Call, error) {
	at := strings.LastIndexByte(c.Path, ':')
	inner, err := sjson.SetBytes(c.Body, "model", strings.TrimPrefix(c.Path[:at], "/v1beta/"))
	if err != nil {
		return c, err
	}
	c.Body, err = sjson.SetRawBytes([]byte(`{}`), "generateContentRequest", inner)
	c.Path, c.Query, c.Stream = c.Path[:at]+":countTokens", "", false
	return c, err
}
