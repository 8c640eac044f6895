package dialogue

import (
	"encoding/json"
	"time"

	"stagedoor/providers/memory"
)

// Shape names an API shape that clients or providers speak.
type Shape string

// The five text shapes. Media shapes have names of their own and no dialogue.
const (
	Chat        Shape = "chat"        // POST /v1/chat/completions
	Responses   Shape = "responses"   // POST /v1/responses
	Completions Shape = "completions" // POST /v1/completions
	Messages    Shape = "messages"    // POST /v1/messages
	Gemini      Shape = "gemini"      // POST /v1beta/models/{model}:generateContent
)

// Request is one generation request, free of any shape's spelling.
//
// Absent is a value of its own: a pointer that is nil, or a json.Number or
// json.RawMessage that is empty, was not given. Explicit zeros survive.
type Request struct {
	Inbound Shape  // who asked, so in whose words the answer is written
	Model   string // as the client asked for it
	Stream  bool

	// IncludeUsage is stream_options.include_usage of chat and completions;
	// the other shapes always report usage, and their decoders set it.
	IncludeUsage bool

	System []Part // text parts only: leading system, developer, instructions
	Turns  []Turn

	Tools      []Tool
	ToolChoice *ToolChoice // nil: not given
	Parallel   *bool       // parallel_tool_calls

	MaxTokens        *int64
	Temperature      json.Number
	TopP             json.Number
	TopK             *int64
	Stop             []string
	Seed             json.Number
	PresencePenalty  json.Number
	FrequencyPenalty json.Number
	N                int // 0 or 1: one choice
	LogProbs         bool
	TopLogProbs      *int64
	LogitBias        json.RawMessage

	Output    Output
	Reasoning Reasoning

	User        string // safety_identifier, else user, else metadata.user_id
	Metadata    json.RawMessage
	ServiceTier string // as spelled by the inbound shape
	CacheKey    string // prompt_cache_key
	Verbosity   string

	Store              *bool
	PreviousResponseID string
	// ReplyID is the id a responses reply must have because it was handed out
	// before (background) or is a key in the store; "": the emitter makes one.
	ReplyID   string
	Include   []string // responses: include
	WebSearch bool     // asked for by web_search_options or a web search tool
	// SearchOptions are web_search_options as the client wrote them; the other
	// shapes' limits of a search stand in its tool.
	SearchOptions json.RawMessage
	Modalities    []string

	// LegacyFunctions: the client used functions/function_call, so calls are
	// answered with function_call and finish_reason function_call.
	LegacyFunctions bool

	// Completions only.
	Prompts [][]byte // raw JSON of each prompt: a string or an array of tokens
	Echo    bool
	Suffix  string
	BestOf  int

	// Body is the raw JSON the client sent. A decoder keeps it so that an
	// encoder or emitter of the same shape can echo what the form cannot say.
	Body []byte

	// Renamed maps a tool name as it was sent upstream to the client's own, for
	// names the target would refuse. Encoders fill it; the pipeline puts
	// Call.Name of every Open event back, so that parsers need not know.
	Renamed map[string]string

	// Lost names what the decoder had to drop (gateway.md 4.3: images over
	// 8 MB); the pipeline reports it like what an encoder loses.
	Lost []string

	// Ignored names the members within those fields that the form does not hold
	// ("messages.content.context"). See Report.LoseUntranslated.
	Ignored []string

	// Extra holds the top-level fields the decoder knows but the form does not
	// (including unknown ones). They are only for the same shape; an encoder of
	// another shape records each as lost.
	Extra []Field
}

// Field is a named raw JSON value.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Items of Include that every shape understands in its own way.
const (
	IncludeEncrypted = "reasoning.encrypted_content"
	IncludeLogProbs  = "message.output_text.logprobs"
)

// Role is who speaks in a turn. Tool results belong to the user.
type Role string

// The two roles a turn can have.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Turn is one contribution, its parts in the order they were given. Decoders
// do not merge or split turns; the encoder of the target does.
type Turn struct {
	Role  Role
	Name  string // chat's optional participant name
	Parts []Part
}

