package chat

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Name is the name of the shape.
const Name dialogue.Shape = "chat"

// Shape is the chat-completions shape.
var Shape = &shapes.Shape{Descriptor: descriptor, Inbound: shape{}, Outbound: shape{}, Passthrough: shape{}}

// shape has its error envelope, heartbeat and key header from chunks.Family.
type shape struct{ chunks.Family }

// path of an upstream call, below the provider's base address.
const path = "/chat/completions"

var descriptor = shapes.Descriptor{
	Name:    Name,
	Scope:   "chat",
	Routes:  []shapes.Route{{Pattern: "POST /v1/chat/completions", Task: shapes.Generate}},
	Members: memberNames,
	Signs:   []string{"messages"},
	Answer: shapes.AnswerMembers{
		Text: []string{"content", "reasoning_content", "reasoning", "refusal", "arguments", "input", "text"},
	},
	Proofs: []string{"reasoning_details"},
	Telemetry: shapes.Telemetry{
		Operation: "chat", Vendor: chunks.Vendor, ReplyID: []string{"id"}, ReplyModel: []string{"model"},
		ReplyTier: []string{"service_tier"},
	},
	Defaults:    chunks.Defaults(dialogue.ThinkingImplicit),
	Probe:       chunks.Probe,
	SandboxPath: path,
	Traits:      traits,
}

// traits are shared with the requests that the shape decodes.
var traits = dialogue.Traits{
	StrictIsNative: true, KeepsMetadata: true, MaxEffort: true, ShowsThoughts: true, ShowsImages: true,
	FileIDs:    chunks.Vendor,
	LongPrompt: &chunks.LongPrompt,
}

func (shape) Check(body []byte, _ shapes.Params) (shapes.Head, error) { return check(body) }

func (shape) Decode(body []byte, _ shapes.Params, env *dialogue.Env) (*dialogue.Request, error) {
	return decode(body, env)
}

func (shape) Encode(
	req *dialogue.Request, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	return encode(req, t, rep, env)
}

func (shape) Patch(
	body []byte, _ shapes.Params, head shapes.Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	return patch(body, head, t, rep, env), nil
}

func (shape) NewEmitter(req *dialogue.Request, mode shapes.Mode, env *dialogue.Env) shapes.Emitter {
	if mode == shapes.Whole {
		return &document{req: req, env: env}
	}
	return newStream(req, env)
}

func (shape) NewParser(choices int, env *dialogue.Env) shapes.Parser {
	return &parser{Parser: chunks.Parser[*choice]{Wanted: choices}, env: env}
}

func (shape) NewTap(o shapes.TapOptions, env *dialogue.Env) shapes.Tap {
	tap := &chunks.Tap{Options: o, Content: hasContent}
	if o.KeepReasoning && o.Choices <= 1 {
		return shapes.TapOf(&reasoningTap{Tap: tap, env: env})
	}
	return shapes.TapOf(tap)
}

// hasContent reports whether a choice of a chunk has any part of an answer. The first delta, which
// only names the role, has none, so a failure right after it can still be retried.
func hasContent(choice gjson.Result) bool {
	found := false
	chunks.OnlyObject(choice.Get("delta")).ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "content", "refusal", "reasoning_content", "reasoning":
			found = v.Type == gjson.String && v.Str != "" || v.IsArray()
		case "tool_calls", "function_call", "audio", "reasoning_details", "annotations":
			found = v.IsObject() || v.IsArray() && v.Get("#").Int() > 0
		}
		return !found
	})
	return found
}
