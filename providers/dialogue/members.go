package dialogue

import (
	"strings"

	"github.com/tidwall/gjson"
)

// eachMember calls each with the name and the text of each member of an object. The object must be JSON that was
// checked; of any other text members are missing. gjson's ForEach would unescape the string of each member, also of
// those that only have to be skipped, which takes longer than the rest of decoding a message.
func eachMember(object string, each func(name, text string)) {
	for i := strings.IndexByte(object, '{') + 1; i > 0 && i < len(object); {
		start := strings.IndexByte(object[i:], '"')
		if start < 0 {
			return
		}
		start += i
		end := stringEnd(object, start)
		value := end
		for value < len(object) && (object[value] <= ' ' || object[value] == ':') {
			value++
		}
		i = valueEnd(object, value)
		name := object[start:end]
		if strings.IndexByte(name, '\\') >= 0 {
			each(gjson.Parse(name).Str, object[value:i])
		} else {
			each(strings.Trim(name, `"`), object[value:i])
		}
	}
}

// valueEnd returns the offset after the value at i, or after the spaces behind it if it is a number or a word.
func valueEnd(text string, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = stringEnd(text, i) - 1; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return i + 1 + depth // without the bracket around a number
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// stringEnd returns the offset after the string whose quote is at i.
func stringEnd(text string, i int) int {
	for at := i + 1; at < len(text); {
		n := strings.IndexByte(text[at:], '"')
		if n < 0 {
			break
		}
		at += n + 1
		escape := at - 2
		for escape > i && text[escape] == '\\' {
			escape--
		}
		if (at-escape)%2 == 0 { // an even number of backslashes
			return at
		}
	}
	return len(text)
}
