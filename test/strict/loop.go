package strict

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

type (
	object = map[string]any
	array  = []any
)

// A client keeps a conversation as the SDK of its shape does and sends back what it got.
type client struct {
	shape   dialogue.Shape
	thinks  bool // it asks for thinking
	stream  bool
	drops   bool // it does not send back the reasoning of chat completions, as LangChain does
	history array
}

// say adds what the user says.
func (c *client) say(text string) {
	switch c.shape {
	case dialoguetest.Gemini:
		c.history = append(c.history, object{"role": "user", "parts": array{object{"text": text}}})
	default:
		c.history = append(c.history, object{"role": "user", "content": text})
	}
}

// body is the next request.
func (c *client) body() []byte {
	parameters := object{"type": "object", "properties": object{"marker": object{"type": "string"}}}
	var b object
	var tools array
	for _, name := range []string{"look", "read"} {
		function := object{"name": name, "description": "d", "parameters": parameters}
		switch c.shape {
		case dialoguetest.Chat:
			tools = append(tools, object{"type": "function", "function": function})
		case dialoguetest.Responses:
			function["type"], function["strict"] = "function", false
			tools = append(tools, function)
		case dialoguetest.Messages:
			tools = append(tools, object{"name": name, "description": "d", "input_schema": parameters})
		default:
			tools = append(tools, function)
		}
	}
	switch c.shape {
	case dialoguetest.Chat:
		b = object{"model": "m", "messages": c.history, "tools": tools, "stream": c.stream}
		if c.thinks {
			b["reasoning_effort"] = "medium"
		}
	case dialoguetest.Responses:
		b = object{"model": "m", "input": c.history, "tools": tools, "stream": c.stream, "store": false}
		if c.thinks {
			b["reasoning"] = object{"effort": "medium", "summary": "auto"}
			b["include"] = array{"reasoning.encrypted_content"}
		}
	case dialoguetest.Messages:
		b = object{"model": "m", "max_tokens": 4096, "messages": c.history, "tools": tools, "stream": c.stream}
		if c.thinks {
			b["thinking"] = object{"type": "enabled", "budget_tokens": 1024}
		}
	default:
		b = object{"contents": c.history, "tools": array{object{"functionDeclarations": tools}}}
		if c.thinks {
			b["generationConfig"] = object{"thinkingConfig": object{"includeThoughts": true}}
		}
	}
	if !c.thinks && c.shape != dialoguetest.Gemini {
		b["temperature"] = 0.5
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return text
}

// take adds a reply to the conversation, compares it with the step that the model took, and adds the results
// of its calls. The step has the text and the calls that the upstream's model made. A difference is a fault
// of the translation of the reply.
func (c *client) take(reply object, s step) error {
	text, _ := json.Marshal(reply)
	doc := gjson.ParseBytes(text)
	said, calls := c.read(doc)
	if err := c.first(doc); err != nil {
		return err
	}
	if said != s.text || len(calls) != len(s.calls) {
		return fmt.Errorf("got %q and %d calls, want %q and %d: %.500s", said, len(calls), s.text, len(s.calls), text)
	}
	for i, want := range s.calls {
		if calls[i].name != want.name || gjson.Parse(calls[i].args).Get("marker").Str != want.marker ||
			gjson.Parse(calls[i].args).Get("n").Raw != "12345678901234567890" {
			return fmt.Errorf("call %d is %.200v", i, calls[i])
		}
	}
	c.answer(calls, s)
	return nil
}

// read adds a reply to the conversation as clients of the shape do, and returns its text and its calls.
// Everything is kept as it came, with members that the client does not know, because SDKs do the same and
// proofs would break otherwise.
func (c *client) read(doc gjson.Result) (said string, calls []gotCall) {
	switch c.shape {
	case dialoguetest.Chat:
		message := doc.Get("choices.0.message")
		kept := raw(message)
		for _, name := range []string{"reasoning_content", "reasoning_details"} {
			if c.drops {
				kept, _ = sjson.DeleteBytes(kept, name)
			}
		}
		c.history = append(c.history, kept)
		said = message.Get("content").Str
		message.Get("tool_calls").ForEach(func(_, v gjson.Result) bool {
			f := v.Get("function")
			calls = append(calls, gotCall{v.Get("id").Str, f.Get("name").Str, f.Get("arguments").Str})
			return true
		})
	case dialoguetest.Responses:
		doc.Get("output").ForEach(func(_, v gjson.Result) bool {
			c.history = append(c.history, raw(v))
			switch v.Get("type").Str {
			case "message":
				said += v.Get("content.0.text").Str
			case "function_call":
				calls = append(calls, gotCall{v.Get("call_id").Str, v.Get("name").Str, v.Get("arguments").Str})
			}
			return true
		})
	case dialoguetest.Messages:
		c.history = append(c.history, object{"role": "assistant", "content": raw(doc.Get("content"))})
		doc.Get("content").ForEach(func(i, v gjson.Result) bool {
			switch v.Get("type").Str {
			case "text":
				said += v.Get("text").Str
			case "tool_use":
				calls = append(calls, gotCall{v.Get("id").Str, v.Get("name").Str, v.Get("input").Raw})
			}
			return true
		})
	default:
		content := doc.Get("candidates.0.content")
		c.history = append(c.history, raw(content))
		content.Get("parts").ForEach(func(_, v gjson.Result) bool {
			if !v.Get("thought").Bool() {
				said += v.Get("text").Str
			}
			if f := v.Get("functionCall"); f.Exists() {
				calls = append(calls, gotCall{f.Get("id").Str, f.Get("name").Str, f.Get("args").Raw})
			}
			return true
		})
	}
	return said, calls
}

// gotCall is a call as a client got it.
type gotCall struct{ id, name, args string }

// raw keeps JSON as it is, numbers included.
func raw(v gjson.Result) json.RawMessage { return json.RawMessage(v.Raw) }

// first returns an error if a client that did not ask for thinking gets a part of it that it does
// not expect: many read the first part only.
func (c *client) first(doc gjson.Result) error {
	if c.thinks {
		return nil
	}
	thinking := doc.Get("content.0.type").Str
	if thinking == "redacted_thinking" || thinking == "thinking" && doc.Get("content.0.thinking").Str == "" ||
		doc.Get("candidates.0.content.parts.0.thought").Bool() {
		return fmt.Errorf("the first part is thinking that the client did not ask for: %.300s", doc.Raw)
	}
	return nil
}

// answer adds the results of calls.
func (c *client) answer(calls []gotCall, s step) {
	var parts array
	for i, call := range calls {
		text := resultOf(s.calls[i].marker)
		pictured := s.calls[i].picture
		switch c.shape {
		case dialoguetest.Chat:
			c.history = append(c.history, object{"role": "tool", "tool_call_id": call.id, "content": text})
		case dialoguetest.Responses:
			var output any = text
			if pictured {
				output = array{object{"type": "input_text", "text": text},
					object{"type": "input_image", "image_url": "data:image/png;base64," + picture}}
			}
			c.history = append(c.history, object{"type": "function_call_output", "call_id": call.id, "output": output})
		case dialoguetest.Messages:
			content := array{object{"type": "text", "text": text}}
			if pictured {
				content = append(content, object{"type": "image", "source": object{
					"type": "base64", "media_type": "image/png", "data": picture}})
			}
			parts = append(parts, object{"type": "tool_result", "tool_use_id": call.id, "content": content})
		default:
			response := object{"name": call.name, "response": object{"output": text}}
			if call.id != "" {
				response["id"] = call.id
			}
			if pictured {
				response["parts"] = array{object{"inlineData": object{"mimeType": "image/png", "data": picture}}}
			}
			parts = append(parts, object{"functionResponse": response})
		}
	}
	switch {
	case len(parts) == 0:
	case c.shape == dialoguetest.Messages:
		c.history = append(c.history, object{"role": "user", "content": parts})
	default:
		c.history = append(c.history, object{"role": "user", "parts": parts})
	}
}
