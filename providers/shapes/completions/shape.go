package completions

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Name is the name of the shape.
const Name dialogue.Shape = "completions"

// Shape is the text-completions shape.
var Shape = &shapes.Shape{Descriptor: descriptor, Inbound: shape{}, Outbound: shape{}, Passthrough: shape{}}

type shape struct{ chunks.Family }

// path of an upstream call, below the provider's base address.
const path = "/completions"

var descriptor = shapes.Descriptor{
	Name:    Name,
	Scope:   "completions",
	Routes:  []shapes.Route{{Pattern: "POST /v1/completions", Task: shapes.Generate}},
	Members: memberNames,
	Signs:   []string{"prompt"},
	Answer:  shapes.AnswerMembers{Text: []string{"text"}},
	Telemetry: shapes.Telemetry{
		Operation: "text_completion", Vendor: chunks.Vendor, ReplyID: []string{"id"}, ReplyModel: []string{"model"},
		ReplyTier: []string{"service_tier"},
	},
	Defaults:    defaults(),
	Probe:       chunks.Probe,
	SandboxPath: path,
	Traits:      traits,
}

// defaults returns the defaults of package chunks without tools, for which only the chat shape has a place.
func defaults() dialogue.Capabilities {
	c := chunks.Defaults(dialogue.ThinkingNone)
	c.NoTools = true
	return c
}

// traits are shared with the requests that the shape decodes.
var traits = dialogue.Traits{
	Fields:     map[string]string{dialogue.Conversation: "prompt"},
	LongPrompt: &chunks.LongPrompt,
}

func (shape) Check(body []byte, _ shapes.Params) (shapes.Head, error) { return check(body) }

func (shape) Decode(body []byte, _ shapes.Params, _ *dialogue.Env) (*dialogue.Request, error) {
	return decode(body)
}

func (shape) Encode(req *dialogue.Request, t dialogue.Target, rep *dialogue.Report,
	_ *dialogue.Env) (shapes.Call, error) {
	return encode(req, t, rep)
}

// Patch changes the model and asks for usage. The shape has nothing else that would have to change.
func (shape) Patch(body []byte, _ shapes.Params, head shapes.Head, t dialogue.Target, _ *dialogue.Report,
	_ *dialogue.Env) (shapes.Call, error) {
	if head.Plain {
		return shapes.Call{Path: path, Body: chunks.PatchPlain(body, head, t), Stream: head.Stream}, nil
	}
	edits := chunks.Patch(body, fields.Members(body), head, t)
	return shapes.Call{Path: path, Body: fields.Splice(body, edits), Stream: head.Stream}, nil
}

func (shape) NewEmitter(req *dialogue.Request, mode shapes.Mode, env *dialogue.Env) shapes.Emitter {
	w := writer{req: req, env: env, usage: dialogue.NoUsage}
	if mode == shapes.Whole {
		return &document{writer: w}
	}
	return &stream{writer: w}
}

func (shape) NewParser(choices int, _ *dialogue.Env) shapes.Parser {
	return &parser{chunks.Parser[*choice]{Wanted: choices}}
}

func (shape) NewTap(o shapes.TapOptions, _ *dialogue.Env) shapes.Tap {
	return shapes.TapOf(&chunks.Tap{Options: o,
		Content: func(choice gjson.Result) bool { return choice.Get("text").Str != "" }})
}
