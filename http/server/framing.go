package server

import "bytes"

// framing follows the messages of one direction of an HTTP/1 connection, so that it is known
// which bytes are header fields and which are a body. It looks at the bytes of headers, skips
// bodies by their length and keeps at most the name of one field.
//
// A framing is exact for the messages that net/http accepts. A message that net/http refuses
// also ends its connection, so it does not matter what a framing takes it for. Where a framing
// cannot follow at all, it is lost and reports nothing more.
type framing struct {
	state    framingState
	old      bool   // the message is of HTTP/1.0 (requests only)
	sized    bool   // the message has a Content-Length
	chunked  bool   // the message has a Transfer-Encoding
	events   bool   // the message is a text/event-stream
	trailing bool   // the fields are those after a chunked body
	inLength bool   // the field is a Content-Length
	ended    bool   // the digits of the length have ended
	digits   int    // of the length or of the chunk size
	remain   uint64 // what is left of the body, or of the chunk and its line end
	last     byte   // of the start line, then of the body's data
	n        int    // how much of word is in use
	word     [len("text/event-stream")]byte
}

// The states are those of RFC 9112:
//
//	message    messageStart, startLine, then fields, then body or chunks, then messageStart
//	field      fieldStart, fieldName, then lengthValue, typeValue or fieldRest, then fieldStart
//	chunk      chunkSize, chunkRest, chunkData, then chunkSize; a size of 0 leads to fields (trailing)
type framingState uint8

const (
	messageStart framingState = iota
	startLine
	fieldStart
	fieldName
	lengthValue
	typeValue
	fieldRest // the rest of a field's line
	body
	chunkSize
	chunkRest // the rest of a chunk size's line
	chunkData
	lost
)

// maxLength keeps sums of lengths from overflowing. No body is so long.
const maxLength = 1 << 60

// follow takes the next bytes of the direction. It stops behind the colon of the first field that
// makes the length of its message ambiguous: a Content-Length beside a Transfer-Encoding, or a
// Transfer-Encoding in HTTP/1.0 (RFC 9112 6.1 and 6.3). The framing is lost from there on.
func (f *framing) follow(p []byte) (at int, ambiguous bool) {
	for i := 0; i < len(p); {
		switch c := p[i]; f.state {
		case messageStart:
			if c == '\r' || c == '\n' {
				i++ // net/http lets a client send a line end behind a body
			} else {
				*f = framing{state: startLine}
			}
		case startLine:
			line, found := cutLine(p[i:])
			if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 {
				f.last = text[len(text)-1]
			}
			i += len(line)
			if found {
				f.old, f.state = f.last == '0', fieldStart
			}
		case fieldStart:
			i += f.beginField(c)
		case fieldName:
			i++
			switch {
			case c == ':':
				if f.name() {
					f.state = lost
					return i, true
				}
			case c == '\n':
				f.state = lost
			default:
				f.collect(c, fieldRest)
			}
		case lengthValue:
			i++
			f.length(c)
		case typeValue:
			i += f.mediaType(c)
		case fieldRest, chunkRest:
			line, found := cutLine(p[i:])
			i += len(line)
			switch {
			case !found:
			case f.state == fieldRest:
				f.state = fieldStart
			default:
				f.beginChunk()
			}
		case chunkSize:
			i++
			f.size(c)
		case body, chunkData:
			i += f.data(p[i:])
		case lost:
			return 0, false
		}
	}
	return 0, false
}

// beginField takes the first byte of a line of the head or of the trailers, which also says whether they have ended. It
// returns 0 for a byte that the next state is to see, and else 1.
func (f *framing) beginField(c byte) (taken int) {
	switch {
	case c == '\r':
		return 1
	case c == '\n':
		f.endFields()
		return 1
	case f.trailing:
		f.state = fieldRest
	case c == ' ' || c == '\t': // the value of the field before goes on
		f.state = fieldRest
		if f.inLength {
			f.state = lengthValue
		}
		return 1
	default:
		f.n, f.inLength, f.state = 0, false, fieldRest
		if c |= 'a' - 'A'; c == 'c' || c == 't' { // no other name matters
			f.state = fieldName
		}
	}
	return 0
}

