package cases

import (
	"maps"
	"slices"
)

// sortedKeys returns the keys of m in ascending order.
func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

// chunksOf are the chunks of a reply, and a fold that tells how it ended and what
// it used.
func chunksOf(events []Event) (out object, chunks []object) {
	out = object{"_done": false, "_error": nil}
	for _, e := range events {
		d := e.body()
		switch {
		case e.done():
			out["_done"] = true
			continue
		case !isEmpty(d["error"]):
			out["_error"] = d["error"]
			continue
		}
		if d["usage"] != nil {
			out["usage"] = d["usage"]
		}
		chunks = append(chunks, d)
	}
	return out, chunks
}

// chat folds a stream of chat chunks into the completion that a client would build of it.
func (f *folder) chat(events []Event) object {
	choices, calls := row{}, map[int]row{}
	out, chunks := chunksOf(events)
	for _, d := range chunks {
		keepFirst(out, d, "id", "model", "created", "object", "service_tier", "system_fingerprint")
		for _, c := range f.list(d, "choices") {
			f.chatChoice(asObject(c), choices, calls)
		}
	}
	for i, row := range calls {
		asObject(choices[i]["message"])["tool_calls"] = row.sorted()
	}
	out["choices"], out["_chunks"] = choices.sorted(), number(len(chunks))
	return out
}

// chatChoice adds one choice of a chunk.
//
// The result has the form of a choice in a whole reply, so that one expectation holds for both:
//
//	delta.content, refusal, reasoning_content          joined
//	delta.annotations, reasoning_details               appended
//	delta.tool_calls                                   joined by index
//	logprobs.content                                   appended
//	finish_reason                                      the last one
func (f *folder) chatChoice(c object, choices row, calls map[int]row) {
	i := intOr(c["index"], 0)
	choice := choices.at(i, func() object {
		return object{"index": number(i), "message": object{}, "finish_reason": nil}
	})
	message, delta := asObject(choice["message"]), f.child(c, "delta")
	keepFirst(message, delta, "role")
	for _, k := range []string{"content", "refusal", "reasoning_content"} {
		f.join(message, k, delta, k)
	}
	for _, k := range []string{"annotations", "reasoning_details"} {
		if more := f.list(delta, k); len(more) > 0 {
			message[k] = append(asArray(message[k]), more...)
		}
	}
	if part := f.child(delta, "function_call"); len(part) > 0 {
		f.function(message, "function_call", part)
	}
	for _, t := range f.list(delta, "tool_calls") {
		if calls[i] == nil {
			calls[i] = row{}
		}
		f.chatCall(asObject(t), calls[i])
	}
	if lp := f.child(c, "logprobs"); len(lp) > 0 {
		sum := asArray(pointer(choice, "/logprobs/content"))
		choice["logprobs"] = object{"content": append(append(array{}, sum...), f.list(lp, "content")...)}
	}
	if !isEmpty(c["finish_reason"]) {
		choice["finish_reason"] = c["finish_reason"]
	}
}

// chatCall adds a piece of a tool call. Arguments are joined, other members replace the earlier ones.
func (f *folder) chatCall(t object, calls row) {
	call := calls.at(intOr(t["index"], 0), func() object {
		return object{"function": object{"name": "", "arguments": ""}}
	})
	for k, v := range t {
		switch k {
		case "index":
		case "id", "type":
			if !isEmpty(v) {
				call[k] = v
			}
		case "function":
			f.function(call, k, f.child(t, k))
		case "custom":
			custom := asObject(call[k])
			if custom == nil {
				custom = object{}
				call[k] = custom
			}
			maps.Copy(custom, f.child(t, k))
		default:
			call[k] = v
		}
	}
}

// function adds a piece of a name and of arguments.
func (f *folder) function(to object, k string, part object) {
	fn := asObject(to[k])
	if fn == nil {
		fn = object{"name": "", "arguments": ""}
		to[k] = fn
	}
	f.join(fn, "name", part, "name")
	f.join(fn, "arguments", part, "arguments")
}

// completions folds a stream of legacy completions.
func (f *folder) completions(events []Event) object {
	choices := row{}
	out, chunks := chunksOf(events)
	for _, d := range chunks {
		keepFirst(out, d, "id", "model", "created", "object")
		for _, v := range f.list(d, "choices") {
			c := asObject(v)
			i := intOr(c["index"], 0)
			choice := choices.at(i, func() object {
				return object{"index": number(i), "text": "", "finish_reason": nil}
			})
			f.join(choice, "text", c, "text")
			if !isEmpty(c["finish_reason"]) {
				choice["finish_reason"] = c["finish_reason"]
			}
		}
	}
	out["choices"] = choices.sorted()
	return out
}