// PartKind says which fields of a Part are set.
type PartKind uint8

// Kinds of parts.
const (
	TextPart     PartKind = iota // Text
	SystemPart                   // Text: a system message after the first turn
	MediaPart                    // Media
	CallPart                     // Call
	ResultPart                   // Result
	ThinkingPart                 // Thinking
	RefusalPart                  // Text: the model's refusal, in history
	ServerPart                   // Opaque only: server tool use or result of Origin
)

// Part is a piece of a turn.
type Part struct {
	Kind PartKind
	Text string

	Media    *Media
	Call     *Call
	Result   *Result
	Thinking *Thinking

	CacheHint json.RawMessage // cache_control, only for messages
	Citations json.RawMessage // the origin's own citations or annotations

	// Opaque is the part exactly as Origin wrote it. An encoder of the same
	// shape may send it back verbatim; any other ignores it.
	Origin Shape
	Opaque json.RawMessage
}

// MediaKind is the sort of a media part.
type MediaKind string

// Kinds of media.
const (
	Image MediaKind = "image"
	File  MediaKind = "file" // a document: PDF, plain text, ...
	Audio MediaKind = "audio"
	Video MediaKind = "video"
)

// Media is an image, a document, audio or video: by value, by address or by id.
// Exactly one of Base64, URL, FileID and Text is set.
type Media struct {
	Kind   MediaKind
	MIME   string // "image/png"; may be empty with URL or FileID
	Base64 string // standard base64, never decoded on the way
	URL    string
	FileID string // only means something to Origin of the part
	Text   string // a plain text document
	Name   string // file name or title
	Detail string // low, high, auto
}

// Call is a tool call made by the model.
type Call struct {
	ID        string
	Name      string
	Namespace string // responses: namespace the tool lives in
	// Args is the JSON text of the arguments as it arrived ("" means {}).
	// For a custom tool it is the free-form input instead.
	Args   string
	Custom bool
	// Signature is Gemini's thoughtSignature of this call.
	Signature string
}

// Result answers a Call.
type Result struct {
	CallID  string
	Name    string // may be empty: then the encoder looks the call up
	Parts   []Part // text and media
	IsError bool
	Custom  bool // answers a custom tool's call
	// Object is the raw JSON object a gemini client gave as response.
	Object json.RawMessage
}

// Thinking is a piece of the model's reasoning.
type Thinking struct {
	Text string
	// Signature proves the text to Origin: a messages signature, or Gemini's
	// thoughtSignature of visible or empty text.
	Signature string
	// Redacted is the data of a redacted_thinking block.
	Redacted string
	// ItemID and Encrypted belong to a responses reasoning item.
	ItemID    string
	Encrypted string
	// Origin is the shape whose upstream produced it; empty if unknown. Only
	// an encoder of Origin may send Signature, Redacted or Encrypted.
	Origin Shape
}

// ToolKind says who runs a tool and how its input looks.
type ToolKind string

// Kinds of tools.
const (
	FunctionTool  ToolKind = "function"
	CustomTool    ToolKind = "custom"     // free-form text input
	WebSearchTool ToolKind = "web_search" // run by the provider; every shape but chat has one
	OpaqueTool    ToolKind = "opaque"     // run by the provider, Origin's own; see Type
)

// Tool is a tool the model may call.
type Tool struct {
	Kind        ToolKind
	Type        string // the vendor's word for a server tool: "code_execution_20250522"
	Name        string
	Namespace   string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments as given; nil: none
	// GeminiSchema: Schema is Gemini's OpenAPI subset (upper-case types,
	// nullable) rather than JSON Schema.
	GeminiSchema bool
	Strict       *bool
	Format       json.RawMessage // custom: {type: text} or a grammar
	CacheHint    json.RawMessage
	Origin       Shape
	Opaque       json.RawMessage
}

// ChoiceMode is how free the model is to call tools.
type ChoiceMode string

// Modes of tool choice.
const (
	ToolAuto     ChoiceMode = "auto"
	ToolNone     ChoiceMode = "none"
	ToolRequired ChoiceMode = "required"
	ToolNamed    ChoiceMode = "named"   // Names[0] must be called
	ToolAllowed  ChoiceMode = "allowed" // one of Names; Required says whether one must
)

