package dialogue

import (
	"encoding/json"
	"strconv"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"

	"stagedoor/providers/memory"
)

// Shape names an API shape. Each shape has its name as a constant in its own folder, and no code
// outside it compares names: Traits tell what a shape can do.
type Shape string

// Request is one request for text, without the spelling of any shape.
//
// A nil pointer and an empty json.Number or json.RawMessage mean that the client did not give
// the value. Zeros that the client gave are kept.
type Request struct {
	Inbound Shape  // of the client: the reply is written in it
	Traits  Traits // of Inbound
	Model   string // the name in the client's request
	Stream  bool

	// IncludeUsage is stream_options.include_usage of chat and completions. The decoders of
	// the other shapes set it, because those always report usage.
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
	// CacheRetention and CacheOptions are prompt_cache_retention and prompt_cache_options, which the shapes with
	// Traits.KeepsMetadata share.
	CacheRetention string
	CacheOptions   json.RawMessage
	Verbosity      string

	Store *bool
	// Truncation is "auto" if the oldest turns may be left out of a prompt that does not fit. actors/text does that, so
	// it is no loss where the target cannot.
	Truncation         string
	PreviousResponseID string
	// ReplyID is the id that a responses reply must have, because the client already got it
	// (background) or the store uses it as a key. If it is "", the emitter makes one.
	ReplyID   string
	Include   []string // responses: include
	WebSearch bool     // set by web_search_options or a web search tool
	// SearchOptions is web_search_options as the client wrote it. In the other shapes the
	// limits of a search are members of its tool.
	SearchOptions json.RawMessage
	Modalities    []string

	// LegacyFunctions is set if the client used functions or function_call. Calls are then
	// written as function_call, with finish_reason function_call.
	LegacyFunctions bool

	// Completions only.
	Prompts [][]byte // raw JSON of each prompt: a string or an array of tokens
	Echo    bool
	Suffix  string
	BestOf  int

	// Body is the JSON that the client sent. An encoder or emitter of the same shape copies
	// from it what the neutral form does not hold.
	Body []byte

	// Compaction is set if the client asks for a summary of the conversation, for which Turns ask the model already.
	Compaction Compaction

	// ContextEdits are the edits of the conversation that the client asks for and the gateway can make, and
	// OnlyContextEdits is set if it asks for no others.
	ContextEdits     []ContextEdit
	OnlyContextEdits bool

	// Renamed maps names of tools as they were sent upstream to the client's names, where the
	// target would refuse those. Encoders fill it. actors/text restores Call.Name in every
	// Open event, so that parsers do not need it.
	Renamed map[string]string

	// Enforced lists what the gateway does to the reply because the target cannot be asked for it.
	// Encoders fill it.
	Enforced Enforced

	// Lost lists what the decoder had to drop. It is
	// reported together with the losses of the encoder.
	Lost []string

	// Ignored lists the members below the top level that the neutral form does not hold
	// ("messages.content.context"). See Report.LoseUntranslated.
	Ignored []string

	// Extra holds the top-level fields that the neutral form does not have, unknown ones
	// included. An encoder of the same shape sends them, any other records them as lost.
	Extra []Field

	// Betas are the values of the client's header without which its vendor refuses some of Extra.
	// Only an encoder of the same shape sends them.
	Betas []string
}

// Compaction is the form in which a client gets a summary of its conversation in place of an answer.
type Compaction uint8

// Forms of a summary.
const (
	NoCompaction     Compaction = iota // the client wants an answer
	CompactionItem                     // an item of a response
	CompactionObject                   // an object of its own, which is never streamed or stored
)

// EncodedSize returns about how many bytes r takes in another shape, for the first size of an
// encoder's buffer. A buffer that must grow is there twice for a moment.
func (r *Request) EncodedSize() int {
	const besides, perTurn = 1 << 10, 32 // members of the request, and of a turn
	return besides + len(r.Body) + perTurn*len(r.Turns)
}

