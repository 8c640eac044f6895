package shapes

import "bytes"

// carriesAnswer reports whether a member of this name carries a piece of an answer, in an
// event or a whole reply of any shape: text, thinking, refusals and the arguments of calls.
func carriesAnswer(name []byte) bool {
	switch string(name) {
	case "content", "reasoning_content", "reasoning", "refusal", "arguments", // chat
		"text", "thinking", "partial_json", "input", "args", // completions, messages, gemini
		"delta": // responses
		return true
	}
	return false
}

// AnswerBytes returns how many bytes of answer an event or a whole reply of a provider has:
// the strings under the names of carriesAnswer, as they are written, and whole objects where arguments
// are no string. It makes one pass and allocates nothing. An event that repeats what earlier
// ones have brought, as those of responses at the end of each part do, counts nothing.
func AnswerBytes(data []byte) int {
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
		if rest, isName := afterColon(data); isName {
			if name, data = text, rest; len(rest) > 0 && rest[0] == '{' && (string(name) == "args" || string(name) == "input") {
				end := objectEnd(rest)
				total, data = total+end, rest[end:]
			}
			continue
		}
		switch {
		case string(name) == "type" && repeats(text):
			return 0
		case carriesAnswer(name):
			total += len(text)
		}
	}
}

// repeats reports whether an event of this type brings nothing new.
func repeats(kind []byte) bool {
	return bytes.HasPrefix(kind, []byte("response.")) && !bytes.HasSuffix(kind, []byte(".delta"))
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

// afterColon returns what follows the colon behind a name, if there is one.
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
