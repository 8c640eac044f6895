package cases

import "strings"

// gemini reads a generateContent request into the neutral form.
func (v *view) gemini(r object) {
	v.geminiSystem(r["systemInstruction"])
	for _, x := range asArray(r["contents"]) {
		c := asObject(x)
		role := "user"
		if c["role"] == "model" {
			role = "assistant"
		}
		v.push(role, partsOf(c["parts"], geminiPart)...)
	}
	for _, x := range asArray(r["tools"]) {
		v.geminiTools(asObject(x))
	}
	v.geminiChoice(asObject(asObject(r["toolConfig"])["functionCallingConfig"]))
	g := asObject(r["generationConfig"])
	for name, theirs := range map[string]string{
		"temperature": "temperature", "top_p": "topP", "top_k": "topK", "max_tokens": "maxOutputTokens", "seed": "seed",
		"n": "candidateCount",
	} {
		v.object[name] = g[theirs]
	}
	v.object["stop"] = stops(g["stopSequences"])
	schema := firstFull(g["responseJsonSchema"], g["_responseJsonSchema"], g["responseSchema"])
	v.object["output_schema"] = schema
	if g["responseMimeType"] == "application/json" {
		v.object["output_mode"] = "json"
		if schema != nil {
			v.object["output_mode"] = "schema"
		}
	}
	thinking := asObject(g["thinkingConfig"])
	v.object["effort"], v.object["thinking_budget"] = thinking["thinkingLevel"], thinking["thinkingBudget"]
}

// geminiSystem adds the instruction, which may be text or a content.
func (v *view) geminiSystem(instruction any) {
	if s, ok := instruction.(string); ok {
		v.system = append(v.system, s)
		return
	}
	for _, p := range asArray(asObject(instruction)["parts"]) {
		v.system = append(v.system, asText(asObject(p)["text"]))
	}
}

// geminiTools adds functions, and the tools that the vendor runs itself by their names.
func (v *view) geminiTools(t object) {
	for _, x := range asArray(t["functionDeclarations"]) {
		f := asObject(x)
		v.tool(object{"name": f["name"], "description": f["description"],
			"schema": firstFull(f["parametersJsonSchema"], f["parameters"]), "kind": "function"})
	}
	for _, k := range names(t) {
		if k != "functionDeclarations" {
			v.tool(object{"kind": k})
		}
	}
}

// geminiChoice reads the function-calling mode. One allowed function stands for a choice of it.
func (v *view) geminiChoice(config object) {
	allowed := asArray(config["allowedFunctionNames"])
	switch strings.ToUpper(asText(config["mode"])) {
	case "":
	case "AUTO", "VALIDATED":
		v.object["tool_choice"] = "auto"
	case "NONE":
		v.object["tool_choice"] = "none"
	default:
		v.object["tool_choice"] = "required"
		if len(allowed) == 1 {
			v.object["tool_choice"] = object{"name": allowed[0]}
		}
	}
}

// geminiPart returns a part with its signature.
func geminiPart(p object) object {
	out := geminiData(p)
	if !isEmpty(p["thoughtSignature"]) {
		out["signature"] = p["thoughtSignature"]
	}
	return out
}

// geminiData returns the data of a part in the neutral form. A part has one kind of data.
func geminiData(p object) object {
	if call, ok := p["functionCall"]; ok {
		c := asObject(call)
		args := c["args"]
		if isEmpty(args) {
			args = object{}
		}
		return object{"kind": "tool_call", "id": c["id"], "name": c["name"], "args": args}
	}
	if response, ok := p["functionResponse"]; ok {
		f := asObject(response)
		return object{"kind": "tool_result", "id": f["id"], "name": f["name"], "response": f["response"],
			"text": strings.Join(texts(f["response"]), " "), "parts": partsOf(f["parts"], geminiInline)}
	}
	if _, ok := p["inlineData"]; ok {
		return geminiInline(p)
	}
	if file, ok := p["fileData"]; ok {
		f := asObject(file)
		return object{"kind": mediaKind(f["mimeType"]), "mime": f["mimeType"], "url": f["fileUri"]}
	}
	if !isEmpty(p["thought"]) {
		return object{"kind": "thinking", "text": asText(p["text"])}
	}
	if _, ok := p["text"]; ok {
		return textPart(p["text"])
	}
	return object{"kind": "?"}
}

// geminiInline returns media that are in the request.
func geminiInline(p object) object {
	d := asObject(p["inlineData"])
	return object{"kind": mediaKind(d["mimeType"]), "mime": d["mimeType"], "data": d["data"]}
}

// mediaKind returns the kind of part for a media type.
func mediaKind(mime any) string {
	kind, _, _ := strings.Cut(asText(mime), "/")
	switch kind {
	case "image", "audio", "video":
		return kind
	}
	return "file"
}
