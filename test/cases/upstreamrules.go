package cases

import (
	"fmt"
	"regexp"
)

// foreign lists, per shape, top-level fields of other shapes, which the real
// upstreams refuse.
var foreign = map[Shape][]string{
	Chat: {
		"system", "contents", "generationConfig", "input", "instructions", "max_output_tokens", "stop_sequences",
		"thinking", "output_config", "anthropic_version", "safetySettings", "previous_response_id", "text",
	},
	Messages: {"n", "stop", "seed", "logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty",
		"response_format", "stream_options", "user", "store", "max_completion_tokens", "parallel_tool_calls",
		"reasoning_effort",
		"functions", "function_call", "modalities", "audio", "prediction", "verbosity", "prompt_cache_key",
		"prompt_cache_retention", "safety_identifier", "web_search_options", "reasoning", "text", "input",
		"instructions",
		"max_output_tokens", "previous_response_id", "include", "contents", "generationConfig", "safetySettings",
		"prompt",
		"best_of", "echo", "suffix"},
	Responses: {"messages", "stop", "n", "seed", "max_tokens", "max_completion_tokens", "response_format", "functions",
		"function_call", "reasoning_effort", "verbosity", "system", "stop_sequences", "thinking", "output_config",
		"contents",
		"generationConfig", "logit_bias", "presence_penalty", "frequency_penalty"},
	Gemini: {
		"messages", "stop", "system", "max_tokens", "input", "instructions", "response_format", "temperature", "stream",
		"stream_options", "tool_choice", "thinking", "output_config", "metadata",
	},
	Completions: {"messages", "input", "contents", "system"},
}

var (
	chatToolName     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	messagesToolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	messagesCallID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	geminiToolName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)
)

// upstreamRules says which rules of its shape a request to an upstream breaks. They are rules whose breach
// the real vendor answers with 400. They stand here a second time, without the gateway's own encoders and
// checks, which could repeat a mistake.
func upstreamRules(shape Shape, request object) []string {
	var r rules
	for _, k := range foreign[shape] {
		if _, ok := request[k]; ok {
			r.breaks("%s upstream got foreign field %q", shape, k)
		}
	}
	switch shape {
	case Chat:
		r.chatRequest(request)
		r.noCacheControl(shape, firstFull(request["messages"], request["input"]))
	case Messages:
		r.messagesRequest(request)
	case Responses:
		r.responsesRequest(request)
		r.noCacheControl(shape, firstFull(request["messages"], request["input"]))
	case Gemini:
		r.geminiRequest(request)
		r.breaksIf(hasKey(request, set("cache_control")), "cache_control sent to gemini")
	}
	return r.broken
}

// noCacheControl looks for markers on blocks; tool schemas may use the name.
func (r *rules) noCacheControl(shape Shape, conversation any) {
	clean := walk(conversation, func(v any) bool {
		o := asObject(v)
		_, marked := o["cache_control"]
		_, block := o["type"]
		return !marked || !block
	})
	r.breaksIf(!clean, "cache_control sent to %s", shape)
}

// chatRequest checks a request as the vendor does. Every call must be answered before the next message. A
// message of role tool answers a call of the assistant's message before it, and all calls are answered before
// anything else is said.
func (r *rules) chatRequest(q object) {
	messages := asArray(q["messages"])
	r.breaksIf(len(messages) == 0, "messages is empty")
	pending := map[string]bool{} // calls of the last assistant message without an answer
	for i, x := range messages {
		m := asObject(x)
		where := fmt.Sprintf("messages[%d]", i)
		r.chatRole(where, m)
		if m["role"] == "tool" {
			r.chatAnswer(where, m, pending)
			continue
		}
		r.breaksIf(len(pending) > 0, "%s: %d tool calls not answered before the next message", where, len(pending))
		clear(pending)
		if m["role"] == "assistant" {
			r.chatCalls(asArray(m["tool_calls"]), pending)
		}
	}
	tools, given := q["tools"]
	for _, x := range asArray(tools) {
		r.chatTool(asObject(x))
	}
	r.breaksIf(given && isEmpty(tools), "empty tools array")
	choice := q["tool_choice"]
	r.breaksIf(choice != nil && isEmpty(tools) && choice != "none" && choice != "auto", "tool_choice without tools")
	r.breaksIf(!isEmpty(q["stream_options"]) && isEmpty(q["stream"]), "stream_options without stream")
}

