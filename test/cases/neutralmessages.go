package cases

// messages reads a messages request into the neutral form.
func (v *view) messages(r object) {
	for _, p := range partsOf(r["system"], func(b object) object { return b }) {
		v.system = append(v.system, asText(asObject(p)["text"]))
	}
	for _, x := range asArray(r["messages"]) {
		m := asObject(x)
		v.push(asText(m["role"]), partsOf(m["content"], messagesBlock)...)
	}
	for _, x := range asArray(r["tools"]) {
		t := asObject(x)
		if t["type"] == nil || t["type"] == "custom" {
			v.tool(object{
				"name":        t["name"],
				"description": t["description"],
				"schema":      t["input_schema"],
				"strict":      t["strict"],
				"kind":        "function",
			})
			continue
		}
		v.tool(object{"name": t["name"], "kind": t["type"]})
	}
	v.messagesChoice(asObject(r["tool_choice"]))
	v.object["max_tokens"], v.object["stop"] = r["max_tokens"], stops(r["stop_sequences"])
	output := asObject(r["output_config"])
	if format := asObject(output["format"]); format["type"] == "json_schema" {
		v.object["output_mode"], v.object["output_schema"] = "schema", format["schema"]
	}
	v.object["effort"], v.object["thinking_budget"] = output["effort"], asObject(r["thinking"])["budget_tokens"]
}

// messagesChoice reads the choice of tools, which also says whether calls may be made at once.
func (v *view) messagesChoice(choice object) {
	switch choice["type"] {
	case "any":
		v.object["tool_choice"] = "required"
	case "auto", "none":
		v.object["tool_choice"] = choice["type"]
	default:
		if len(choice) > 0 {
			v.object["tool_choice"] = object{"name": choice["name"]}
		}
	}
	if off, ok := choice["disable_parallel_tool_use"]; ok {
		v.object["parallel"] = isEmpty(off)
	}
}

// messagesBlock returns a block in the neutral form.
func messagesBlock(b object) object {
	switch kind := b["type"]; kind {
	case "text":
		return textPart(b["text"])
	case "image", "document":
		return messagesMedia(b)
	case "tool_use":
		return object{"kind": "tool_call", "id": b["id"], "name": b["name"], "args": b["input"]}
	case "tool_result":
		parts := partsOf(b["content"], messagesBlock)
		return object{
			"kind":     "tool_result",
			"id":       b["tool_use_id"],
			"is_error": b["is_error"],
			"parts":    parts,
			"text":     joinText(parts, "text"),
		}
	case "thinking":
		return object{"kind": "thinking", "text": b["thinking"], "signature": b["signature"]}
	case "redacted_thinking":
		return object{"kind": "redacted_thinking", "data": b["data"]}
	default:
		return object{"kind": kind}
	}
}

// messagesMedia returns an image or a document by its source.
func messagesMedia(b object) object {
	out := object{"kind": "file", "name": b["title"]}
	if b["type"] == "image" {
		out["kind"] = "image"
	}
	source := asObject(b["source"])
	switch source["type"] {
	case "base64":
		out["mime"], out["data"] = source["media_type"], source["data"]
	case "url":
		out["url"] = source["url"]
	case "text":
		out["mime"], out["text"] = "text/plain", source["data"]
	case "file":
		out["file_id"] = source["file_id"]
	}
	return out
}