// NothingFor returns the 400 for a conversation that has only items of another vendor's tools, of which an upstream of
// the shape to would get nothing, else nil. Such items are lost where something else is left to answer.
func (r *Request) NothingFor(to Shape) *Error {
	kind := ""
	for i := range r.Turns {
		for j := range r.Turns[i].Parts {
			p := &r.Turns[i].Parts[j]
			if p.Kind != ServerPart || p.Origin == to {
				return nil
			}
			if kind == "" {
				kind = view(p.Opaque).Get("type").String()
			}
		}
	}
	if kind == "" || len(r.Prompts) > 0 {
		return nil
	}
	kind = strconv.QuoteToASCII(ShortName(kind))
	return UnsupportedContent("has only items that this model cannot read, of type " + kind)
}

// Field is a named raw JSON value.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Items of Include that have an equivalent in every shape.
const (
	IncludeEncrypted = "reasoning.encrypted_content"
	IncludeLogProbs  = "message.output_text.logprobs"
)

// Role names the speaker of a turn. Tool results belong to the user.
type Role string

// The two roles a turn can have.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Turn is one message, with its parts in the order of the client. Decoders do not merge or
// split turns; the encoder of the target does where its shape requires it.
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

// Part is a piece of a turn. Kind says which of the other fields are set.
type Part struct {
	Kind PartKind
	Text string

	Media    *Media
	Call     *Call
	Result   *Result
	Thinking *Thinking

	CacheHint json.RawMessage // cache_control, only for messages
	Citations json.RawMessage // the origin's own citations or annotations

	// Opaque is the part as it was written in the shape Origin. An encoder of that shape may
	// send it unchanged; any other ignores it.
	Origin Shape
	Opaque json.RawMessage
}

// MediaKind says what a media part contains.
type MediaKind string

// Kinds of media.
const (
	Image MediaKind = "image"
	File  MediaKind = "file" // a document: PDF, plain text, ...
	Audio MediaKind = "audio"
	Video MediaKind = "video"
)

// Media is an image, a document, audio or video, given as a value, an address or an id.
// Exactly one of Base64, URL, FileID and Text is set.
type Media struct {
	Kind   MediaKind
	MIME   string // "image/png"; may be empty with URL or FileID
	Base64 string // standard base64, passed on without decoding
	URL    string
	FileID string // valid only at the service FileIDs
	// FileIDs is Traits.FileIDs of the shape that FileID came in.
	FileIDs string
	Text    string // a plain text document
	Name    string // file name or title
	Detail  string // low, high, auto
}

// Call is a tool call by the model.
type Call struct {
	ID        string
	Name      string
	Namespace string // responses: the namespace of the tool
	// Args is the JSON text of the arguments as it arrived; "" means {}. The Args of a custom
	// tool are its free-form input.
	Args   string
	Custom bool
	// Signature is Gemini's thoughtSignature of this call.
	Signature string
}

// Result is the result of a Call.
type Result struct {
	CallID  string
	Name    string // "": the encoder finds it by CallID
	Parts   []Part // text and media
	IsError bool
	Custom  bool // the call was of a custom tool
	// Object is the JSON object that a gemini client sent as the response.
	Object json.RawMessage
}

// Thinking is a piece of the model's reasoning.
type Thinking struct {
	Text string
	// Signature proves to Origin that the text is its own: a messages signature, or Gemini's
	// thoughtSignature of visible or empty text.
	Signature string
	// Redacted is the data of a redacted_thinking block.
	Redacted string
	// ItemID and Encrypted belong to a responses reasoning item.
	ItemID    string
	Encrypted string
	// Origin is the shape of the upstream that produced it, or "" if that is unknown. Only an
	// encoder of Origin may send Signature, Redacted or Encrypted.
	Origin Shape
	// TextAfter is set in a sealed value that a later part carries. It is how many bytes of text stood between the
	// thought and that part.
	TextAfter int `json:",omitempty"`
	// OfText is set in a sealed value if Signature is that of the visible text, for a shape whose clients keep the
	// text and the proofs apart.
	OfText bool `json:",omitempty"`
}

// ToolKind says whether the client or the provider runs a tool, and in which form its input is.
type ToolKind string

// Kinds of tools.
const (
	FunctionTool  ToolKind = "function"
	CustomTool    ToolKind = "custom"     // free-form text input
	WebSearchTool ToolKind = "web_search" // run by the provider; every shape but chat has one
	OpaqueTool    ToolKind = "opaque"     // run by the provider and known only in Origin; see Type
)

