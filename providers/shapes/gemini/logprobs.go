package gemini

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// readLogProbs returns logprobsResult as the list of the neutral form, [{token, logprob, bytes,
// top_logprobs}], or nil.
func readLogProbs(v gjson.Result) json.RawMessage {
	chosen := field(v, "chosenCandidates")
	if !chosen.IsArray() {
		return nil
	}
	var tops []gjson.Result
	if top := field(v, "topCandidates"); top.IsArray() {
		tops = top.Array()
	}
	var w jsonw.Writer
	w.Array()
	each(chosen, func(i int, v gjson.Result) bool {
		w.Object()
		readToken(&w, v)
		w.Key("top_logprobs").Array()
		if i < len(tops) {
			if list := field(tops[i], "candidates"); list.IsArray() {
				each(list, func(_ int, v gjson.Result) bool {
					w.Object()
					readToken(&w, v)
					w.End()
					return true
				})
			}
		}
		w.End().End()
		return true
	})
	w.End()
	return w.Buf
}

// splitLogProbs divides a list into the tokens of the first n bytes of its text and the rest. Each is nil if it is
// empty. A chunk has one list for all of its parts, in the order of the parts.
func splitLogProbs(list json.RawMessage, n int) (first, rest json.RawMessage) {
	var parts [2][]string
	tokens([]json.RawMessage{list}, func(v gjson.Result) {
		which := 0
		if n <= 0 {
			which = 1
		}
		n -= len(v.Get("token").Str)
		parts[which] = append(parts[which], v.Raw)
	})
	return joined(parts[0]), joined(parts[1])
}

// joined returns a list of these elements, or nil if there are none.
func joined(elements []string) json.RawMessage {
	if len(elements) == 0 {
		return nil
	}
	return json.RawMessage("[" + strings.Join(elements, ",") + "]")
}

// readToken writes a token with its probability in the neutral form.
func readToken(w *jsonw.Writer, v gjson.Result) {
	token := str(field(v, "token"))
	w.Key("token").String(token).Key("logprob")
	if p, ok := number(field(v, "logProbability")); ok {
		w.RawString(string(p))
	} else {
		w.Int(0) // proto JSON leaves zeros out
	}
	w.Key("bytes").Array()
	for i := range len(token) {
		w.Int(int64(token[i]))
	}
	w.End()
}

// writeLogProbs writes the member logprobsResult for lists of the neutral form, one for each piece
// of text.
func writeLogProbs(w *jsonw.Writer, lists []json.RawMessage) {
	if len(lists) == 0 {
		return
	}
	w.Key("logprobsResult").Object().Key("topCandidates").Array()
	tokens(lists, func(v gjson.Result) {
		w.Object().Key("candidates").Array()
		if top := v.Get("top_logprobs"); top.IsArray() {
			top.ForEach(func(_, v gjson.Result) bool { writeToken(w, v); return true })
		}
		w.End().End()
	})
	w.End().Key("chosenCandidates").Array()
	tokens(lists, func(v gjson.Result) { writeToken(w, v) })
	w.End().End()
}

// tokens calls f for every token of the lists.
func tokens(lists []json.RawMessage, f func(gjson.Result)) {
	for _, list := range lists {
		if doc := fields.View(list); doc.IsArray() {
			doc.ForEach(func(_, v gjson.Result) bool { f(v); return true })
		}
	}
}

// writeToken writes a token with its probability in the vendor's form.
func writeToken(w *jsonw.Writer, v gjson.Result) {
	w.Object().Key("token").String(str(v.Get("token")))
	if p := v.Get("logprob"); p.Type == gjson.Number {
		w.Key("logProbability").RawString(p.Raw)
	}
	w.End()
}