// ToolChoice restricts the use of tools.
type ToolChoice struct {
	Mode     ChoiceMode
	Names    []string
	Required bool            // ToolAllowed: mode required rather than auto
	Custom   bool            // ToolNamed: a custom tool
	Opaque   json.RawMessage // a choice only Origin understands (hosted tools)
	Origin   Shape
}

// OutputMode is the form asked of the answer.
type OutputMode uint8

// Output modes.
const (
	OutputText   OutputMode = iota
	OutputJSON              // any JSON: json_object, application/json
	OutputSchema            // JSON that satisfies Schema
)

// Output is the structured-output wish of a request (gateway.md 4.8).
type Output struct {
	Mode        OutputMode
	Name        string
	Description string
	Strict      *bool
	// Schema is nil when the client asked for a schema and gave none.
	Schema json.RawMessage
	// GeminiSchema: Schema is Gemini's OpenAPI subset rather than JSON Schema.
	GeminiSchema bool
}

// Reasoning is how much the model shall think, and what of it is shown.
type Reasoning struct {
	Effort   string // none, minimal, low, medium, high, xhigh, max; "" not given
	Budget   *int64 // thinking tokens; nil: not given
	Adaptive bool   // the model decides
	Disabled bool
	// Include: the client asked to see thoughts (includeThoughts, summary).
	Include bool
	Summary string // auto, concise, detailed
	// EncryptedContent: the client wants reasoning.encrypted_content.
	EncryptedContent bool
}

// Target is the model a request is sent to, as the catalogue knows it.
type Target struct {
	Provider string
	Shape    Shape
	Model    string // the upstream's name for it
	Caps     Capabilities
	// MaxOutputTokens is what a missing max_tokens becomes where the shape
	// needs one. Never zero.
	MaxOutputTokens int64
	// NoSchema forces structured output off: the upstream has refused the
	// schema once already.
	NoSchema bool
}

// ThinkingStyle is how a messages or gemini model wants to be told to think.
type ThinkingStyle uint8

// Styles of thinking control.
const (
	ThinkingNone     ThinkingStyle = iota // the model cannot think
	ThinkingBudget                        // budget_tokens, thinkingBudget
	ThinkingEffort                        // adaptive with output_config.effort, thinkingLevel
	ThinkingImplicit                      // chat, responses: reasoning_effort
)

// Capabilities are what a model on its provider can do.
type Capabilities struct {
	StructuredOutputs bool
	Thinking          ThinkingStyle
	ImagesIn          bool
	FilesIn           bool
	AudioIn           bool
	// JSONSchema: gemini models that take parametersJsonSchema and
	// responseJsonSchema (2.5 and later).
	JSONSchema bool
	// SystemTurns: messages models that take role system inside messages.
	SystemTurns bool
	// Sampling: temperature, top_p and top_k are accepted.
	Sampling bool
	// Prefill: a final assistant turn may be continued.
	Prefill bool
}

// SignatureCache remembers what a client's shape cannot carry: the thought signature of
// a tool call, by call id. Implementations are bounded and safe for concurrent
// use.
type SignatureCache interface {
	Remember(callID, signature string)
	Recall(callID string) (signature string, ok bool)
}

// Env is what decoders, encoders, parsers and emitters need from outside: time
// and randomness are given, never made inside. One Env serves many requests.
type Env struct {
	Now func() time.Time
	// ID makes a fresh identifier body (no prefix) that is safe in every shape:
	// letters and digits only, at least 128 bits.
	ID         func() string
	Sealer     *Sealer
	Signatures SignatureCache // never nil
	// Memory bounds what requests take beyond their bodies; nil: nothing does.
	Memory *memory.Budget
}

// PromptText is the text of one of Request.Prompts, or false if it is a list of
// token ids.
func PromptText(prompt []byte) (string, bool) {
	var text string
	if json.Unmarshal(prompt, &text) != nil {
		return "", false
	}
	return text, true
}