// mediaType takes a byte of a Content-Type and notices a stream of events. It returns 0 for the end of the line, which
// the next state is to see, and else 1.
func (f *framing) mediaType(c byte) (taken int) {
	switch {
	case c == '\n':
		f.state = fieldRest
		return 0
	case (c == ' ' || c == '\t') && f.n == 0:
	default:
		f.collect(c, fieldRest)
		f.events = f.events || string(f.word[:f.n]) == "text/event-stream"
	}
	return 1
}

// data takes the bytes of p that belong to the body or to the chunk, of which f.remain are left, and returns how many
// those are. It notes the last byte of a chunk, which stands before the chunk's line end.
func (f *framing) data(p []byte) (taken int) {
	k := min(f.remain, uint64(len(p)))
	if data := f.remain - 2; f.state == chunkData && f.remain > 2 && data <= k {
		f.last = p[data-1]
	}
	if f.remain -= k; f.remain == 0 {
		f.digits = 0
		if f.state == body {
			f.state = messageStart
		} else {
			f.state = chunkSize
		}
	}
	return int(k)
}

// cutLine returns p up to and with its first line end, or all of p.
func cutLine(p []byte) (part []byte, found bool) {
	if end := bytes.IndexByte(p, '\n'); end >= 0 {
		return p[:end+1], true
	}
	return p, false
}

// collect adds a byte to the word, or goes on to next if the word is too long to matter.
func (f *framing) collect(c byte, next framingState) {
	if f.n == len(f.word) {
		f.n, f.state = 0, next
		return
	}
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	f.word[f.n] = c
	f.n++
}

// name takes the name of a field, and reports whether the field makes the length ambiguous.
func (f *framing) name() (ambiguous bool) {
	f.state = fieldRest
	switch string(f.word[:f.n]) {
	case "content-length":
		f.state, f.sized, f.inLength = lengthValue, true, true
		f.ended, f.digits, f.remain = false, 0, 0
	case "transfer-encoding":
		f.chunked = true
	case "content-type":
		f.state, f.n = typeValue, 0
		return false
	default:
		return false
	}
	return f.chunked && (f.sized || f.old)
}

// length takes a byte of the value of Content-Length. net/http refuses two values that differ.
func (f *framing) length(c byte) {
	switch {
	case c >= '0' && c <= '9' && !f.ended && f.remain < maxLength/10:
		f.remain = f.remain*10 + uint64(c-'0')
		f.digits++
	case c == ' ' || c == '\t' || c == '\r':
		f.ended = f.digits > 0
	case c == '\n':
		f.ended, f.state = f.digits > 0, fieldStart
	default:
		f.state = lost
	}
}

// size takes a byte of a chunk's size. Anything but a digit or the end of the line begins the chunk's extensions, which
// are skipped.
func (f *framing) size(c byte) {
	digit := uint64(0)
	switch {
	case c >= '0' && c <= '9':
		digit = uint64(c - '0')
	case c >= 'a' && c <= 'f':
		digit = uint64(c-'a') + 10
	case c >= 'A' && c <= 'F':
		digit = uint64(c-'A') + 10
	case c == '\n':
		f.beginChunk()
		return
	default:
		f.state = chunkRest
		return
	}
	if f.remain >= maxLength/16 {
		f.state = lost
		return
	}
	f.remain = f.remain<<4 | digit
	f.digits++
}

// beginChunk sets the state after the line with the size of a chunk: its data, or the trailers after the last chunk.
func (f *framing) beginChunk() {
	switch {
	case f.digits == 0:
		f.state = lost
	case f.remain == 0:
		f.trailing, f.state = true, fieldStart
	default:
		f.remain += uint64(len("\r\n"))
		f.state = chunkData
	}
}

// endFields sets the state after the empty line that ends the head or the trailers: the body, a chunk or the next
// message.
func (f *framing) endFields() {
	switch {
	case f.trailing:
		f.state = messageStart
	case f.chunked:
		f.state, f.remain, f.digits, f.last = chunkSize, 0, 0, '\n'
	case f.remain > 0:
		f.state = body
	default:
		f.state = messageStart
	}
}

// betweenLines reports whether an event stream is between two of its chunks and two of its lines,
// so that a chunk with a comment may follow.
func (f *framing) betweenLines() bool {
	return f.events && f.state == chunkSize && f.digits == 0 && f.last == '\n'
}