// Tool is a tool that the model may call.
type Tool struct {
	Kind        ToolKind
	Type        string // the vendor's word for a server tool: "code_execution_20250522"
	Name        string
	Namespace   string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments as given; nil: none
	// GeminiSchema is set if Schema is written in Gemini's OpenAPI subset (upper-case types,
	// nullable) and not in JSON Schema.
	GeminiSchema bool
	Strict       *bool
	Format       json.RawMessage // custom: {type: text} or a grammar
	CacheHint    json.RawMessage
	Origin       Shape
	Opaque       json.RawMessage
}

// QualifiedName returns the name under which an upstream without namespaces knows a tool: "crm__lookup". Every vendor
// allows the separator in names of tools.
func QualifiedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + NamespaceSeparator + name
}

// NamespaceSeparator stands between the namespace of a tool and its name.
const NamespaceSeparator = "__"

// ChoiceMode says whether the model may or must call tools.
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
	Opaque   json.RawMessage // a choice that only Origin has (hosted tools)
	Origin   Shape
}

// OutputMode is the form that the answer must have.
type OutputMode uint8

// Output modes.
const (
	OutputText   OutputMode = iota
	OutputJSON              // any JSON: json_object, application/json
	OutputSchema            // JSON that satisfies Schema
)

// Output is the form that a request requires of its answer.
type Output struct {
	Mode        OutputMode
	Name        string
	Description string
	Strict      *bool
	// Schema is nil if the client asked for a schema and gave none.
	Schema json.RawMessage
	// GeminiSchema is set if Schema is written in Gemini's OpenAPI subset.
	GeminiSchema bool
}

// Reasoning says how much the model should think and which part of that the client gets.
type Reasoning struct {
	Effort   string // none, minimal, low, medium, high, xhigh, max; "" not given
	Budget   *int64 // thinking tokens; nil: not given
	Adaptive bool   // the model decides
	Disabled bool
	// Include is set if the client asked for thoughts (includeThoughts, summary).
	Include bool
	Summary string // auto, concise, detailed
	// EncryptedContent is set if the client asked for reasoning.encrypted_content.
	EncryptedContent bool
}

// Target is the model that a request is sent to, as the catalogue describes it.
type Target struct {
	Provider string
	Shape    Shape
	Model    string // the upstream's name for it
	Caps     Capabilities
	// MaxOutputTokens replaces a missing max_tokens where the shape requires one. It is never
	// zero.
	MaxOutputTokens int64
	// NoSchema turns structured output off, because the upstream refused the schema in an
	// earlier attempt.
	NoSchema bool
	// OwnReasoning is set if only reasoning may be sent that this model is known to have given out,
	// because the upstream refused the proof of other reasoning in an earlier attempt.
	OwnReasoning bool
}

// ThinkingStyle says with which parameters a model is asked to think.
type ThinkingStyle uint8

// Styles of thinking control.
const (
	ThinkingNone     ThinkingStyle = iota // the model cannot think
	ThinkingBudget                        // budget_tokens, thinkingBudget
	ThinkingEffort                        // adaptive with output_config.effort, thinkingLevel
	ThinkingImplicit                      // chat, responses: reasoning_effort
)

