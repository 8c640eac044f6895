package cases

import (
	"regexp"
	"strings"
)

// neutral returns the view of an upstream request that hides differences of spelling which no
// protocol cares about: string or parts, one message or two of the same side.
//
// These members come from the conversation: system is its text before the first turn; turns have a role, parts and
// their text; roles, calls, results and media list those of all turns. The others are settings: tools, tool_choice,
// parallel, max_tokens, stop (a list), temperature, top_p, top_k, stream, output_mode, output_schema, effort,
// thinking_budget, n and seed. Without a value stream is false and output_mode is text,
// and any other setting is null or an empty list.
func neutral(shape Shape, request object) object {
	v := view{object: object{
		"turns": array{}, "tools": array{}, "tool_choice": nil, "parallel": nil, "max_tokens": nil, "stop": array{},
		"temperature": request["temperature"], "top_p": request["top_p"], "top_k": request["top_k"],
		"stream": !isEmpty(request["stream"]), "output_mode": "text", "output_schema": nil, "effort": nil,
		"thinking_budget": nil, "n": nil, "seed": request["seed"],
	}}
	switch shape {
	case Chat:
		v.chat(request)
	case Messages:
		v.messages(request)
	case Responses:
		v.responses(request)
	case Gemini:
		v.gemini(request)
	case Completions:
		v.completions(request)
	}
	v.finish()
	return v.object
}

// A view is a neutral view being built. The methods named after shapes read a request of that shape into it,
// and finish computes the members that summarize it.
type view struct {
	object
	system []string
	turns  []*turn
}

// turn is a message with its parts in the neutral form.
type turn struct {
	role  string
	parts array
}

// push adds parts to the conversation; neighbours of one side are one turn. The vendors treat neighbours so,
// whichever of the two forms a translator chooses.
func (v *view) push(role string, parts ...any) {
	if len(parts) == 0 {
		return
	}
	if n := len(v.turns); n > 0 && v.turns[n-1].role == role {
		v.turns[n-1].parts = append(v.turns[n-1].parts, parts...)
		return
	}
	v.turns = append(v.turns, &turn{role: role, parts: parts})
}

// instruct takes system text: before the first turn it is the system prompt, later
// it stays where it was said.
func (v *view) instruct(parts array) {
	for _, p := range parts {
		text, ok := asObject(p)["text"].(string)
		if !ok || asObject(p)["kind"] != "text" {
			continue
		}
		if len(v.turns) == 0 {
			v.system = append(v.system, text)
			continue
		}
		v.push("user", object{"kind": "system_text", "text": text})
	}
}

// tool adds a tool.
func (v *view) tool(t object) { v.object["tools"] = append(asArray(v.object["tools"]), t) }

// finish derives the members that summarize the turns.
func (v *view) finish() {
	turns, roles, calls, results, media := array{}, array{}, array{}, array{}, array{}
	for _, t := range v.turns {
		turns = append(turns,
			object{"role": t.role, "parts": t.parts, "text": joinText(t.parts, "text", "system_text")})
		roles = append(roles, t.role)
		for _, p := range t.parts {
			switch asObject(p)["kind"] {
			case "tool_call":
				calls = append(calls, p)
			case "tool_result":
				results = append(results, p)
			}
			for _, q := range append(array{p}, asArray(asObject(p)["parts"])...) {
				switch asObject(q)["kind"] {
				case "image", "file", "audio", "video":
					media = append(media, q)
				}
			}
		}
	}
	var system []string
	for _, s := range v.system {
		if s != "" {
			system = append(system, s)
		}
	}
	v.object["system"] = strings.Join(system, "\n\n")
	v.object["turns"], v.object["roles"], v.object["calls"] = turns, roles, calls
	v.object["results"], v.object["media"] = results, media
}

// joinText concatenates the text of parts of the given kinds, of all if none given.
func joinText(parts array, kinds ...string) string {
	wanted := set(kinds...)
	var b strings.Builder
	for _, p := range parts {
		o := asObject(p)
		if len(kinds) == 0 || wanted[asText(o["kind"])] {
			b.WriteString(asText(o["text"]))
		}
	}
	return b.String()
}

// textPart returns a part that is text.
func textPart(s any) object { return object{"kind": "text", "text": asText(s)} }

// partsOf reads content that is a string or a list of parts.
func partsOf(content any, read func(object) object) array {
	if s, ok := content.(string); ok {
		return array{textPart(s)}
	}
	out := array{}
	for _, p := range asArray(content) {
		out = append(out, read(asObject(p)))
	}
	return out
}

// withoutEmpty drops empty text parts.
func withoutEmpty(parts array) array {
	out := array{}
	for _, p := range parts {
		if o := asObject(p); o["kind"] != "text" || o["text"] != "" {
			out = append(out, p)
		}
	}
	return out
}

// stops reads a stop parameter that is a string or a list.
func stops(v any) array {
	if s, ok := v.(string); ok {
		return array{s}
	}
	if a := asArray(v); a != nil {
		return a
	}
	return array{}
}

var dataURL = regexp.MustCompile(`(?s)^data:([^;,]*)((?:;[^,]*)?),(.*)$`)

// splitDataURL takes a base64 data URL apart.
func splitDataURL(v any) (mime, data string, ok bool) {
	m := dataURL.FindStringSubmatch(asText(v))
	if m == nil || !strings.Contains(strings.ToLower(m[2]), ";base64") {
		return "", "", false
	}
	return m[1], m[3], true
}

// imagePart returns a part that is an image, by value if its address is a data URL.
func imagePart(url any) object {
	if mime, data, ok := splitDataURL(url); ok {
		return object{"kind": "image", "mime": mime, "data": data}
	}
	return object{"kind": "image", "url": url}
}

// arguments parses tool arguments that travel as text.
func arguments(v any) any {
	if isEmpty(v) {
		return object{}
	}
	parsed, err := parse([]byte(asText(v)))
	if err != nil {
		return object{"_invalid": v}
	}
	return parsed
}
