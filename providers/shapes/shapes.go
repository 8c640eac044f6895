package shapes

import (
	"errors"
	"fmt"
	"net/http"

	"stagedoor/providers/dialogue"
)

// Shape is one API shape. Its parts keep no state and are safe for concurrent use. The state of
// one request is in the Emitter, Parser or Tap that is made for it.
type Shape struct {
	Descriptor
	Inbound
	Outbound
	Passthrough
	// Counter is nil if clients of the shape cannot have tokens counted.
	Counter Counter
}

// Inbound reads the requests of a shape's clients and writes their replies.
type Inbound interface {
	// Check examines a request without building the neutral form. It returns what routing needs,
	// or a *dialogue.Error (400) for the first rule of the documents that the request breaks. A
	// request that passes through unchanged is only checked, so Check is cheap. body is valid
	// JSON without duplicate names, unless the shape is a SyntaxChecker. body has no member name
	// that only folds to one of Descriptor.Members.
	Check(body []byte, in Params) (Head, error)

	// Decode builds the neutral form of a request that Check has accepted. Fields that only this
	// shape has go to Extra. Errors are *dialogue.Error.
	Decode(body []byte, in Params, env *dialogue.Env) (*dialogue.Request, error)

	// NewEmitter returns the writer of the reply to req.
	NewEmitter(req *dialogue.Request, mode Mode, env *dialogue.Env) Emitter

	// Envelope returns the body of an error reply.
	Envelope(err *dialogue.Error) []byte

	// Heartbeat returns the bytes that may be sent between two events while the upstream is
	// silent, or nil if nothing may be sent in this mode.
	Heartbeat(mode Mode) []byte
}

// Outbound writes requests for a shape's upstreams and reads their replies.
type Outbound interface {
	// Encode writes req for an upstream of this shape. What the shape cannot express is recorded
	// in rep or refused with a *dialogue.Error. Encode decides about structured output, with
	// providers/schema.
	Encode(req *dialogue.Request, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) (Call, error)

	// NewParser returns the reader of the reply to a Call that Encode made for this many
	// choices. 0 means one.
	NewParser(choices int, env *dialogue.Env) Parser

	// DecodeError reads an upstream's refusal (status >= 400). The status is the upstream's; the
	// caller decides what the client gets to see. A body that is not JSON or is too long gives a
	// fixed message.
	DecodeError(status int, header http.Header, body []byte) *dialogue.Error

	// Authorize sets the header in which upstreams of this shape expect a key.
	Authorize(h http.Header, key string)

	// MaxChoices returns the most choices that one call can ask for (n of chat, candidateCount of
	// gemini). A request for more is sent as several calls, whose replies actors/text joins.
	MaxChoices() int
}

// Passthrough sends a client's own bytes to an upstream of the client's shape and returns the
// upstream's own bytes, with as few changes as possible.
type Passthrough interface {
	// Patch prepares a client's body: model, include_usage, degradation of structured output,
	// removal of values that this gateway sealed. All other bytes stay, and body itself is not
	// written to.
	Patch(body []byte, in Params, head Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) (Call, error)

	// NewTap returns a watcher of the reply to a Call that Patch made.
	NewTap(o TapOptions, env *dialogue.Env) Tap
}

// Summarizer is the Emitter of the reply to a request for a summary (dialogue.Request.Compaction). Such a reply without
// a summary is a failure, because the client would put nothing in the place of its conversation.
type Summarizer interface {
	// Summary returns the summary that the events had, or "".
	Summary() string
}

// Compacting is implemented by the Inbound of a shape whose vendors compact conversations.
type Compacting interface {
	// Compactions returns the items of a request, or of a piece of a reply, that stand for a compacted conversation,
	// each as the text that only the vendor can read that made it, the newest one last. Items that this gateway made
	// are not among them.
	Compactions(data []byte) []string
}

// Counter counts the tokens of requests that are not made.
type Counter interface {
	// CountedRequest returns the request whose tokens the body of a counting request asks for.
	CountedRequest(body []byte) ([]byte, error)
	// CountCall turns the Call of a generation request into one that counts. ok is false if
	// upstreams of the shape cannot be asked.
	CountCall(c Call) (counting Call, ok bool, err error)
	// IsCount reports whether an upstream's reply to such a Call has a number, so that it can be
	// sent to the client.
	IsCount(reply []byte) bool
	// CountReply writes the reply to a counting request.
	CountReply(tokens int64) []byte
}

