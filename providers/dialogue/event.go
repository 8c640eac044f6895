package dialogue

import (
	"encoding/json"
	"math"
)

// EventKind says which fields of an Event are set.
type EventKind uint8

// Kinds of reply events. A well-formed sequence is
//
//	Start (Open Delta* Close | Usage | Ping)* Finish+ Usage* End
//	... Error at any place instead of the rest
//
// Parsers guarantee it whatever the upstream sends; emitters rely on it:
// Start comes first and once; every Delta lies between the Open and Close of
// its (Choice, Part); there is at most one Finish per choice, after all parts
// of that choice are closed; exactly one of End and Error ends the sequence.
// Parts of one choice may overlap in time (parallel tool calls).
const (
	EventStart  EventKind = iota // ID, Model, Created
	EventOpen                    // Choice, Part, PartKind, Call (ID, Name, Custom), Thinking
	EventDelta                   // Choice, Part, Text (text, arguments, thinking or refusal), Citations, LogProbs
	EventClose                   // Choice, Part, Thinking (sealed), Signature
	EventUsage                   // Usage: cumulative; the last one counts, field by field
	EventFinish                  // Choice, Reason, StopSequence, Detail, ServiceTier
	EventPing                    // the upstream is alive
	EventEnd                     // the reply is complete
	EventError                   // Err: the reply failed
)

// Event is one step of a reply. Whole replies are decoded into the same
// sequence, so streamed and whole answers cannot differ.
type Event struct {
	Kind   EventKind
	Choice int
	Part   int // numbered by the parser, unique within the choice

	ID      string // Start: the upstream's id
	Model   string // Start: the model as the upstream names it
	Created int64  // Start: Unix seconds, 0 if the upstream reports none

	PartKind PartKind // Open: TextPart, ThinkingPart, RefusalPart, CallPart, MediaPart, ServerPart
	Call     *Call    // Open of a CallPart: ID, Name, Custom; Args stays empty, Deltas carry it
	// Media belongs to the Open of a MediaPart, whole, or of a ServerPart whose tool made a picture: clients of other
	// shapes than Origin get the picture.
	Media  *Media
	Opaque json.RawMessage
	Origin Shape

	Text      string
	Citations []Citation      // Delta: citations that belong to the text so far
	LogProbs  json.RawMessage // Delta: chat's logprobs.content array of these tokens

	// Thinking, on the Close of a ThinkingPart, carries the data that the client must send
	// back in the next turn: signature, redacted data or the encrypted item, with its
	// Origin. Text is not repeated in it.
	Thinking *Thinking
	// Signature, on the Close of a CallPart or TextPart, is Gemini's thoughtSignature.
	Signature string

	Usage *Usage

	Reason       Reason
	StopSequence string
	Detail       string // explanation of a refusal
	// ServiceTier, on a Finish, is the tier that served the reply, in a word of the chat and responses shapes, which
	// share them. It is "" if the upstream has other words or names none.
	ServiceTier string

	Err *Error
}

// Citation names a source of a piece of answer text, in a form that fits all shapes.
type Citation struct {
	URL, Title string
	// Start and End delimit the text it supports, in characters from the
	// beginning of the part. Both are zero if the upstream reports neither.
	Start, End int
	CitedText  string
	Opaque     json.RawMessage // the origin's own form
	Origin     Shape
}

// Reason says why a choice ended.
type Reason uint8

// Reasons of EventFinish. Each shape maps them to its own words.
const (
	ReasonStop Reason = iota
	ReasonStopSequence
	ReasonLength
	ReasonTool
	ReasonFilter
	ReasonPause
	ReasonContextWindow
	ReasonMalformedCall
	ReasonOther
)

// Usage counts tokens. InputTotal includes cached and cache-writing tokens,
// OutputTotal includes reasoning. A negative count is unknown.
type Usage struct {
	InputTotal   int64
	CacheRead    int64
	CacheWrite5m int64
	CacheWrite1h int64
	CacheWrite   int64 // total of cache writes, if only that is known
	OutputTotal  int64
	Reasoning    int64
	AudioIn      int64
	AudioOut     int64
	ImageIn      int64
	ImageOut     int64
	WebSearches  int64
	// LargestInput is the largest InputTotal of one call, if this is the sum of several. Otherwise it is 0. Prices may
	// depend on the size of a prompt, and each call has a prompt of its own.
	LargestInput int64
	// Estimated is set if the gateway counted because the upstream reported nothing.
	Estimated bool
}

// NoUsage is the Usage in which every count is unknown.
var NoUsage = Usage{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, false}

// NegativeCount stands for a count that an upstream reported below zero. It counts as unknown.
// The caller that charges for the reply reports that it saw one.
const NegativeCount = -2

// Merge replaces every count that is known in later. Upstreams repeat usage cumulatively.
func (u *Usage) Merge(later Usage) {
	take := func(have *int64, reported int64) {
		if reported >= 0 || reported == NegativeCount && *have < 0 {
			*have = reported
		}
	}
	take(&u.InputTotal, later.InputTotal)
	take(&u.CacheRead, later.CacheRead)
	take(&u.CacheWrite5m, later.CacheWrite5m)
	take(&u.CacheWrite1h, later.CacheWrite1h)
	take(&u.CacheWrite, later.CacheWrite)
	take(&u.OutputTotal, later.OutputTotal)
	take(&u.Reasoning, later.Reasoning)
	take(&u.AudioIn, later.AudioIn)
	take(&u.AudioOut, later.AudioOut)
	take(&u.ImageIn, later.ImageIn)
	take(&u.ImageOut, later.ImageOut)
	take(&u.WebSearches, later.WebSearches)
	u.LargestInput = max(u.LargestInput, later.LargestInput)
	u.Estimated = later.Estimated
}

// CountOrZero returns n, or 0 if n is unknown.
func CountOrZero(n int64) int64 { return max(n, 0) }

// Prompt returns the tokens of the largest prompt, or 0 if they are unknown.
func (u *Usage) Prompt() int64 {
	if u.LargestInput > 0 {
		return u.LargestInput
	}
	return max(u.InputTotal, 0)
}

// Add adds the usage of another call for the same reply. An unknown count adds nothing. A NegativeCount in
// one of them makes the sum NegativeCount, because the other count is not the whole. Sums that do not fit saturate.
func (u *Usage) Add(other Usage) {
	add := func(sum *int64, n int64) {
		switch {
		case n < -1 || *sum < -1:
			*sum = NegativeCount
		case n >= 0:
			have := max(*sum, 0)
			*sum = have + min(n, math.MaxInt64-have)
		}
	}
	u.LargestInput = max(u.Prompt(), other.Prompt())
	add(&u.InputTotal, other.InputTotal)
	add(&u.CacheRead, other.CacheRead)
	add(&u.CacheWrite5m, other.CacheWrite5m)
	add(&u.CacheWrite1h, other.CacheWrite1h)
	add(&u.CacheWrite, other.CacheWrite)
	add(&u.OutputTotal, other.OutputTotal)
	add(&u.Reasoning, other.Reasoning)
	add(&u.AudioIn, other.AudioIn)
	add(&u.AudioOut, other.AudioOut)
	add(&u.ImageIn, other.ImageIn)
	add(&u.ImageOut, other.ImageOut)
	add(&u.WebSearches, other.WebSearches)
	u.Estimated = u.Estimated || other.Estimated
}
