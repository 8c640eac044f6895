package cases

import (
	"net/http"
	"strings"
)

// required lists the members a whole reply of each shape always has. The messages
// shape has two more when the gateway wrote the object itself.
var required = map[Shape][]string{
	Messages:    {"id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "usage"},
	Chat:        {"id", "object", "created", "model", "choices"},
	Completions: {"id", "object", "created", "model", "choices"},
	Responses: {
		"id", "object", "created_at", "error", "incomplete_details", "instructions", "output", "parallel_tool_calls",
		"status",
	},
	Gemini: {"candidates"},
}

// WholeRules returns the rules that a reply that is no stream breaks: those of an error envelope
// or of the shape's object. It returns the body, too, or nil if that is not JSON. translated is set if the upstream
// speaks another shape.
func WholeRules(shape Shape, reply *Reply, translated bool) (any, []string) {
	var r rules
	r.breaksIf(!strings.Contains(reply.Header.Get("Content-Type"), "application/json"),
		"content-type is not application/json")
	body, err := parse(reply.Body)
	if err != nil {
		r.breaks("body is not JSON: %.200s", reply.Body)
		return nil, r.broken
	}
	if reply.Status >= http.StatusBadRequest {
		r.envelope(body)
		return body, r.broken
	}
	r.whole(shape, asObject(body), translated)
	return body, r.broken
}

// envelope checks an error. It must not have what the upstream said in a member of its own.
func (r *rules) envelope(body any) {
	optional := object{"$or": array{object{"$absent": true}, object{"$type": "string"}}}
	r.broken = append(r.broken, match(body, object{
		"error":    object{"message": object{"$type": "string"}, "type": optional, "param": optional},
		"upstream": object{"$absent": true},
	}, "")...)
}

// whole checks the members that every reply of a shape has.
func (r *rules) whole(shape Shape, b object, translated bool) {
	keys := required[shape]
	if shape == Messages && translated {
		keys = append([]string{"stop_details", "container"}, keys...)
	}
	if shape == Gemini && !isEmpty(asObject(b["promptFeedback"])["blockReason"]) {
		keys = nil // a refused prompt has no candidates
	}
	complete := true
	for _, k := range keys {
		if _, ok := b[k]; !ok {
			r.breaks("body lacks %q", k)
			complete = false
		}
	}
	if !complete {
		return
	}
	switch shape {
	case Messages:
		r.wholeMessage(b)
	case Chat:
		r.breaksIf(b["object"] != "chat.completion", "object is %s", show(b["object"], 80))
		for _, c := range asArray(b["choices"]) {
			r.wholeChoice(asObject(c))
		}
	case Completions:
		r.breaksIf(b["object"] != "text_completion", "object is %s", show(b["object"], 80))
	case Responses:
		r.breaksIf(b["object"] != "response", "object is %s", show(b["object"], 80))
	}
}

// wholeMessage checks a reply of the shape messages.
func (r *rules) wholeMessage(b object) {
	content, isList := b["content"].(array)
	r.breaksIf(b["type"] != "message" || b["role"] != "assistant" || !isList, "malformed message object")
	r.breaksIf(!stopReasons[asText(b["stop_reason"])], "stop_reason %s", show(b["stop_reason"], 80))
	for _, x := range content {
		block := asObject(x)
		wrong := isEmpty(block["id"]) || isEmpty(block["name"]) || asObject(block["input"]) == nil
		r.breaksIf(block["type"] == "tool_use" && wrong, "malformed tool_use")
	}
}

// wholeChoice checks one choice of a chat completion.
func (r *rules) wholeChoice(c object) {
	message := asObject(c["message"])
	r.breaksIf(!finishReasons[asText(c["finish_reason"])], "finish_reason %s", show(c["finish_reason"], 80))
	r.breaksIf(message["role"] != "assistant", "message.role %s", show(message["role"], 80))
	for _, x := range asArray(message["tool_calls"]) {
		t := asObject(x)
		if t["type"] != "function" {
			continue
		}
		_, err := parse([]byte(asText(asObject(t["function"])["arguments"])))
		// A call cut off by the length limit has what arrived.
		r.breaksIf(err != nil && c["finish_reason"] != "length", "tool call arguments are not JSON text")
		r.breaksIf(isEmpty(t["id"]), "tool call without id")
	}
}
