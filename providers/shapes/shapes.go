// Package shapes says what a shape must be able to do. Each package below it
// knows exactly one shape and implements Shape; a sixth shape is one more
// package and one line in shapes/registry. No package knows two.
package shapes

import (
	"net/http"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// Shape is everything the gateway knows of one API shape: how its clients ask
// and are answered, and how its upstreams are asked and answer. Values are
// stateless and safe for concurrent use; state of one request lives in the
// Emitter, Parser or Tap made for it.
type Shape interface {
	Name() dialogue.Shape

	// Check looks at a client's request without building the neutral form and
	// returns what routing needs, or the first broken rule of the documents as
	// a *dialogue.Error (400). It is all the untouched lane ever does to a
	// request, so it is cheap. body is valid JSON without duplicate names, unless
	// the shape is a SyntaxChecker.
	Check(body []byte, in Inbound) (Head, error)

	// Names are the member names that the shape reads in requests. body has none that
	// only folds to one of them.
	Names() *fields.Names

	// Decode builds the neutral form of a request that Check has passed.
	// What only this shape can say goes to Extra; errors are *dialogue.Error.
	Decode(body []byte, in Inbound, env *dialogue.Env) (*dialogue.Request, error)

	// Encode writes req for an upstream of this shape. What the shape cannot
	// say is recorded in rep or refused with a *dialogue.Error. Structured
	// output is decided here, with providers/schema.
	Encode(req *dialogue.Request, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) (Call, error)

	// Patch prepares a client's own bytes for an upstream of this shape: model,
	// include_usage, structured-output degradation, removal of carriers this
	// gateway sealed. Everything else stays byte for byte, and body itself is
	// not written to.
	Patch(body []byte, in Inbound, head Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) (Call, error)

	// NewEmitter writes events to the client that made req.
	NewEmitter(req *dialogue.Request, mode Mode, env *dialogue.Env) Emitter
	// NewParser reads an upstream's reply to a Call made by Encode, which asked
	// for this many choices; 0 means one.
	NewParser(choices int, env *dialogue.Env) Parser
	// NewTap watches an upstream's reply to a Call made by Patch.
	NewTap(o TapOptions, env *dialogue.Env) Tap

	// DecodeError reads an upstream's refusal (status >= 400). The status is
	// the upstream's; what the client gets to see of it is decided by the
	// caller. A body that is not JSON or too long gives a fixed message.
	DecodeError(status int, header http.Header, body []byte) *dialogue.Error
	// Envelope is the body of an error reply to a client of this shape.
	Envelope(err *dialogue.Error) []byte

	// Authorize sets the header this shape's upstreams want a key in.
	Authorize(h http.Header, key string)
	// MaxChoices is how many choices one upstream call can be asked for.
	MaxChoices() int
	// Heartbeat is what may be sent while the upstream is silent, at any place
	// between two events, in the given mode; nil: nothing may.
	Heartbeat(mode Mode) []byte
}

// SyntaxChecker is a Shape whose Check looks at every byte of the body on its
// one way through it, and so refuses what is not valid JSON (with whatever
// error): its caller need not look for that beforehand, and only has to find
// out what to say when Check refuses.
type SyntaxChecker interface{ ChecksSyntax() }

// Mode says how a reply is written to the client.
type Mode uint8

// Modes of a reply.
const (
	Whole  Mode = iota // one JSON document, written at End
	Stream             // server-sent events
	Array              // gemini without alt=sse: one JSON array, element by element
)

// Inbound is what a request says outside its body.
type Inbound struct {
	Path   string // the URL's path, decoded
	Model  string // gemini: from the path; otherwise ""
	Stream bool   // gemini: streamGenerateContent
	Array  bool   // gemini: streamed without alt=sse
	Header http.Header
	// SystemTurns: the model's catalogue entry takes a system role inside
	// messages (decisions.md "Text shapes"). Clients cannot say so themselves.
	SystemTurns bool
}

// Head is what Check reads from a request for routing, limits and lifecycle.
type Head struct {
	Model        string
	Stream       bool
	IncludeUsage bool  // the client itself asked for a usage chunk
	MaxTokens    int64 // -1: not given
	N            int   // choices asked for, at least 1
	ServiceTier  string
	Prompts      int // completions: the prompts of a list; 0 stands for one
	// Answers is how many answers the provider makes, if that is more than N: for each of
	// several prompts, and of best_of.
	Answers int
	// Structured: the request asks for JSON or a schema.
	Structured bool
	// Plain: Check has seen that Patch has nothing to do but to rename the model
	// and to ask for usage, so that it need not look. false is always safe.
	Plain bool

	// Responses only.
	PreviousResponseID string
	Conversation       bool
	Background         bool
	Store              bool // responses: default true; chat: default false
}

// Choices is how many choices a reply to the request has.
func (h *Head) Choices() int { return max(h.N, 1) * max(h.Prompts, 1) }

// Call is an upstream request in the making.
type Call struct {
	Path   string // below the provider's base_url: "/chat/completions"
	Query  string // without "?"
	Header http.Header
	Body   []byte
	Stream bool // the reply will be server-sent events
	// Owner is whose memory a large reply takes. The caller of the upstream sets it.
	Owner string
}

// Emitter writes the events of one reply in its client's shape. Emit appends to
// dst whatever the client is to read now, framing included, and returns it. A
// Stream or Array emitter writes as it goes, and ends with exactly one legal
// terminal event on End or Error; a Whole emitter writes one document at End
// and nothing on Error (the door sends the envelope instead). After End or
// Error it writes nothing more. ev is only valid during the call.
type Emitter interface {
	Emit(dst []byte, ev *dialogue.Event) []byte
}

// Parser turns one upstream reply into events, well formed in the sense of
// dialogue.EventKind whatever the upstream sends: a reply that stops early or
// is not of the shape ends in EventError. The *Event passed to emit is reused.
// After End or Error it emits nothing more. data is only valid during the call.
type Parser interface {
	// Event takes one server-sent event that has passed fields.CheckEvent. name is "" if
	// there was no event field.
	Event(name string, data []byte, emit func(*dialogue.Event))
	// Body takes a whole JSON reply.
	Body(body []byte, emit func(*dialogue.Event))
	// EOF says that a streamed body ended cleanly.
	EOF(emit func(*dialogue.Event))
	// Answered reports whether every choice has said why it ended. From then on
	// only usage, an error and the end may follow: the parser ignores whatever else
	// comes, and EOF ends the reply well.
	Answered() bool
	// Done reports whether End or Error was emitted.
	Done() bool
}

// TapOptions configure a Tap.
type TapOptions struct {
	// Model, if not "", replaces the upstream's model name in what the client
	// reads: an alias was used.
	Model string
	// HideUsage: the client did not ask for the usage chunk that Patch asked for.
	HideUsage bool
	Stream    bool
	Array     bool
	// Choices is how many the request asks for; 0 means one.
	Choices int
}

// Verdict is what becomes of an event on the untouched lane.
type Verdict uint8

// Verdicts of a Tap.
const (
	Forward Verdict = iota // as the bytes arrived
	Replace                // with the returned data instead
	Drop
	Failed // it is an error event: see Tap.Err; not forwarded as it is
)

// Tap watches a reply that passes through untouched: it learns usage and how
// the reply ends, and never builds more than it needs for that.
type Tap interface {
	// Event looks at one event that has passed fields.CheckEvent. content reports whether it carries any part of
	// the answer: until the first such event a failure can still be retried.
	Event(name string, data []byte) (replaced []byte, v Verdict, content bool)
	// Body looks at a whole reply and returns what the client gets (body
	// itself unless the model name is replaced), or an error if it is not one.
	Body(body []byte) ([]byte, *dialogue.Error)
	// Err is set once Event has returned Failed.
	Err() *dialogue.Error
	// Answered is Parser.Answered. What a choice says is dropped from then on.
	Answered() bool
	// Done reports whether the terminal event has passed; what follows is dropped.
	Done() bool
	// EOF says that the body ended cleanly. It returns bytes still owed to the
	// client (a missing [DONE]), or an error if the reply was not finished.
	EOF() ([]byte, *dialogue.Error)
	// Fail appends the terminal error event that fits what has been forwarded.
	Fail(dst []byte, err *dialogue.Error) []byte
	// Usage and Reason are what has been learnt so far.
	Usage() dialogue.Usage
	Reason() dialogue.Reason
}

// AppendEvent appends a server-sent event. name "" leaves the event line out.
func AppendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}
