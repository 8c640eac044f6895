package cases

// responses reads a responses request into the neutral form.
func (v *view) responses(r object) {
	if s := asText(r["instructions"]); s != "" {
		v.system = append(v.system, s)
	}
	items := asArray(r["input"])
	if s, ok := r["input"].(string); ok {
		items = array{object{"type": "message", "role": "user", "content": s}}
	}
	for _, x := range items {
		v.responsesItem(asObject(x))
	}
	for _, x := range asArray(r["tools"]) {
		t := asObject(x)
		v.tool(object{
			"name":        t["name"],
			"description": t["description"],
			"schema":      t["parameters"],
			"strict":      t["strict"],
			"kind":        t["type"],
		})
	}
	v.object["tool_choice"] = r["tool_choice"]
	if name := asObject(r["tool_choice"])["name"]; !isEmpty(name) {
		v.object["tool_choice"] = object{"name": name}
	}
	v.object["parallel"], v.object["max_tokens"] = r["parallel_tool_calls"], r["max_output_tokens"]
	format := asObject(asObject(r["text"])["format"])
	switch format["type"] {
	case "json_object":
		v.object["output_mode"] = "json"
	case "json_schema":
		v.object["output_mode"], v.object["output_schema"] = "schema", format["schema"]
	}
	v.object["effort"] = asObject(r["reasoning"])["effort"]
}

// itemKind is an item's type; an item with a role needs none.
func itemKind(it object) string {
	if t := asText(it["type"]); t != "" {
		return t
	}
	if _, ok := it["role"]; ok {
		return "message"
	}
	return ""
}

// responsesItem adds one item of the input.
func (v *view) responsesItem(it object) {
	switch kind := itemKind(it); kind {
	case "message":
		parts := withoutEmpty(partsOf(it["content"], responsesPart))
		if role := asText(it["role"]); role == "system" || role == "developer" {
			v.instruct(parts)
			return
		}
		v.push(asText(it["role"]), parts...)
	case "function_call":
		v.push("assistant",
			object{"kind": "tool_call", "id": it["call_id"], "name": it["name"], "args": arguments(it["arguments"])})
	case "custom_tool_call":
		v.push("assistant", object{"kind": "tool_call", "id": it["call_id"], "name": it["name"], "input": it["input"]})
	case "function_call_output", "custom_tool_call_output":
		parts := partsOf(it["output"], responsesPart)
		v.push("user",
			object{"kind": "tool_result", "id": it["call_id"], "parts": parts, "text": joinText(parts, "text")})
	case "reasoning":
		text := joinText(asArray(it["summary"]))
		if text == "" {
			text = joinText(asArray(it["content"]))
		}
		v.push("assistant",
			object{"kind": "thinking", "text": text, "encrypted": it["encrypted_content"], "id": it["id"]})
	default:
		v.push("assistant", object{"kind": it["type"]})
	}
}

// responsesPart returns a part of a message in the neutral form.
func responsesPart(p object) object {
	switch kind := p["type"]; kind {
	case "input_text", "output_text", "text":
		return textPart(p["text"])
	case "refusal":
		return textPart(p["refusal"])
	case "input_image":
		out := object{"kind": "image", "file_id": p["file_id"]}
		if !isEmpty(p["image_url"]) {
			out = imagePart(p["image_url"])
		}
		if !isEmpty(p["detail"]) {
			out["detail"] = p["detail"]
		}
		return out
	case "input_file":
		out := object{"kind": "file", "name": p["filename"], "url": p["file_url"], "file_id": p["file_id"]}
		if mime, data, ok := splitDataURL(p["file_data"]); ok {
			out["mime"], out["data"] = mime, data
		}
		return out
	case "input_audio":
		return object{"kind": "audio", "data": asObject(p["input_audio"])["data"]}
	default:
		return object{"kind": kind}
	}
}