// SyntaxChecker is an Inbound whose Check reads every byte of the body and so refuses, with any
// error, what is not valid JSON. Its caller does not need to check the syntax beforehand, and
// only finds out what to report when Check refuses.
type SyntaxChecker interface{ ChecksSyntax() }

// Check returns an error that names the first mistake in a list of shapes. The gateway does not
// start with such a list, because a route without a scope would be open to every key.
func Check(known []*Shape) error {
	names := make(map[dialogue.Shape]bool, len(known))
	for _, s := range known {
		switch {
		case s.Name == "":
			return errors.New("a shape has no name")
		case names[s.Name]:
			return fmt.Errorf("shape %s: the name is used twice", s.Name)
		case s.Inbound == nil || s.Outbound == nil || s.Passthrough == nil:
			return fmt.Errorf("shape %s: it lacks Inbound, Outbound or Passthrough", s.Name)
		case len(s.Routes) == 0:
			return fmt.Errorf("shape %s: it has no routes", s.Name)
		case s.Scope == "":
			return fmt.Errorf("shape %s: its routes have no scope", s.Name)
		case s.Members == nil:
			return fmt.Errorf("shape %s: it does not list the members it reads", s.Name)
		case s.Telemetry.Operation == "" || s.Telemetry.Vendor == "":
			return fmt.Errorf("shape %s: its calls have no names for telemetry", s.Name)
		}
		names[s.Name] = true
		for _, route := range s.Routes {
			if route.Task == NoTask && s.Read == nil || route.Task == Count && s.Counter == nil {
				return fmt.Errorf("shape %s: nothing handles the route %s", s.Name, route.Pattern)
			}
		}
	}
	return nil
}

// Mode says how a reply is written to the client.
type Mode uint8

// Modes of a reply.
const (
	Whole  Mode = iota // one JSON document, written at End
	Stream             // server-sent events
	Array              // one JSON array, element by element
)

// Params hold the parts of a request outside its body.
type Params struct {
	Path string // the URL's path, decoded
	// Model, Stream and Array are set by shapes that have them in the path and query.
	Model  string
	Stream bool
	Array  bool // streamed as a JSON array instead of server-sent events
	Header http.Header
	// NoInput permits a request without input, because nothing is generated for it.
	NoInput bool
}

// Head holds the fields that Check reads from a request for routing, limits and lifecycle.
type Head struct {
	Model        string
	Stream       bool
	IncludeUsage bool  // the client itself asked for a usage chunk
	MaxTokens    int64 // -1: not given
	N            int   // choices asked for, at least 1
	ServiceTier  string
	Prompts      int // completions: the prompts of a list; 0 stands for one
	// Answers counts the answers that the provider makes, if that is more than N: for each of
	// several prompts, and of best_of.
	Answers int
	// Truncate is set if the oldest turns may be left out of a prompt that does not fit.
	Truncate bool
	// Compacts is set if the client lets the provider replace old turns while it answers (context_management).
	Compacts bool
	// Unknown is the error for a content part of an unknown type, or nil. The request can be passed through, but not
	// translated.
	Unknown *dialogue.Error
	// Structured is set if the request asks for JSON or a schema.
	Structured bool
	// Plain is set if Patch has nothing to do but to rename the model and to ask for usage. It saves Patch a search of
	// the body, so false is always safe.
	Plain bool
	// Tuned is set if a parameter of sampling, thinking or caching is given that some models refuse.
	Tuned bool
	// Compaction says that the client asks for a summary of the conversation.
	Compaction dialogue.Compaction
	// SystemTurns is set if a turn of a messages conversation has the role system, which some
	// models refuse.
	SystemTurns bool

	// Responses only.
	PreviousResponseID string
	Conversation       string
	Background         bool
	Store              bool // responses: default true; chat: default false
}

// Choices returns the number of choices in a reply to the request.
func (h *Head) Choices() int { return max(h.N, 1) * max(h.Prompts, 1) }

// Call is an upstream request in the making.
type Call struct {
	Path string // below the provider's base_url: "/chat/completions"
	// Query holds the parameters of the URL, encoded and without "?". Only gemini uses it
	// ("alt=sse").
	Query  string
	Header http.Header
	Body   []byte
	Stream bool // the reply will be server-sent events
	// Owner is charged with the memory of a large reply. The caller of the upstream sets it.
	Owner string
}

