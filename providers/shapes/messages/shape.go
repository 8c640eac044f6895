package messages

import (
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// Name is the name of the shape in configurations, logs and spans.
const Name dialogue.Shape = "messages"

// Shape is the messages shape.
var Shape = &shapes.Shape{
	Descriptor: descriptor, Inbound: shape{}, Outbound: shape{}, Passthrough: shape{}, Counter: counter{},
}

type shape struct{}

var descriptor = shapes.Descriptor{
	Name:  Name,
	Scope: "messages", KeyHeader: "X-Api-Key",
	Routes: []shapes.Route{
		{Pattern: "POST " + path, Task: shapes.Generate},
		{Pattern: "POST " + countPath, Task: shapes.Count},
	},
	ErrorPaths: []string{path},
	Members:    memberNames,
	Signs:      []string{"messages", "system", "stop_sequences", "output_config"},
	Answer: shapes.AnswerMembers{
		Text: []string{"text", "thinking", "partial_json", "content"}, Object: []string{"input"},
	},
	Proofs: []string{"signature", "data"},
	Telemetry: shapes.Telemetry{
		Operation: "chat", Vendor: "anthropic",
		ReplyID: []string{"message.id", "id"}, ReplyModel: []string{"message.model", "model"},
		ReplyTier: []string{"message.usage.service_tier", "usage.service_tier"},
	},
	Defaults: dialogue.Capabilities{
		StructuredOutputs: true, Thinking: dialogue.ThinkingEffort, ImagesIn: true, FilesIn: true, AudioIn: true,
		Sampling: true, Prefill: true, SystemTurns: true,
	},
	Models: &models,
	Probe: shapes.Probe{
		Path: "/v1/models", Pages: "limit=1000", After: "after_id",
		Header: http.Header{versionHeader: {version}}, Authorize: shape{}.Authorize,
	},
	SandboxPath: "/messages",
	Traits:      traits,
}

// traits are shared with every request that the shape decodes. LongPrompt has the vendor's own
// phrases, which agents search for to decide that they must shorten the conversation.
var traits = dialogue.Traits{
	BindsSchema: true, DropsBounds: true, ShowsThoughts: true, FileIDs: "anthropic", ReplaysParts: true,
	CacheHints: true, SendsMaximum: true, Overloaded529: true, NamesEvents: true, Proof: dialogue.SignatureProof,
	LongPrompt: &dialogue.LongPrompt{
		Known:     []string{"prompt is too long", "exceed context limit"},
		Phrase:    "prompt is too long",
		WithSizes: "prompt is too long: %d tokens > %d maximum",
		WithAnswer: "input length and `max_tokens` exceed context limit: %d + %d > %d, " +
			"decrease input length or `max_tokens` and try again",
	},
}

// The paths and headers of the API. version is the value of anthropic-version, which the vendor requires.
const (
	path      = "/v1/messages"
	countPath = "/v1/messages/count_tokens"

	versionHeader = "Anthropic-Version"
	betaHeader    = "Anthropic-Beta"
	version       = "2023-06-01"
)

// MaxChoices is 1, because the shape has no parameter for several answers.
func (shape) MaxChoices() int { return 1 }

// Authorize implements shapes.Outbound.
func (shape) Authorize(h http.Header, key string) { h.Set("x-api-key", key) }

// Heartbeat returns the shape's own ping, which every SDK skips.
func (shape) Heartbeat(mode shapes.Mode) []byte {
	if mode != shapes.Stream {
		return nil
	}
	return []byte(ping)
}

// ping is the vendor's own event without meaning.
const ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

// Envelope has the shape's own "type" beside the error, for clients that look
// for it.
func (shape) Envelope(err *dialogue.Error) []byte { return appendEnvelope(nil, err) }

// appendEnvelope appends an error in the vendor's form.
func appendEnvelope(dst []byte, err *dialogue.Error) []byte {
	dst = append(dst, `{"type":"error","error":`...)
	return append(err.AppendJSON(dst), '}')
}

func (shape) NewEmitter(req *dialogue.Request, mode shapes.Mode, env *dialogue.Env) shapes.Emitter {
	if mode == shapes.Whole {
		return &wholeEmitter{head: head{req: req, env: env}}
	}
	return &streamEmitter{head: head{req: req, env: env}}
}

func (shape) NewParser(int, *dialogue.Env) shapes.Parser { return &parser{usage: unknownUsage} }

func (shape) NewTap(o shapes.TapOptions, _ *dialogue.Env) shapes.Tap {
	return shapes.TapOf(&tap{options: o, usage: unknownUsage})
}

// upstreamHeader returns the header that every call carries: the API version, the client's if it
// sent one, and the client's betas. client may be nil.
func upstreamHeader(client http.Header) http.Header {
	h := make(http.Header, 2)
	h.Set(versionHeader, version)
	if v := client.Get(versionHeader); v != "" {
		h.Set(versionHeader, v)
	}
	for _, v := range client.Values(betaHeader) {
		h.Add(betaHeader, v)
	}
	return h
}

// quoted returns s as JSON.
func quoted(s string) string { return string(jsonw.AppendString(nil, s)) }
