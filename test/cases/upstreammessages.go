package cases

import (
	"fmt"
	"slices"
	"strings"
)

// messagesRequest checks a request as the vendor does.
func (r *rules) messagesRequest(q object) {
	limit, ok := asInt(q["max_tokens"])
	r.breaksIf(!ok || limit < 0, "max_tokens is required")
	messages := asArray(q["messages"])
	r.breaksIf(len(messages) == 0, "messages is empty")
	sides := r.messagesSides(messages)
	r.breaksIf(len(sides) > 0 && sides[0].role != "user", "first message is not a user message")
	for i, s := range sides {
		var before, after array
		if i > 0 {
			before = sides[i-1].parts
		}
		last := i == len(sides)-1
		if !last {
			after = sides[i+1].parts
		}
		r.messagesBlocks(s.parts)
		r.messagesPairs(s, before, after, last)
	}
	r.messagesTools(q)
	r.messagesParameters(q, limit)
}

// messagesSides joins consecutive messages of one side, as the API does.
func (r *rules) messagesSides(messages array) []turn {
	var sides []turn
	for i, x := range messages {
		m := asObject(x)
		where := fmt.Sprintf("messages[%d]", i)
		role := asText(m["role"])
		r.breaksIf(role != "user" && role != "assistant", "%s.role %s", where, show(m["role"], 80))
		for _, k := range names(m) {
			r.breaksIf(k != "role" && k != "content", "%s has extra field %q", where, k)
		}
		blocks := asArray(m["content"])
		if s, ok := m["content"].(string); ok {
			blocks = array{object{"type": "text", "text": s}}
		}
		r.breaksIf(len(blocks) == 0, "%s has no content", where)
		if n := len(sides); n > 0 && sides[n-1].role == role {
			sides[n-1].parts = append(slices.Clip(sides[n-1].parts), blocks...)
			continue
		}
		sides = append(sides, turn{role: role, parts: blocks})
	}
	return sides
}

// messagesBlocks checks the blocks of a message.
func (r *rules) messagesBlocks(blocks array) {
	for _, x := range blocks {
		b := asObject(x)
		switch b["type"] {
		case "text":
			r.breaksIf(strings.TrimSpace(asText(b["text"])) == "", "empty text block")
		case "thinking":
			r.breaksIf(isEmpty(b["signature"]), "thinking block without signature")
		case "tool_use":
			r.breaksIf(asObject(b["input"]) == nil, "tool_use.input is not an object")
			r.breaksIf(!messagesCallID.MatchString(asText(b["id"])), "tool_use.id %s", show(b["id"], 80))
		}
	}
}

// messagesPairs: every call is answered in the next user turn, every answer has its
// call in the turn before, once, and answers come first.
func (r *rules) messagesPairs(s turn, before, after array, last bool) {
	if s.role == "assistant" && !last {
		answered := set(members(after, "tool_result", "tool_use_id")...)
		for _, id := range members(s.parts, "tool_use", "id") {
			if !answered[id] {
				r.breaks("tool_use without tool_result in the next message")
				break
			}
		}
	}
	if s.role != "user" {
		return
	}
	called, seen := set(members(before, "tool_use", "id")...), map[string]bool{}
	for _, id := range members(s.parts, "tool_result", "tool_use_id") {
		r.breaksIf(!called[id], "tool_result without tool_use in the previous message")
		r.breaksIf(seen[id], "two tool_results for one tool_use")
		seen[id] = true
	}
	other := false
	for _, x := range s.parts {
		if asObject(x)["type"] != "tool_result" {
			other = true
		} else if other {
			r.breaks("tool_result blocks must come first")
			break
		}
	}
}

// members lists one text member of every block of a type.
func members(blocks array, kind, name string) []string {
	var out []string
	for _, x := range blocks {
		if b := asObject(x); b["type"] == kind {
			out = append(out, asText(b[name]))
		}
	}
	return out
}

// messagesTools checks the tools and their choice.
func (r *rules) messagesTools(q object) {
	for _, x := range asArray(q["tools"]) {
		t := asObject(x)
		if t["type"] == nil || t["type"] == "custom" {
			schema := asObject(t["input_schema"])
			r.breaksIf(schema["type"] != "object", "tool %s: input_schema.type must be object", show(t["name"], 80))
			r.breaksIf(len(danglingRefs(schema)) > 0, "tool schema has a dangling $ref")
		}
		r.breaksIf(!messagesToolName.MatchString(asText(t["name"])), "tool name %s", show(t["name"], 80))
	}
	choice := asObject(q["tool_choice"])
	r.breaksIf(len(choice) > 0 && isEmpty(q["tools"]), "tool_choice without tools")
	_, parallel := choice["disable_parallel_tool_use"]
	r.breaksIf(choice["type"] == "none" && parallel, "disable_parallel_tool_use inside tool_choice none")
}

// messagesParameters checks the parameters that exclude each other, mostly because of thinking.
func (r *rules) messagesParameters(q object, limit int) {
	t := q["temperature"]
	low, lowOK := compare(t, number(0))
	high, highOK := compare(t, number(1))
	r.breaksIf(t != nil && (!lowOK || !highOK || low < 0 || high > 0), "temperature %s is outside 0..1", show(t, 40))
	if thinking := asObject(q["thinking"]); thinking["type"] == "enabled" {
		budget, ok := asInt(thinking["budget_tokens"])
		r.breaksIf(!ok || budget < 1024, "thinking budget below 1024")
		r.breaksIf(ok && budget >= 1024 && budget >= limit, "thinking budget is not below max_tokens")
		choice := asObject(q["tool_choice"])["type"]
		r.breaksIf(choice == "any" || choice == "tool", "forced tool_choice together with thinking")
		r.breaksIf(t != nil && high != 0, "temperature together with thinking")
		r.breaksIf(q["top_k"] != nil, "top_k together with thinking")
	}
	tier := q["service_tier"]
	r.breaksIf(tier != nil && tier != "auto" && tier != "standard_only", "service_tier %s", show(tier, 80))
	for _, k := range names(asObject(q["metadata"])) {
		r.breaksIf(k != "user_id", "metadata has a key other than user_id")
	}
	for _, k := range names(asObject(asObject(q["output_config"])["format"])) {
		r.breaksIf(k != "type" && k != "schema", "output_config.format has extra field %q", k)
	}
}
