package dialogue

import "strings"

// Traits say how a shape uses the notions that shapes have in common. An encoder reads the
// traits of the client's shape from Request.Traits, so that it does not need to know which
// shape that is. The zero value describes a shape of which nothing special is known: its
// strict is not relied upon, its metadata is recorded as lost, and nothing of it is stored.
type Traits struct {
	// StrictIsNative is set if strict means that a schema keeps the rules of
	// schema.SupportsStrict. A strict schema that breaks them is then the client's mistake, and
	// is sent as it is.
	StrictIsNative bool
	// BindsSchema is set if a schema always binds the answer, without the word strict.
	BindsSchema bool
	// DropsBounds is set if clients were promised that the bounds of a schema (minimum, pattern)
	// are removed, whichever upstream gets the request.
	DropsBounds bool
	// KeepsMetadata is set if metadata, prompt_cache_key and service_tier have the meaning and
	// the values that they have in the shapes of the same vendor.
	KeepsMetadata bool
	// MaxEffort is set if the effort "max" is sent as it is. Of other shapes it becomes the
	// highest effort that every model of an upstream knows.
	MaxEffort bool
	// ShowsThoughts is set if a client that asks for thinking gets to see it, because the shape
	// has no parameter for that.
	ShowsThoughts bool
	// ShowsImages is set if replies of the shape have a place for pictures. Other clients are informed of the loss.
	ShowsImages bool
	// FileIDs names the service whose file ids the shape carries. An id is valid at upstreams
	// whose shape has the same value.
	FileIDs string
	// ReplaysParts is set if parts that came in the shape are sent to its upstreams as the
	// client wrote them, so that members that the neutral form does not hold are not lost.
	ReplaysParts bool
	// CacheHints is set if the shape has cache_control.
	CacheHints bool
	// StoresReplies is set if the gateway stores replies of the shape, continues from them and
	// makes them in the background.
	StoresReplies bool
	// SendsMaximum is set if an upstream of the shape always gets a maximum of output tokens: the target's own one where
	// the client gave none.
	SendsMaximum bool
	// Overloaded529 is set if clients know the status 529. Others get 503.
	Overloaded529 bool
	// NamesEvents is set if clients read the type of an event in a stream from its name. Some servers send it in the
	// data alone.
	NamesEvents bool
	// KeyInQuery is set if a client may send its API key as the query parameter key.
	KeyInQuery bool
	// Fields has the shape's names of fields about which an encoder for another shape may return an error, by the names
	// that encoders use: Conversation, modalities, n and tool_choice. Fields that are not in it have the same names.
	Fields map[string]string
	// LongPrompt has the words in which clients of the shape expect to read that a prompt does not fit the model's
	// context window. Programs look for them, because not every vendor has a code for it.
	LongPrompt *LongPrompt
	// Proof says how an upstream vouches for a thought, so that it accepts the thought later.
	Proof Proof
	// Moderation is the form of the error for a client whose request a provider's moderation refused. If it is nil, the
	// client gets the provider's code.
	Moderation *Moderation
}

// Moderation is the form in which clients of a shape learn that moderation refused their request.
type Moderation struct {
	Status int
	Type   string // replaces the provider's type where its status was another one
	Code   string // "" keeps the provider's code
	// Details says that clients of the shape know moderation_details.
	Details bool
}

// Apply gives e, which is the refusal of a provider, this form.
func (m *Moderation) Apply(e *Error) {
	if e.Status != m.Status {
		e.Status, e.Type = m.Status, m.Type
	}
	if m.Code != "" {
		e.Code = m.Code
	}
	if !m.Details {
		e.ModerationDetails = nil
	}
}

// LongPrompt has a vendor's words about a prompt that does not fit the context window.
type LongPrompt struct {
	// Known lists pieces of the vendor's own messages. A message that has one of them stays as it is.
	Known []string
	// Phrase stands before a message of another vendor that gives no numbers.
	Phrase string
	// WithSizes is a format of the tokens of the prompt and of the most that the model takes.
	WithSizes string
	// WithAnswer is a format of the tokens of the prompt, of the answer that was asked for, and of the most that the
	// model takes, for a prompt that only does not fit together with its answer. It may be "".
	WithAnswer string
}

// Proof is the form in which an upstream vouches for its own thoughts.
type Proof uint8

// Forms of proof.
const (
	NoProof        Proof = iota
	SignatureProof       // Thinking.Signature
	EncryptedProof       // Thinking.Encrypted, under Thinking.ItemID
)

// Conversation is the field that encoders name in an error about a message or what is in it.
const Conversation = "messages"

// NameField returns err with the shape's own name of the field that it is about, for a client of the shape.
func (t *Traits) NameField(err *Error) *Error {
	name, ok := t.Fields[err.Param]
	if !ok {
		return err
	}
	named := *err
	named.Param, named.Message = name, name+strings.TrimPrefix(err.Message, err.Param)
	return &named
}
