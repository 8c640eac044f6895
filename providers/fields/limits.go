package fields

import (
	"bytes"
	"strconv"
	"unsafe"

	"stagedoor/providers/dialogue"
)

// Limits of the texts of clients and upstreams. Every text from outside is checked against them before anything else
// reads it, so that a small text cannot cost much time, memory or stack.
const (
	// MaxDepth is the nesting that a client may use in a request and in the JSON inside its strings.
	// Tool schemas are the deepest texts in use and stay below 64 levels. Each level costs a reader one stack frame.
	MaxDepth = 128
	// MaxReplyDepth is the nesting that an upstream may use. It is higher, because a reply repeats parts of its
	// request, and turns some strings into objects some levels further in.
	MaxReplyDepth = 512
	// MaxNames is the number of names in one object of a request or reply.
	MaxNames = 10_000
	// MaxNameBytes is the length of a name in an object of a request or reply, in bytes as it is written. Names are
	// compared, unquoted and reported, so a name of megabytes would exist several times.
	MaxNameBytes = 64 << 10
	// MaxItems is the number of objects in all lists of a request, which are messages, parts, calls and tools. Each
	// becomes about a kilobyte of the neutral form, from as few as twelve bytes. A request with more objects must have
	// bytesPerItem bytes for each, as long conversations do. Schemas, arguments and metadata do not count.
	MaxItems     = 10_000
	bytesPerItem = 384
	// MaxParts is the number of parts of one reply, which are items, blocks and calls. Each becomes several hundred
	// bytes of a reply in another shape, from as few as two.
	MaxParts = 4096
)

// shallow is a length up to which no JSON text can break a limit, because each level takes two bytes.
const shallow = 2 * MaxReplyDepth

// Flaw names the rule that a text breaks.
type Flaw uint8

// Flaws of texts. Sound means that there is none.
const (
	Sound Flaw = iota
	Malformed
	TooDeep
	TooManyNames
	TooLongName
	TooManyItems
	RepeatedName
	MisspelledName
)

// OverLimit reports whether the text may be JSON but exceeds a limit.
func (f Flaw) OverLimit() bool {
	return f == TooDeep || f == TooManyNames || f == TooLongName || f == TooManyItems
}

// rule returns the end of a sentence that begins with the name of the text.
func (f Flaw) rule(deepest int) string {
	switch f {
	case TooDeep:
		return "is nested deeper than " + strconv.Itoa(deepest) + " levels"
	case TooManyNames:
		return "has an object of more than " + strconv.Itoa(MaxNames) + " names"
	case TooLongName:
		return "has a name of more than " + strconv.Itoa(MaxNameBytes) + " bytes"
	case TooManyItems:
		return "has more than " + strconv.Itoa(MaxItems) + " objects in its lists, and less than " +
			strconv.Itoa(bytesPerItem) + " bytes for each"
	case RepeatedName:
		return "has the same name twice in an object"
	case MisspelledName:
		return "has a name in other letters than its own"
	}
	return "is not valid JSON"
}

// ValidLenient reports whether text is one JSON value within the limits of upstreams. Use it in place of
// gjson.ValidBytes, which has no limits.
func ValidLenient(text []byte) bool { return lenientFlaw(text, MaxReplyDepth) == Sound }

// ValidLenientString is ValidLenient for a string.
func ValidLenientString(text string) bool { return ValidLenient(bytesOf(text)) }

// lenientFlaw reads a text with the rules for upstreams and returns the first rule that it breaks.
// Text after the value is a flaw as well.
func lenientFlaw(text []byte, deepest int) Flaw {
	r := NewLenientReader(text)
	defer r.Free()
	r.deepest = deepest
	r.Skip()
	if r.flaw == Sound && !r.Whole() {
		return Malformed
	}
	return r.flaw
}

// bytesOf returns the bytes of text without copying them. They must not be written to.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// CheckReply returns an error if a reply or event of an upstream is not one JSON value within the limits. what names
// the text.
func CheckReply(what string, text []byte) *dialogue.Error {
	r := NewLenientReader(text)
	defer r.Free()
	r.Skip()
	return r.BadReply(what)
}

// BadReply is CheckReply for the text that the reader has read.
func (r *Reader) BadReply(what string) *dialogue.Error {
	switch {
	case r.Whole():
		return nil
	case r.flaw.OverLimit():
		return overLimit(what, r.flaw)
	}
	return dialogue.BadUpstream(what + " is not JSON")
}

// CheckEvent returns an error for the data of an event that no provider may send. An event is the word [DONE], or an
// object from its first byte to its last with optional space around it. An event of more than 1 KiB must also be JSON
// within the limits. A shorter one cannot break a limit and is not read, so that the check of a usual event costs
// almost nothing. Every event passes this check once, before a parser or a tap gets it.
func CheckEvent(data []byte) *dialogue.Error {
	if n := len(data); n > 1 && n <= shallow && data[0] == '{' && data[n-1] == '}' {
		return nil
	}
	return checkEvent(data)
}

// checkEvent checks one event of a stream. Most events are short, and a text that is short enough
// cannot break a limit, so that it is not read here: the decoder of the shape finds what else is
// wrong with it.
func checkEvent(data []byte) *dialogue.Error {
	text := bytes.TrimSpace(data)
	switch n := len(text); {
	case string(text) == "[DONE]":
		return nil
	case n < 2 || text[0] != '{' || text[n-1] != '}':
		return dialogue.BadUpstream("an event that is not a JSON object")
	case n <= shallow:
		return nil
	}
	return CheckReply("event", text)
}

// overLimit returns an error that shows the client the rule, which reveals nothing about the upstream.
func overLimit(what string, flaw Flaw) *dialogue.Error {
	e := dialogue.BadUpstream(what + " " + flaw.rule(MaxReplyDepth))
	e.Message += ": the " + what + " " + flaw.rule(MaxReplyDepth)
	return e
}

// TooManyParts returns the error for a reply of more than MaxParts parts.
func TooManyParts() *dialogue.Error {
	rule := "has more than " + strconv.Itoa(MaxParts) + " parts"
	e := dialogue.BadUpstream("reply " + rule)
	e.Message += ": the reply " + rule
	return e
}

// CheckInner returns an error if a string of a request holds JSON over the limits. A string with anything else passes.
// param names the field.
func CheckInner(param, text string) *dialogue.Error {
	if len(text) <= MaxDepth {
		return nil
	}
	if flaw := lenientFlaw(bytesOf(text), MaxDepth); flaw.OverLimit() {
		return dialogue.Invalid(param, "must not hold JSON that "+flaw.rule(MaxDepth))
	}
	return nil
}

// CheckInnerParts is CheckInner for each text in the result of a tool.
func CheckInnerParts(param string, parts []dialogue.Part) *dialogue.Error {
	for _, p := range parts {
		if err := CheckInner(param, p.Text); err != nil {
			return err
		}
		if p.Media != nil {
			if err := CheckInner(param, p.Media.Text); err != nil {
				return err
			}
		}
	}
	return nil
}
