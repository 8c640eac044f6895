package responses

import (
	"bytes"
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Name is the name of the shape.
const Name dialogue.Shape = "responses"

// Shape is the responses shape.
var Shape = &shapes.Shape{
	Descriptor: descriptor, Inbound: shape{}, Outbound: shape{}, Passthrough: shape{}, Counter: counter{},
}

type shape struct{}

var descriptor = shapes.Descriptor{
	Name:  Name,
	Scope: "responses",
	Routes: []shapes.Route{
		{Pattern: "POST /v1/responses", Task: shapes.Generate},
		{Pattern: "POST /v1/responses" + compactPath, Task: shapes.Generate, Word: true},
		{Pattern: "POST /v1/responses/input_tokens", Task: shapes.Count, Word: true},
	},
	Members: memberNames,
	Signs:   []string{"input"},
	Answer: shapes.AnswerMembers{
		Text:    []string{"delta", "text", "refusal", "arguments", "input", "content"},
		Repeats: repeatsDeltas,
	},
	Proofs: []string{"encrypted_content"},
	Telemetry: shapes.Telemetry{
		Operation: "chat", Vendor: vendor,
		ReplyID: []string{"response.id", "id"}, ReplyModel: []string{"response.model", "model"},
		ReplyTier: []string{"response.service_tier", "service_tier"},
	},
	Defaults: dialogue.Capabilities{
		StructuredOutputs: true, Thinking: dialogue.ThinkingImplicit, ImagesIn: true, FilesIn: true, AudioIn: true,
		Sampling: true, Prefill: true,
	},
	Probe:       shapes.Probe{Path: "/models", Authorize: shape{}.Authorize},
	SandboxPath: callPath,
	Traits:      traits,
}

// vendor is the service whose file ids the shape carries. The vendor's other shapes have the same.
const vendor = "openai"

// traits are shared with the requests that the shape decodes.
var traits = dialogue.Traits{
	StrictIsNative: true, KeepsMetadata: true, MaxEffort: true, FileIDs: vendor, StoresReplies: true,
	ShowsImages: true, NamesEvents: true,
	Fields: map[string]string{dialogue.Conversation: "input"},
	Proof:  dialogue.EncryptedProof,
	LongPrompt: &dialogue.LongPrompt{
		Known:  []string{"context window"},
		Phrase: "Your input exceeds the context window of this model",
		WithSizes: "Your input exceeds the context window of this model: " +
			"it has %d tokens, and the model takes %d. Please adjust your input and try again.",
	},
}

// repeatsDeltas reports whether events of this type only repeat what deltas brought.
func repeatsDeltas(kind []byte) bool {
	return bytes.HasPrefix(kind, []byte("response.")) && !bytes.HasSuffix(kind, []byte(".delta"))
}

// MaxChoices is 1, because the shape has no parameter for several answers.
func (shape) MaxChoices() int { return 1 }

// Heartbeat returns a comment line without a blank line after it. With a blank line it would be an
// empty event, which an older client of this family fails on, as clients do on events of an unknown
// type.
func (shape) Heartbeat(mode shapes.Mode) []byte {
	if mode == shapes.Whole {
		return nil
	}
	return []byte(heartbeat)
}

const heartbeat = ": keep-alive\n"

func (shape) Authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

func (shape) NewEmitter(req *dialogue.Request, mode shapes.Mode, env *dialogue.Env) shapes.Emitter {
	e := newEmitter(req, mode, env)
	if req.Compaction != dialogue.NoCompaction {
		return &compactor{emitter: e}
	}
	return e
}

func (shape) NewParser(_ int, env *dialogue.Env) shapes.Parser { return &parser{env: env} }

func (shape) NewTap(o shapes.TapOptions, _ *dialogue.Env) shapes.Tap {
	return shapes.TapOf(&tap{options: o, usage: dialogue.NoUsage, seq: -1})
}
