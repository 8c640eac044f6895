package gemini

import (
	"net/http"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Name is the name of the shape.
const Name dialogue.Shape = "gemini"

// Shape is the gemini shape.
var Shape = &shapes.Shape{
	Descriptor: descriptor, Inbound: shape{}, Outbound: shape{}, Passthrough: shape{}, Counter: counter{},
}

type shape struct{}

var descriptor = shapes.Descriptor{
	Name:  Name,
	Scope: "generate", KeyHeader: "X-Goog-Api-Key",
	Routes: []shapes.Route{
		{Pattern: "POST /v1beta/models/{rest...}"},
		{Pattern: "POST /v1/models/{rest...}"}, // newer clients
	},
	Read:       read,
	ErrorPaths: []string{"/v1beta/"},
	Members:    memberNames,
	Signs:      []string{"contents"},
	Answer:     shapes.AnswerMembers{Text: []string{"text"}, Object: []string{"args"}},
	Proofs:     []string{"thoughtSignature"},
	Telemetry: shapes.Telemetry{
		Operation: "generate_content", Vendor: "gcp.gemini",
		ReplyID: []string{"responseId"}, ReplyModel: []string{"modelVersion"},
	},
	Defaults: dialogue.Capabilities{
		StructuredOutputs: true, Thinking: dialogue.ThinkingEffort, ImagesIn: true, FilesIn: true, AudioIn: true,
		JSONSchema: true, Sampling: true, Prefill: true, CallSignatures: true,
	},
	Models: &modelList,
	Probe: shapes.Probe{Path: "/v1beta/models", Pages: "pageSize=1000", After: "pageToken",
		Authorize: shape{}.Authorize},
	SandboxPath: "/models/{rest...}",
	Traits:      traits,
}

// traits are shared with the requests that the shape decodes.
var traits = dialogue.Traits{
	BindsSchema: true, ShowsImages: true, FileIDs: "google",
	ReplaysParts: true, KeyInQuery: true, Proof: dialogue.SignatureProof,
	Fields: map[string]string{
		dialogue.Conversation: "contents", "modalities": "generationConfig.responseModalities",
		"n": "generationConfig.candidateCount", "tool_choice": "toolConfig.functionCallingConfig",
	},
	LongPrompt: &dialogue.LongPrompt{
		Known:     []string{"input token count"},
		Phrase:    "The input token count exceeds the maximum number of tokens allowed",
		WithSizes: "The input token count (%d) exceeds the maximum number of tokens allowed (%d).",
	},
}

// read implements Descriptor.Read for paths that end in {model}:{method}. A stream without alt=sse
// is a JSON array.
func read(r *http.Request) (shapes.Params, shapes.Task) {
	model, method, ok := splitPath(r.PathValue("rest"))
	p := shapes.Params{Path: r.URL.Path, Header: r.Header, Model: model}
	switch {
	case ok && method == generate:
		return p, shapes.Generate
	case ok && method == streamGenerate:
		p.Stream = true
		p.Array = !slices.Contains(r.URL.Query()["alt"], "sse")
		return p, shapes.Generate
	case ok && method == countTokens:
		return p, shapes.Count
	case ok && isEmbed(method):
		return p, shapes.Embed
	}
	return p, shapes.NoTask
}

// maxChoices is the vendor's largest candidateCount.
const maxChoices = 8

func (shape) MaxChoices() int { return maxChoices }

func (shape) Authorize(h http.Header, key string) { h.Set("x-goog-api-key", key) }

// heartbeat is a chunk that adds nothing. The vendor's SDKs fail on comments, event names and
// everything else that is not a chunk.
const heartbeat = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]}` + "\n\n"

// Heartbeat implements shapes.Inbound: an empty chunk on a stream, white space between the elements
// of an array.
func (shape) Heartbeat(mode shapes.Mode) []byte {
	switch mode {
	case shapes.Stream:
		return []byte(heartbeat)
	case shapes.Array:
		return []byte("\n")
	}
	return nil
}

// Methods after the colon of a model's path.
const (
	generate       = "generateContent"
	streamGenerate = "streamGenerateContent"
	countTokens    = "countTokens"
)

// methods are the methods that every model has.
var methods = []string{generate, streamGenerate, countTokens, embedContent, batchEmbedContents}

// call returns the call for a model of an upstream. A stream is always asked for as server-sent
// events, whatever the client reads.
func call(model string, stream bool, body []byte) shapes.Call {
	c := shapes.Call{Path: modelPath(model) + ":" + generate, Header: http.Header{}, Body: body}
	if stream {
		c.Path, c.Query, c.Stream = modelPath(model)+":"+streamGenerate, "alt=sse", true
	}
	return c
}

// modelPath returns the path of a model. The name may contain a collection (tunedModels/x).
func modelPath(model string) string {
	if strings.HasPrefix(model, "models/") || strings.HasPrefix(model, "tunedModels/") {
		return "/v1beta/" + model
	}
	return "/v1beta/models/" + model
}
