package meter

import (
	"bytes"

	"stagedoor/providers/shapes"
	"stagedoor/providers/tokens"
)

// mediaRun is the length of the shortest run of base64 that may be media.
const mediaRun = 1 << 10

// promptTokens estimates the tokens of a request's body, which is valid JSON. A token is four
// bytes of text. The content of a member that carries media in one of the shapes (the API formats
// of clients) counts by its pixels, pages or seconds instead. The estimate is high, because it also
// counts the names and the punctuation of the JSON.
func promptTokens(body []byte) int64 {
	if !longRun(body) {
		return tokens.Estimate(len(body))
	}
	w := promptWalk{}
	w.walk(body)
	return tokens.Estimate(len(body)-w.bytes) + w.tokens
}

// longRun reports whether body has a run of at least mediaRun base64 digits, which may be media. Such
// a run contains a byte at a multiple of mediaRun. So longRun looks at those bytes, and counts the
// digits around each one that is a digit.
func longRun(body []byte) bool {
	for at := mediaRun - 1; at < len(body); at += mediaRun {
		if !base64Digit[body[at]] {
			continue
		}
		from, to := at, at+1
		for from > 0 && to-from < mediaRun && base64Digit[body[from-1]] {
			from--
		}
		for to < len(body) && to-from < mediaRun && base64Digit[body[to]] {
			to++
		}
		if to-from >= mediaRun {
			return true
		}
	}
	return false
}

var base64Digit = func() (set [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_") {
		set[c] = true
	}
	return set
}()

// promptWalk reads a body once and sums up its media.
type promptWalk struct {
	bytes  int   // bytes of the body that are media and not text
	tokens int64 // tokens that these count

	inside []member
}

// member is an object or array that the walk is inside of. The elements of an array have its
// name.
type member struct {
	name []byte
	text bool // all below it is text to the model
}

// walk reads body, which is valid JSON, and adds its media to w.bytes and w.tokens.
func (w *promptWalk) walk(body []byte) {
	var name []byte
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			w.enter(name)
		case '}', ']':
			name = w.leave()
		case ',':
			name = w.innermost().name // of an element; a member's own name follows
		case '"':
			value := body[i+1:]
			value = value[:shapes.StringEnd(value)]
			i += 1 + len(value)
			if rest := bytes.TrimLeft(body[min(i+1, len(body)):], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
				name = value
			} else if len(value) >= mediaRun {
				w.countMedia(name, value)
			}
		}
	}
}

// innermost returns the object or array that the walk is directly inside of. It is the zero member
// at the top level.
func (w *promptWalk) innermost() member {
	if n := len(w.inside); n > 0 {
		return w.inside[n-1]
	}
	return member{}
}

// enter begins an object or array with this name. It is text if one around it is.
func (w *promptWalk) enter(name []byte) {
	w.inside = append(w.inside, member{name, w.innermost().text || isText(name, len(w.inside))})
}

// leave ends the innermost object or array and returns its name.
func (w *promptWalk) leave() (name []byte) {
	name = w.innermost().name
	w.inside = w.inside[:max(len(w.inside)-1, 0)]
	return name
}

// isText reports whether everything inside a member is text to the model, as arguments and
// results of calls and schemas are. The input of a response is a list at the top level, and
// the input of a call is an object at a lower level. depth is the number of objects and arrays
// around the member.
func isText(name []byte, depth int) bool {
	const topList = 2 // depth of the elements of a list at the top
	switch string(name) {
	case "args", "response", "parameters", "input_schema", "schema", "parametersJsonSchema", "responseSchema":
		return true
	case "input":
		return depth > topList
	}
	return false
}

// countMedia adds a long string to w if the shapes have media in a member of this name and if the
// content is of a known kind. Any other string counts as text, which is the default.
func (w *promptWalk) countMedia(name, value []byte) {
	if w.innermost().text {
		return
	}
	parent := w.innermost().name
	content, isURL := dataURL(value)
	switch string(name) {
	case "url":
		if !isURL || string(parent) != "image_url" {
			return
		}
	case "image_url":
		if !isURL {
			return
		}
	case "file_data":
	case "data":
		switch string(parent) {
		case "source", "inlineData", "inline_data", "input_audio":
		default:
			return
		}
	default:
		return
	}
	if n, ok := mediaTokens(content); ok {
		w.bytes += len(value)
		w.tokens += n
	}
}

// dataURL returns the base64 content of a data URL and true. For any other value, such as a data URL
// that is not base64, it returns value and false.
func dataURL(value []byte) (content []byte, ok bool) {
	const most = 256 // bytes of a media type
	if !bytes.HasPrefix(value, []byte("data:")) {
		return value, false
	}
	head := value[:min(len(value), most)]
	at := bytes.Index(head, []byte(";base64,"))
	if at < 0 {
		return value, false
	}
	return value[at+len(";base64,"):], true
}
