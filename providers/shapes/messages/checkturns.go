package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/shapes"
)

// messages checks the conversation. Whether the sides alternate and calls have results is not
// checked here: an upstream of this shape says it better, and the encoders of other shapes do not
// mind.
func (c *checker) messages(v gjson.Result) *shapes.Fault {
	if !v.IsArray() {
		return shapes.Broken("must be an array")
	}
	c.sawMessages = true
	n := 0
	f := each(v, func(turn gjson.Result) *shapes.Fault {
		if n++; n > maxTurns {
			return shapes.Broken("must be one of at most 100000 messages")
		}
		return c.turn(turn)
	})
	if f == nil && n == 0 {
		return shapes.Broken("must hold at least one message")
	}
	return f
}

// turn checks one message. It accepts a system role beside the two that the shape documents, because agents send it
// (decisions.md, Text shapes). Models that refuse it get its text in a turn of the user.
func (c *checker) turn(v gjson.Result) *shapes.Fault {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	var role, content gjson.Result
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "role":
			role = value
		case "content":
			content = value
		}
		return true
	})
	switch {
	case !role.Exists():
		return shapes.Lacking("role")
	case role.Str == "user", role.Str == "assistant":
	case role.Str == "system":
		c.head.SystemTurns = true
	default:
		return shapes.Broken("must be user, assistant or system").In("role")
	}
	switch {
	case !content.Exists():
		return shapes.Lacking("content")
	case content.Type == gjson.String:
		return nil
	case !content.IsArray():
		return shapes.Broken("must be a string or an array of blocks").In("content")
	}
	return each(content, func(b gjson.Result) *shapes.Fault {
		if role.Str == "user" && b.Get("type").Str == containerUpload {
			return shapes.UnknownPart()
		}
		return checkBlock(b, 0)
	}).In("content")
}

// containerUpload is a block that gives the vendor's code execution a file of the vendor. A user's is a part of the
// question, so no other shape may lose it. The assistant's only says what a tool has made.
const containerUpload = "container_upload"

// system checks the system prompt, which is a string or a list of text blocks.
func (c *checker) system(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.String || v.Type == gjson.Null {
		return nil
	}
	if !v.IsArray() {
		return shapes.Broken("must be a string or an array of text blocks")
	}
	return each(v, func(b gjson.Result) *shapes.Fault {
		if b.Get("type").String() != "text" {
			return shapes.Broken("must be text").In("type")
		}
		return checkBlock(b, 0)
	})
}

// blockRule returns the rule of a kind of block, or nil for a kind that needs none. known is false
// for a kind that the gateway has never heard of. Blocks of tools that run upstream, and every kind
// that ends in _tool_result, are only sent back as they came, so their contents are the vendor's
// business.
func blockRule(kind string) (rule func(gjson.Result) *shapes.Fault, known bool) {
	switch kind {
	case "text":
		return textRule, true
	case "thinking":
		return thinkingRule, true
	case "redacted_thinking":
		return redactedRule, true
	case "image", "document":
		return sourceRule, true
	case "tool_use":
		return toolUseRule, true
	case "search_result", "server_tool_use", "mcp_tool_use", containerUpload, "compaction", "mid_conv_system",
		"tool_result":
		return nil, true
	}
	return nil, strings.HasSuffix(kind, "_tool_result")
}

// checkBlock checks a block of a message (depth 0) or of a tool's result (depth 1). An unknown type
// gives a fault with unknown set, which only forbids translation.
func checkBlock(v gjson.Result, depth int) *shapes.Fault {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	kind := v.Get("type")
	if !kind.Exists() {
		return shapes.Lacking("type")
	}
	rule, known := blockRule(kind.Str)
	if !known {
		if kind.Type != gjson.String {
			return shapes.Broken("must be a string").In("type")
		}
		return shapes.UnknownPart()
	}
	switch {
	case kind.Str == "tool_result" && depth > 0: // each level would be read once more for every level around it
		return shapes.Broken("must not be tool_result inside a tool_result").In("type")
	case kind.Str == "tool_result":
		return checkResult(v, depth)
	case rule == nil:
		return nil
	}
	return rule(v)
}

// textRule, thinkingRule and redactedRule check blocks of a single string.

func textRule(v gjson.Result) *shapes.Fault { return stringRule(v, "text") }

func thinkingRule(v gjson.Result) *shapes.Fault { return stringRule(v, "thinking") }

func redactedRule(v gjson.Result) *shapes.Fault { return stringRule(v, "data") }

// stringRule checks a member that must be a string and may be empty.
func stringRule(v gjson.Result, name string) *shapes.Fault {
	m := v.Get(name)
	if !m.Exists() {
		return shapes.Lacking(name)
	}
	if m.Type != gjson.String {
		return shapes.Broken("must be a string").In(name)
	}
	return nil
}

// sourceRule checks the source of an image or a document: which member it needs depends on its
// type.
func sourceRule(v gjson.Result) *shapes.Fault {
	source := v.Get("source")
	if !source.Exists() {
		return shapes.Lacking("source")
	}
	if !source.IsObject() {
		return shapes.Broken("must be an object").In("source")
	}
	needs := ""
	switch source.Get("type").String() {
	case "base64":
		if f := required(source, "media_type"); f != nil {
			return f.In("source")
		}
		needs = "data"
	case "text":
		return stringRule(source, "data").In("source")
	case "url":
		needs = "url"
	case "file":
		needs = "file_id"
	case "content":
		return nil
	default:
		return shapes.Broken("must be base64, url, file, text or content").In("type").In("source")
	}
	return required(source, needs).In("source")
}

// toolUseRule checks a call in the history. Its input must be an object, as the vendor demands even
// of tools without parameters.
func toolUseRule(v gjson.Result) *shapes.Fault {
	for _, name := range []string{"id", "name"} {
		if f := required(v, name); f != nil {
			return f
		}
	}
	input := v.Get("input")
	if !input.Exists() {
		return shapes.Lacking("input")
	}
	if !input.IsObject() {
		return shapes.Broken("must be an object").In("input")
	}
	return nil
}

// checkResult checks a tool_result and the blocks inside it. A tool_reference names a tool that a
// search for tools has found. It is forwarded without a check.
func checkResult(v gjson.Result, depth int) *shapes.Fault {
	if f := required(v, "tool_use_id"); f != nil {
		return f
	}
	content := v.Get("content")
	if content.Type == gjson.String || content.Type == gjson.Null { // or absent
		return nil
	}
	return each(content, func(b gjson.Result) *shapes.Fault {
		if b.Get("type").String() == "tool_reference" {
			return nil
		}
		return checkBlock(b, depth+1)
	}).In("content")
}