// chatRole checks that a message has the content that its role needs.
func (r *rules) chatRole(where string, m object) {
	switch role := m["role"]; role {
	case "system", "developer", "user", "tool", "function":
		r.breaksIf(m["content"] == nil, "%s (%s) has no content", where, role)
	case "assistant":
		silent := firstFull(m["content"], m["tool_calls"], m["function_call"], m["refusal"], m["audio"]) == nil
		r.breaksIf(silent, "%s is an empty assistant message", where)
	default:
		r.breaks("%s.role %s", where, show(role, 80))
	}
}

// chatAnswer checks that a result answers a call of the last assistant message.
func (r *rules) chatAnswer(where string, m object, pending map[string]bool) {
	id := asText(m["tool_call_id"])
	r.breaksIf(!pending[id], "%s answers no pending tool call", where)
	delete(pending, id)
	for _, p := range asArray(m["content"]) {
		if asObject(p)["type"] != "text" {
			r.breaks("tool message with a part that is not text")
			return
		}
	}
}

// chatCalls checks the calls of a message and notes them as pending.
func (r *rules) chatCalls(calls array, pending map[string]bool) {
	for _, x := range calls {
		t := asObject(x)
		id := asText(t["id"])
		r.breaksIf(id == "", "tool call without id")
		r.breaksIf(id != "" && pending[id], "tool call id used twice in one turn")
		pending[id] = true
		if t["type"] == "function" {
			_, err := parse([]byte(asText(asObject(t["function"])["arguments"])))
			r.breaksIf(err != nil, "tool call arguments are not JSON text")
		}
	}
}

// chatTool checks one tool.
func (r *rules) chatTool(t object) {
	kind := asText(t["type"])
	if kind != "function" && kind != "custom" {
		r.breaks("tool type %s does not exist in the chat shape", show(t["type"], 80))
		return
	}
	name := asObject(t[kind])["name"]
	r.breaksIf(!chatToolName.MatchString(asText(name)), "tool name %s", show(name, 80))
}

// responsesRequest checks a request as the vendor does. A result may belong to a call of an earlier response,
// which previous_response_id names and the request does not contain.
func (r *rules) responsesRequest(q object) {
	calls := map[string]bool{}
	for _, x := range asArray(q["input"]) {
		it := asObject(x)
		switch kind := itemKind(it); kind {
		case "message":
			r.responsesMessage(it)
		case "function_call", "custom_tool_call":
			r.breaksIf(isEmpty(it["call_id"]) || isEmpty(it["name"]), "%s without call_id or name", kind)
			calls[asText(it["call_id"])] = true
		case "function_call_output", "custom_tool_call_output":
			known := calls[asText(it["call_id"])] || !isEmpty(q["previous_response_id"])
			r.breaksIf(!known, "output for an unknown call_id")
			r.breaksIf(it["output"] == nil, "call output without output")
		}
	}
	for _, x := range asArray(q["tools"]) {
		t := asObject(x)
		r.breaksIf(t["type"] == "function" && isEmpty(t["name"]),
			"responses function tool must be flat (name at top level)")
	}
	order, ok := compare(q["max_output_tokens"], number(16))
	r.breaksIf(ok && order < 0, "max_output_tokens below 16")
}

var (
	responsesRoles     = set("user", "assistant", "system", "developer")
	responsesSaidParts = set("output_text", "refusal")
	responsesSentParts = set("input_text", "input_image", "input_file", "input_audio")
)

// responsesMessage checks that a message has only the parts that its role can have.
func (r *rules) responsesMessage(it object) {
	role := asText(it["role"])
	r.breaksIf(!responsesRoles[role], "input role %s", show(it["role"], 80))
	allowed := responsesSentParts
	if role == "assistant" {
		allowed = responsesSaidParts
	}
	for _, x := range asArray(it["content"]) {
		kind := asText(asObject(x)["type"])
		r.breaksIf(!allowed[kind], "%s part %q", role, kind)
	}
	empty, isList := it["content"].(array)
	r.breaksIf(it["content"] == nil || isList && len(empty) == 0, "message item without content")
}
