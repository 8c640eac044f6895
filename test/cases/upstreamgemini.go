package cases

import "slices"

// partNotes are members of a part that say something about its data.
var partNotes = set("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata")

// geminiRequest checks a request as the vendor does, which refuses what it does not know.
func (r *rules) geminiRequest(q object) {
	contents := asArray(q["contents"])
	r.breaksIf(len(contents) == 0, "contents is empty")
	sides := r.geminiSides(contents)
	for i, s := range sides {
		for _, p := range s.parts {
			r.geminiPart(asObject(p))
		}
		calls := functionNames(s.parts, "functionCall")
		if len(calls) == 0 || i == len(sides)-1 {
			continue
		}
		answers := functionNames(sides[i+1].parts, "functionResponse")
		slices.Sort(calls)
		slices.Sort(answers)
		r.breaksIf(!slices.Equal(calls, answers), "functionResponses %v do not answer functionCalls %v", answers, calls)
	}
	for _, t := range asArray(q["tools"]) {
		for _, f := range asArray(asObject(t)["functionDeclarations"]) {
			r.geminiFunction(asObject(f))
		}
	}
	g := asObject(q["generationConfig"])
	if g["responseSchema"] != nil {
		r.broken = append(r.broken, geminiSubset(g["responseSchema"], "responseSchema")...)
	}
	schema := firstFull(g["responseSchema"], g["responseJsonSchema"])
	r.breaksIf(schema != nil && g["responseMimeType"] != "application/json",
		"response schema without responseMimeType application/json")
}

// geminiSides joins contents of the same side, as the vendor does before it looks for pairs of calls and responses.
func (r *rules) geminiSides(contents array) []turn {
	var sides []turn
	for _, x := range contents {
		c := asObject(x)
		switch c["role"] {
		case "user", "model", "function", nil:
		default:
			r.breaks("content role %s", show(c["role"], 80))
		}
		parts := asArray(c["parts"])
		if len(parts) == 0 {
			r.breaks("content without parts")
			continue
		}
		role := "user"
		if c["role"] == "model" {
			role = "model"
		}
		if n := len(sides); n > 0 && sides[n-1].role == role {
			sides[n-1].parts = append(slices.Clip(sides[n-1].parts), parts...)
			continue
		}
		sides = append(sides, turn{role: role, parts: parts})
	}
	return sides
}

// geminiPart checks that a part has one kind of data.
func (r *rules) geminiPart(p object) {
	data := 0
	for k := range p {
		if !partNotes[k] {
			data++
		}
	}
	r.breaksIf(data != 1, "part has %d data fields", data)
	r.breaksIf(p["text"] == "" && isEmpty(p["thoughtSignature"]), "empty text part")
	if f, ok := p["functionResponse"]; ok {
		r.breaksIf(isEmpty(asObject(f)["name"]), "functionResponse without name")
		r.breaksIf(asObject(asObject(f)["response"]) == nil, "functionResponse.response is not an object")
	}
	if f, ok := p["functionCall"]; ok {
		args, given := asObject(f)["args"]
		r.breaksIf(given && asObject(args) == nil, "functionCall.args is not an object")
	}
}

// functionNames returns the names of the calls or the responses among parts.
func functionNames(parts array, kind string) []string {
	var out []string
	for _, p := range parts {
		if f, ok := asObject(p)[kind]; ok {
			out = append(out, asText(asObject(f)["name"]))
		}
	}
	return out
}

// geminiFunction checks the declaration of a function.
func (r *rules) geminiFunction(f object) {
	name := asText(f["name"])
	r.breaksIf(f["parameters"] != nil && f["parametersJsonSchema"] != nil,
		"parameters and parametersJsonSchema together")
	if f["parameters"] != nil {
		r.broken = append(r.broken, geminiSubset(f["parameters"], "tool "+name)...)
	}
	r.breaksIf(len(danglingRefs(f["parametersJsonSchema"])) > 0, "tool schema has a dangling $ref")
	r.breaksIf(!geminiToolName.MatchString(name), "function name %s", show(f["name"], 80))
}
