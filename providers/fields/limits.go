package fields

import (
	"bytes"
	"strconv"
	"unsafe"

	"stagedoor/providers/dialogue"
)

// Limits of the texts that clients and upstreams send. Every text from outside
// is read within them before anything else looks at it, so that a small text
// cannot cost much time, memory or stack.
const (
	// MaxDepth is how deep a client may nest the values of a request, and of the
	// JSON inside its strings (faults.md 3). Tool schemas, the deepest texts in use,
	// stay below 64 levels; each level costs a walker one stack frame.
	MaxDepth = 128
	// MaxReplyDepth is the same for upstreams. It is higher because a reply repeats
	// what its request said, and strings of it as objects, some levels further in.
	MaxReplyDepth = 512
	// MaxNames is how many names one object may have, in requests and replies.
	MaxNames = 10_000
	// MaxNameBytes is how long a name in an object may be, in requests and replies, as it
	// is written. Names are compared, unquoted and reported, so a name of megabytes would
	// be held several times.
	MaxNameBytes = 64 << 10
	// MaxItems is how many objects the lists of a request may hold together: messages,
	// parts, calls, tools. Each becomes about a kilobyte of the neutral form, from as
	// few as twelve bytes. A request of more must have bytesPerItem bytes for each, as
	// long conversations do. Schemas, arguments and metadata do not count.
	MaxItems     = 10_000
	bytesPerItem = 384
	// MaxParts is how many parts one reply may have: items, blocks, calls. Each
	// becomes several hundred bytes of a reply in another shape, from as few as two.
	MaxParts = 4096
)

// shallow is a length up to which no JSON text can break a limit: each level takes
// two bytes.
const shallow = 2 * MaxReplyDepth

// Flaw says which rule a text breaks.
type Flaw uint8

// Flaws of texts. Sound is none.
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

// OverLimit reports whether the text may be JSON, but more of it than is read.
func (f Flaw) OverLimit() bool {
	return f == TooDeep || f == TooManyNames || f == TooLongName || f == TooManyItems
}

// rule completes a sentence that begins with the text's name.
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

// ValidLenient reports whether text is one JSON value within the limits of
// upstreams. Use it in place of gjson.ValidBytes, which has no limits.
func ValidLenient(text []byte) bool { return lenientFlaw(text, MaxReplyDepth) == Sound }

// ValidLenientString is ValidLenient for a string.
func ValidLenientString(text string) bool { return ValidLenient(bytesOf(text)) }

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

// bytesOf views text without copying it. The bytes must not be written to.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// CheckReply returns the error for a reply or event of an upstream that is not
// one JSON value within the limits, nil for one that is. what names the text.
func CheckReply(what string, text []byte) *dialogue.Error {
	r := NewLenientReader(text)
	defer r.Free()
	r.Skip()
	return r.BadReply(what)
}

// BadReply is CheckReply for what the reader has read.
func (r *Reader) BadReply(what string) *dialogue.Error {
	switch {
	case r.Whole():
		return nil
	case r.flaw.OverLimit():
		return overLimit(what, r.flaw)
	}
	return dialogue.BadUpstream(what + " is not JSON")
}

// CheckEvent returns the error for the data of an event that no provider may send, nil
// for any other. An event is the word [DONE], or an object from its first byte to its
// last; blanks around do not matter. An event of more than 1 KiB must also be JSON within
// the limits. The inside of a shorter one cannot break a limit and is not read, so that
// the check of a usual event costs next to nothing. Every event passes this check once,
// before a parser or a tap gets it.
func CheckEvent(data []byte) *dialogue.Error {
	if n := len(data); n > 1 && n <= shallow && data[0] == '{' && data[n-1] == '}' {
		return nil
	}
	return checkEvent(data)
}

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

// overLimit tells the client the rule, which says nothing about the upstream that
// the client may not know.
func overLimit(what string, flaw Flaw) *dialogue.Error {
	e := dialogue.BadUpstream(what + " " + flaw.rule(MaxReplyDepth))
	e.Message += ": the " + what + " " + flaw.rule(MaxReplyDepth)
	return e
}

// TooManyParts is the error for a reply of more than MaxParts parts.
func TooManyParts() *dialogue.Error {
	rule := "has more than " + strconv.Itoa(MaxParts) + " parts"
	e := dialogue.BadUpstream("reply " + rule)
	e.Message += ": the reply " + rule
	return e
}

// CheckInner returns the error for a string of a client's request that holds JSON
// over the limits. A string that holds anything else passes. param names the field.
func CheckInner(param, text string) *dialogue.Error {
	if len(text) <= MaxDepth {
		return nil
	}
	if flaw := lenientFlaw(bytesOf(text), MaxDepth); flaw.OverLimit() {
		return dialogue.Invalid(param, "must not hold JSON that "+flaw.rule(MaxDepth))
	}
	return nil
}

// CheckInnerParts is CheckInner for each text of what a tool answered.
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
