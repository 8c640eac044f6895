package cases

// chat reads a chat request into the neutral form, in which cases of all shapes are compared.
func (v *view) chat(r object) {
	for _, m := range asArray(r["messages"]) {
		v.chatMessage(asObject(m))
	}
	for _, x := range asArray(r["tools"]) {
		v.chatTool(asObject(x))
	}
	for _, x := range asArray(r["functions"]) {
		f := asObject(x)
		v.tool(object{"name": f["name"], "schema": f["parameters"], "kind": "function"})
	}
	v.object["tool_choice"] = r["tool_choice"]
	if f, ok := asObject(r["tool_choice"])["function"]; ok {
		v.object["tool_choice"] = object{"name": asObject(f)["name"]}
	}
	v.object["max_tokens"] = r["max_tokens"]
	if r["max_completion_tokens"] != nil {
		v.object["max_tokens"] = r["max_completion_tokens"]
	}
	v.object["parallel"], v.object["stop"] = r["parallel_tool_calls"], stops(r["stop"])
	v.object["effort"], v.object["n"] = r["reasoning_effort"], r["n"]
	format := asObject(r["response_format"])
	switch format["type"] {
	case "json_object":
		v.object["output_mode"] = "json"
	case "json_schema":
		v.object["output_mode"], v.object["output_schema"] = "schema", asObject(format["json_schema"])["schema"]
	}
}

// chatMessage adds one message. Results of tools count as the user's, because they do in other shapes.
func (v *view) chatMessage(m object) {
	parts := withoutEmpty(partsOf(m["content"], chatPart))
	switch role := asText(m["role"]); role {
	case "system", "developer":
		v.instruct(parts)
	case "tool", "function":
		v.push("user", object{"kind": "tool_result", "id": m["tool_call_id"], "name": m["name"],
			"text": joinText(parts, "text"), "parts": parts})
	case "assistant":
		v.push(role, chatSaid(m, parts)...)
	default:
		v.push("user", parts...)
	}
}

// chatSaid adds to an assistant message's content what the shape keeps beside it.
func chatSaid(m object, parts array) array {
	if s := asText(m["refusal"]); s != "" {
		parts = append(parts, textPart(s))
	}
	if s := asText(m["reasoning_content"]); s != "" {
		parts = append(array{object{"kind": "thinking", "text": s}}, parts...)
	}
	for _, x := range asArray(m["tool_calls"]) {
		t := asObject(x)
		f := asObject(t["function"])
		parts = append(parts,
			object{"kind": "tool_call", "id": t["id"], "name": f["name"], "args": arguments(f["arguments"])})
	}
	if f := asObject(m["function_call"]); len(f) > 0 {
		parts = append(parts,
			object{"kind": "tool_call", "id": nil, "name": f["name"], "args": arguments(f["arguments"])})
	}
	return parts
}

// chatPart returns a part in the neutral form.
func chatPart(p object) object {
	switch kind := p["type"]; kind {
	case "text", "input_text", "output_text":
		return textPart(p["text"])
	case "refusal":
		return textPart(p["refusal"])
	case "image_url":
		image, ok := p["image_url"].(object)
		if !ok {
			return imagePart(p["image_url"])
		}
		out := imagePart(image["url"])
		if !isEmpty(image["detail"]) {
			out["detail"] = image["detail"]
		}
		return out
	case "input_audio":
		audio := asObject(p["input_audio"])
		return object{
			"kind":   "audio",
			"data":   audio["data"],
			"format": audio["format"],
			"mime":   "audio/" + asText(audio["format"]),
		}
	case "file":
		f := asObject(p["file"])
		out := object{"kind": "file", "name": f["filename"], "file_id": f["file_id"]}
		if mime, data, ok := splitDataURL(f["file_data"]); ok {
			out["mime"], out["data"] = mime, data
		} else if !isEmpty(f["file_data"]) {
			out["data"] = f["file_data"]
		}
		return out
	default:
		return object{"kind": kind}
	}
}

// chatTool adds a tool with its schema.
func (v *view) chatTool(t object) {
	if t["type"] == "function" {
		f := asObject(t["function"])
		v.tool(object{
			"name":        f["name"],
			"description": f["description"],
			"schema":      f["parameters"],
			"strict":      f["strict"],
			"kind":        "function",
		})
		return
	}
	name := t["name"]
	if inner, ok := t[asText(t["type"])].(object); ok {
		name = inner["name"]
	}
	v.tool(object{"name": name, "kind": t["type"]})
}

// completions reads a legacy request, which has a prompt in place of messages.
func (v *view) completions(r object) {
	v.object["prompt"], v.object["max_tokens"], v.object["n"] = r["prompt"], r["max_tokens"], r["n"]
	v.object["stop"] = stops(r["stop"])
}
