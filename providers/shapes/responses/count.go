package responses

import "stagedoor/providers/jsonw"

// InputTokensBody is the reply to an input_tokens request.
func InputTokensBody(n int64) []byte {
	var w jsonw.Writer
	return w.Object().Key("object").String("response.input_tokens").Key("input_tokens").Int(n).End().Buf
}
