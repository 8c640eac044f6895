package shapes

import "bytes"

// AnswerMembers names the members of events and replies of a shape that carry an answer: text,
// thinking, refusals and the arguments of calls.
type AnswerMembers struct {
	Text   []string // members with a string
	Object []string // members with an object, which counts as it is written
	// Repeats reports whether events of this type only repeat what earlier ones have brought.
	// It is nil for shapes without such events.
	Repeats func(kind []byte) bool
}

// Bytes returns how many bytes of answer an event or a whole reply has. actors/text divides the sum
// by an average to estimate tokens when an upstream reports no usage, so it needs a size and not
// the text. Strings count as they are written, escapes included. It makes one pass over data,
// allocates nothing and does not check the JSON, because it runs for every event of every stream.
// Data that breaks off counts as far as it goes, without the string that is cut. For the chat
// shape:
//
//	{"choices":[{"delta":{"content":"Hello"}}]}              5
//	{"choices":[{"delta":{},"finish_reason":"stop"}]}        0
func (m *AnswerMembers) Bytes(data []byte) int {
	total, name := 0, []byte(nil)
	for {
		at := bytes.IndexByte(data, '"')
		if at < 0 {
			return total
		}
		data = data[at+1:]
		end := StringEnd(data)
		text := data[:end]
		if data = data[min(end+1, len(data)):]; len(data) == 0 {
			return total
		}
		// A string before a colon is the name of a member, and any other is a value. An object that
		// counts as a whole is skipped, so that names inside a call's arguments are not taken for
		// members of the shape.
		if rest, isName := afterColon(data); isName {
			if name, data = text, rest; len(rest) > 0 && rest[0] == '{' && contains(m.Object, name) {
				end := objectEnd(rest)
				total, data = total+end, rest[end:]
			}
			continue
		}
		switch {
		case m.Repeats != nil && string(name) == "type" && m.Repeats(text):
			return 0
		case contains(m.Text, name):
			total += len(text)
		}
	}
}

func contains(names []string, name []byte) bool {
	for _, n := range names {
		if n == string(name) {
			return true
		}
	}
	return false
}

// StringEnd returns the index of the quote that ends the JSON string whose first quote is just
// before s, or len(s).
func StringEnd(s []byte) int {
	for from := 0; ; {
		at := bytes.IndexByte(s[from:], '"')
		if at < 0 {
			return len(s)
		}
		at += from
		// An odd number of backslashes before a quote escapes it. An even number are backslashes
		// that escape each other, and the quote ends the string.
		slashes := 0
		for at-1-slashes >= 0 && s[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
		from = at + 1
	}
}

// afterColon returns s without its leading colon and the white space around it. isName is false if
// s does not begin with a colon, which means that the string before s was a value.
func afterColon(s []byte) (rest []byte, isName bool) {
	for i, c := range s {
		switch c {
		case ' ', '\t', '\r', '\n':
		case ':':
			return bytes.TrimLeft(s[i+1:], " \t\r\n"), true
		default:
			return nil, false
		}
	}
	return nil, false
}

// objectEnd returns the length of the object that s begins with, or len(s).
func objectEnd(s []byte) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i += 1 + StringEnd(s[i+1:])
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}