// Capabilities says what a model can do at its provider.
type Capabilities struct {
	StructuredOutputs bool
	Thinking          ThinkingStyle
	ImagesIn          bool
	FilesIn           bool
	AudioIn           bool
	// ContextWindow is the most tokens of prompt and reply together, or 0 if it is not known.
	ContextWindow int64
	// JSONSchema is set for gemini models that take parametersJsonSchema and
	// responseJsonSchema (2.5 and later).
	JSONSchema bool
	// SystemTurns is set for messages models that take the role system inside messages.
	SystemTurns bool
	// Sampling is set if temperature, top_p and top_k are accepted.
	Sampling bool
	// SamplingAtRest is set if a model that lacks Sampling accepts them while it does not reason,
	// as OpenAI's models from GPT-5.1 on do, which reason only if a request asks for it.
	SamplingAtRest bool
	// OneSampling is set if temperature and top_p are refused together.
	OneSampling bool
	// Prefill is set if the model continues a final assistant turn.
	Prefill bool
	// NoForcedTools is set if the model refuses a choice of tools that it must follow.
	NoForcedTools bool
	// AlwaysThinks is set if thinking cannot be switched off.
	AlwaysThinks bool
	// NoBudgets is set if a model of ThinkingEffort refuses a budget.
	NoBudgets bool
	// MinBudget and MaxBudget bound the budget of a model of ThinkingBudget. 0 is unknown.
	MinBudget, MaxBudget int64
	// Levels has the words for the depth of thinking that a gemini model takes, separated by
	// spaces. "" stands for LOW, MEDIUM and HIGH.
	Levels string
	// CallSignatures is set for gemini models that want a thought signature on the first call of
	// each step.
	CallSignatures bool
	// MediaResults is set for gemini models that take media inside the result of a call.
	MediaResults bool
	// ReasoningContent says what a chat model does with reasoning_content in the history.
	ReasoningContent ReasoningContent
	// NoTools is set if the model cannot call tools.
	NoTools bool
	// NoCacheKey is set for chat models whose vendors refuse prompt_cache_key and the members that go with it.
	NoCacheKey bool
	// WebSearch is set for chat models that search the web themselves (web_search_options). Others refuse the member.
	WebSearch bool
}

// EffortOff returns the effort with which a model of the chat or responses shape does not think, or "" if it refuses
// that word. Those that accept it are the ones that do not think unless they are asked to.
func (c *Capabilities) EffortOff() string {
	if c.SamplingAtRest {
		return "none"
	}
	return ""
}

// ReasoningContent says what a chat model does with reasoning_content in the history.
type ReasoningContent uint8

// Uses of reasoning_content.
const (
	ReasoningTaken    ReasoningContent = iota // it may be there
	ReasoningRequired                         // every message with calls must have it, even if empty
	ReasoningRefused                          // a request that has it is refused
)

// SignatureCache keeps the thought signatures of an owner's tool calls by call id, for clients
// whose shape has no field for them. Implementations are bounded, keep no owner's signatures at
// the cost of another, and are safe for concurrent use.
type SignatureCache interface {
	Remember(owner, callID, signature string)
	Recall(owner, callID string) (signature string, ok bool)
}

// Env gives decoders, encoders, parsers and emitters time, randomness and memory, so that
// tests can replace them. One Env serves many requests of one owner.
type Env struct {
	Now func() time.Time
	// ID returns a new identifier without a prefix. It has only letters and digits, which are
	// safe in every shape, and at least 128 bits.
	ID         func() string
	Sealer     *Sealer
	Signatures SignatureCache // never nil
	Makers     Makers         // of compacted conversations; nil: only Signatures has them
	// Owner is the owner of the requests that the Env serves. Its signatures are kept apart
	// from those of other owners.
	Owner string
	// Memory bounds the memory that requests take beyond their bodies. Nil sets no bound.
	Memory memory.Pool
}

// ForOwner returns a copy of e that serves the requests of an owner.
func (e *Env) ForOwner(owner string) *Env {
	own := *e
	own.Owner = owner
	return &own
}

// RememberSignature keeps the thought signature of a call for its owner.
func (e *Env) RememberSignature(callID, signature string) {
	e.Signatures.Remember(e.Owner, callID, signature)
}

// RecallSignature returns the thought signature of a call if the owner has made the call and
// it has not been forgotten.
func (e *Env) RecallSignature(callID string) (signature string, ok bool) {
	return e.Signatures.Recall(e.Owner, callID)
}

// Reminder returns the text of a system message as a part of the user's turn. It is for upstreams
// that refuse a system role inside the conversation. The tags say to the model that it does not
// read the user's words (decisions.md, Text shapes).
func Reminder(text string) string {
	return "<system-reminder>\n" + text + "\n</system-reminder>"
}

// PromptText returns the text of one of Request.Prompts, or false if it is a list of token ids.
// A text without escapes is a part of prompt and not a copy.
func PromptText(prompt []byte) (string, bool) {
	v := view(prompt)
	return v.Str, v.Type == gjson.String
}

// view reads text, which is JSON, without copying it.
func view(text []byte) gjson.Result {
	return gjson.Parse(unsafe.String(unsafe.SliceData(text), len(text)))
}
