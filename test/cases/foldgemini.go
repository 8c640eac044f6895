package cases

import "maps"

// gemini folds a stream of generateContent replies into one.
func (f *folder) gemini(events []Event) object {
	out := object{"_error": nil}
	candidates := row{}
	for _, e := range events {
		d := e.body()
		switch {
		case e.done():
			out["_saw_done"] = true
			continue
		case !isEmpty(d["error"]):
			out["_error"] = d["error"]
			continue
		}
		copyMembers(out, d, "responseId", "modelVersion", "promptFeedback")
		if !isEmpty(d["usageMetadata"]) {
			out["usageMetadata"] = d["usageMetadata"]
		}
		for _, c := range f.list(d, "candidates") {
			f.candidate(asObject(c), candidates)
		}
	}
	out["candidates"] = candidates.sorted()
	return out
}

// candidate adds one candidate of an event.
func (f *folder) candidate(c object, candidates row) {
	i := intOr(c["index"], 0)
	candidate := candidates.at(i, func() object {
		return object{"index": number(i), "content": object{"role": "model", "parts": array{}}}
	})
	content := asObject(candidate["content"])
	for _, p := range f.list(f.child(c, "content"), "parts") {
		content["parts"] = f.joinPart(asArray(content["parts"]), asObject(p))
	}
	if !isEmpty(c["finishReason"]) {
		candidate["finishReason"] = c["finishReason"]
	}
	copyMembers(candidate, c, "groundingMetadata", "citationMetadata")
}

// joinPart appends a part; plain text joins the plain text of the same thought flag
// before it.
func (f *folder) joinPart(parts array, p object) array {
	if n := len(parts); n > 0 && p["text"] != nil && plainText(p) {
		last := asObject(parts[n-1])
		if plainText(last) && isEmpty(last["thought"]) == isEmpty(p["thought"]) {
			f.join(last, "text", p, "text")
			return parts
		}
	}
	return append(parts, maps.Clone(p))
}

// plainText reports whether a part has text only, so that it can be joined to the one before.
func plainText(p object) bool {
	for k := range p {
		if k != "text" && k != "thought" {
			return false
		}
	}
	return true
}

// copyMembers copies the members that are present.
func copyMembers(to, from object, keys ...string) {
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
}
