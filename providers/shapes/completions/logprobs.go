package completions

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// writeLogProbs writes this shape's four parallel arrays from chat's list of objects, which is the
// neutral form:
//
//	[{"token":"Hi","logprob":-0.1,"top_logprobs":[...]}]
//	{"tokens":["Hi"],"token_logprobs":[-0.1],"top_logprobs":[{...}],"text_offset":[0]}
//
// offset is the position of the first token in the text, in characters. The position after the last
// is returned.
func writeLogProbs(w *jsonw.Writer, tokens []json.RawMessage, offset int) int {
	each := func(visit func(token gjson.Result)) {
		for _, list := range tokens {
			chunks.OnlyArray(fields.View(list)).ForEach(func(_, v gjson.Result) bool {
				visit(v)
				return true
			})
		}
	}
	w.Object()
	w.Key("tokens").Array()
	each(func(v gjson.Result) { w.String(v.Get("token").String()) })
	w.End().Key("token_logprobs").Array()
	each(func(v gjson.Result) { w.RawString(v.Get("logprob").Raw) })
	w.End().Key("top_logprobs").Array()
	each(func(v gjson.Result) { writeTop(w, v) })
	w.End().Key("text_offset").Array()
	each(func(v gjson.Result) {
		w.Int(int64(offset))
		offset += utf8.RuneCountInString(v.Get("token").String())
	})
	w.End().End()
	return offset
}

// writeTop writes the alternatives of one token. The chosen token is always among them, as the
// vendor does it.
func writeTop(w *jsonw.Writer, v gjson.Result) {
	written := map[string]bool{}
	w.Object()
	entry := func(v gjson.Result) {
		if token := v.Get("token").String(); !written[token] {
			written[token] = true
			w.KeyOf(token).RawString(v.Get("logprob").Raw)
		}
	}
	chunks.OnlyArray(v.Get("top_logprobs")).ForEach(func(_, v gjson.Result) bool {
		entry(v)
		return true
	})
	entry(v)
	w.End()
}

// tokenList returns chat's list for the four arrays of this shape, or nil if v is not an object.
func tokenList(v gjson.Result) json.RawMessage {
	if !v.IsObject() {
		return nil
	}
	tokens, chances, tops := v.Get("tokens").Array(), v.Get("token_logprobs").Array(), v.Get("top_logprobs").Array()
	w := jsonw.Writer{}
	w.Array()
	for i, token := range tokens {
		w.Object().Key("token").String(token.String())
		w.Key("logprob").Raw(logprobOf(chances, i))
		writeBytes(&w, token.String())
		w.Key("top_logprobs").Array()
		if i < len(tops) {
			chunks.OnlyObject(tops[i]).ForEach(func(name, v gjson.Result) bool {
				w.Object().Key("token").String(name.String()).Key("logprob").RawString(v.Raw)
				writeBytes(&w, name.String())
				w.End()
				return true
			})
		}
		w.End().End()
	}
	w.End()
	return w.Buf
}

// logprobOf returns the logprob of a token, or 0 if it has none, as the first token of an echoed
// prompt.
func logprobOf(list []gjson.Result, i int) []byte {
	if i >= len(list) || list[i].Type != gjson.Number {
		return []byte("0")
	}
	return []byte(list[i].Raw)
}

// writeBytes writes the member bytes, which chat's clients require.
func writeBytes(w *jsonw.Writer, token string) {
	w.Key("bytes").Array()
	for _, b := range []byte(token) {
		w.Int(int64(b))
	}
	w.End()
}