// Emitter writes the events of one reply in its client's shape. Emit appends to dst what the client
// gets now, framing included, and returns it. A Stream or Array emitter writes with every event and
// ends with exactly one legal terminal event on End or Error. A Whole emitter writes one document at
// End and nothing on Error, because the handler sends the envelope instead. After End or Error an
// emitter writes nothing more. ev is only valid during the call.
type Emitter interface {
	Emit(dst []byte, ev *dialogue.Event) []byte
}

// Parser turns one upstream reply into events. They keep the grammar of dialogue.EventKind whatever
// the upstream sends: a reply that stops early or is not of the shape ends in EventError. The *Event
// passed to emit is reused. After End or Error a Parser emits nothing more. data is only valid
// during the call.
type Parser interface {
	// Event reads one server-sent event that has passed fields.CheckEvent. name is "" if the event
	// has none.
	Event(name string, data []byte, emit func(*dialogue.Event))
	// Body reads a whole JSON reply.
	Body(body []byte, emit func(*dialogue.Event))
	// EOF is called when a streamed body has ended cleanly.
	EOF(emit func(*dialogue.Event))
	// Answered reports whether every choice has given the reason for its end. Only usage, an error
	// and the end can follow: the parser ignores anything else, and EOF ends the reply well.
	Answered() bool
	// Done reports whether End or Error was emitted.
	Done() bool
}

// TapOptions configure a Tap.
type TapOptions struct {
	// Model, if not "", replaces the upstream's name of the model in the reply, because the client
	// used an alias.
	Model string
	// HideUsage is set if the client did not ask for the usage chunk that Patch asked for.
	HideUsage bool
	Stream    bool
	// Choices counts those that the request asks for; 0 means one.
	Choices int
	// KeepReasoning is set if the upstream wants its reasoning back (dialogue.ReasoningRequired). The Tap remembers it
	// for clients that drop it.
	KeepReasoning bool
	// Compaction repeats Head.Compaction. Unless it is NoCompaction, a reply without a compacted conversation fails.
	Compaction dialogue.Compaction
}

// Verdict says what happens to an event of a reply that passes through unchanged. The attempt loop
// of actors/text obeys it before the event reaches the client.
type Verdict uint8

// Verdicts of a Tap.
const (
	Forward Verdict = iota // send the bytes as they arrived
	Replace                // send the returned data instead
	// The event is not sent, because the client did not ask for it or the reply has ended.
	Drop
	Failed // it is an error event: see Tap.Err; not forwarded as it is
)

// Tap watches a reply that passes through unchanged: it learns usage and how the reply ends, and
// builds no more than it needs for that. TapOf makes one.
type Tap struct {
	Watcher
	Learned
}

// TapOf returns a Tap of which t is both the Watcher and the Learned.
func TapOf[T interface {
	Watcher
	Learned
}](t T) Tap {
	return Tap{t, t}
}

// Watcher is the part of a Tap that sees the reply.
type Watcher interface {
	// Event examines one event that has passed fields.CheckEvent. content reports whether it
	// carries any part of the answer: until the first such event a failure can still be retried.
	Event(name string, data []byte) (replaced []byte, v Verdict, content bool)
	// Body examines a whole reply and returns what the client gets, which is body itself unless
	// the model's name is replaced. It returns an error if body is not a reply.
	Body(body []byte) ([]byte, *dialogue.Error)
	// EOF is called when the body ended cleanly. It returns bytes that the client must still get
	// (a missing [DONE]), or an error if the reply was not finished.
	EOF() ([]byte, *dialogue.Error)
	// Fail appends the terminal error event that fits what has been forwarded.
	Fail(dst []byte, err *dialogue.Error) []byte
}

// Learned reports the state of the reply that a Tap watches.
type Learned interface {
	// Err returns the failure after Event has returned Failed.
	Err() *dialogue.Error
	// Answered reports what Parser.Answered does. Later pieces of an answer are dropped.
	Answered() bool
	// Done reports whether the terminal event has passed. Whatever follows is dropped.
	Done() bool
	// Usage returns the counts that the upstream has reported so far. They are charged, so a Tap
	// returns dialogue.NoUsage rather than zeros as long as nothing was reported.
	Usage() dialogue.Usage
	// Reason returns why the reply ended, for spans and the request log. Of several choices, the one
	// that ended last counts.
	Reason() dialogue.Reason
}

// AppendEvent appends a server-sent event. name "" leaves the event line out.
func AppendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}
