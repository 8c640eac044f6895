package cases

import "maps"

// messages folds a stream into the message that a client would build of it. Usage is merged member by member, because
// the last event has only some of them.
func (f *folder) messages(events []Event) object {
	out := object{"_stopped": false, "_error": nil}
	blocks, inputs := row{}, map[int]string{}
	for _, e := range events {
		d := e.body()
		i := intOr(d["index"], -1)
		switch e.kind() {
		case "message_start":
			maps.Copy(out, asObject(clone(f.child(d, "message"))))
		case "content_block_start":
			blocks[i], inputs[i] = object{}, ""
			maps.Copy(blocks[i], asObject(clone(f.child(d, "content_block"))))
		case "content_block_delta":
			if b, ok := blocks[i]; ok {
				inputs[i] += f.blockDelta(b, f.child(d, "delta"))
			}
		case "content_block_stop":
			if b, ok := blocks[i]; ok && inputs[i] != "" {
				closeInput(b, inputs[i])
			}
		case "message_delta":
			maps.Copy(out, f.child(d, "delta"))
			usage := maps.Clone(asObject(out["usage"]))
			if usage == nil {
				usage = object{}
			}
			for k, v := range f.child(d, "usage") {
				if v != nil {
					usage[k] = v
				}
			}
			out["usage"] = usage
		case "message_stop":
			out["_stopped"] = true
		case "error":
			out["_error"] = d["error"]
		}
	}
	out["content"] = blocks.sorted()
	return out
}

// blockDelta adds a delta to its block and answers the piece of tool input in it,
// which only means something when the block is closed.
func (f *folder) blockDelta(b, delta object) string {
	switch asText(delta["type"]) {
	case "text_delta":
		f.join(b, "text", delta, "text")
	case "input_json_delta":
		return f.text(delta, "partial_json")
	case "thinking_delta":
		f.join(b, "thinking", delta, "thinking")
	case "signature_delta":
		b["signature"] = delta["signature"]
	case "citations_delta":
		b["citations"] = append(asArray(b["citations"]), delta["citation"])
	}
	return ""
}

// closeInput parses the joined input of a tool call. Input that is no JSON is kept under another name, so that a case
// can expect it.
func closeInput(b object, text string) {
	v, err := parse([]byte(text))
	if err != nil {
		b["_bad_json"] = text
		return
	}
	b["input"] = v
}
