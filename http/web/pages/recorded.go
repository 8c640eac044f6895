package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stagedoor/actors/recording"
)

// Recorded has what was sent and answered, for the page of a request.
type Recorded struct {
	Path    string // the address of all of it as a file
	Request RecordedText
	Reply   RecordedText
	// Said has the content of a streamed reply in one piece, if it is known. Reply then has its events.
	Said RecordedText
	// Attempts has what providers got and answered, for administrators.
	Attempts []RecordedAttempt
	// Shortened says that long bodies were cut when they were kept.
	Shortened bool
}

// RecordedText is one body with what belongs to it.
type RecordedText struct {
	Title   string
	Note    string // beside the title
	Headers string
	Text    string
	LeftOut int64 // characters in the middle of the body that the page leaves out
}

// RecordedAttempt is an attempt at a provider.
type RecordedAttempt struct {
	Name      string
	Simulated bool
	Calls     []RecordedCall
}

// RecordedCall is one call of a provider and its reply.
type RecordedCall struct{ Sent, Got RecordedText }

// Bounds of the page, in bytes of HTML: all bodies and headers of an exchange, one body of the client and one of a
// provider.
const (
	recordedSize = 40 << 10
	clientSize   = 14 << 10
	providerSize = 5 << 10
	// readableSize bounds the bodies that are indented, because indenting makes deep ones many times larger, and
	// readableDepth how deep they are.
	readableSize, readableDepth = 128 << 10, 24
)

// NewRecorded returns what a page shows of an exchange, which can be read as a file at path. said is the content of a
// streamed reply, or "".
func NewRecorded(x *recording.Exchange, said, path string) *Recorded {
	left := room(recordedSize)
	r := &Recorded{Path: path, Shortened: x.Shortened}
	r.Request = left.text(x.Client.Body, clientSize)
	r.Request.Title, r.Request.Note, r.Request.Headers = "Request", x.Client.Path, left.headers(x.Client.Header)
	r.Said = left.text([]byte(said), clientSize)
	r.Said.Title = "Content of the reply"
	r.Reply = left.text(slices.Concat(x.Reply.Body, x.Reply.Failure, x.Reply.Error), clientSize)
	r.Reply.Title = "Reply"
	r.Reply.Note = fmt.Sprintf("after %s", Seconds(time.Duration(x.Millis)*time.Millisecond))
	if x.Reply.Status != 0 {
		r.Reply.Note = fmt.Sprintf("%d, %s", x.Reply.Status, r.Reply.Note)
	}
	if x.Reply.Partial {
		r.Reply.Note += ", cut off"
	}
	for i := range x.Attempts {
		r.Attempts = append(r.Attempts, left.attempt(i+1, &x.Attempts[i]))
	}
	return r
}

// room is the number of bytes of HTML that may still be put on the page. Its methods take what they return from it.
type room int

// attempt returns an attempt with its calls, whose bodies and headers are cut to the room that is left.
func (left *room) attempt(number int, a *recording.Attempt) RecordedAttempt {
	out := RecordedAttempt{Name: fmt.Sprintf("Attempt %d", number), Simulated: a.Simulated}
	for _, name := range []string{a.Target.Provider, a.Target.Model} {
		if name != "" {
			out.Name += ", " + name
		}
	}
	for i := range a.Calls {
		c := &a.Calls[i]
		sent, got := left.text(c.Body, providerSize), left.text(c.ReplyBody, providerSize)
		if sent.Note = c.Path; c.Query != "" {
			sent.Note += "?" + c.Query
		}
		sent.Title, got.Title = "Sent to the provider", "Answered by the provider"
		sent.Headers, got.Headers = left.headers(c.Header), left.headers(c.ReplyHeader)
		if got.Note = "no reply"; c.Status != 0 {
			got.Note = fmt.Sprintf("%d, %s later", c.Status,
				Seconds(time.Duration(c.ReplyMillis-c.Millis)*time.Millisecond))
		}
		if c.Cut != "" {
			got.Note += ", " + c.Cut
		}
		out.Calls = append(out.Calls, RecordedCall{sent, got})
	}
	return out
}

// headers returns headers as lines, as far as there is room.
func (left *room) headers(h http.Header) string {
	var lines []string
	for name, values := range h {
		lines = append(lines, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(lines)
	shown, _ := left.cut(strings.Join(lines, "\n"), providerSize)
	return shown
}

// text returns a body as far as there is room: its beginning and its end.
func (left *room) text(body []byte, most int) RecordedText {
	if *left <= 0 {
		return RecordedText{LeftOut: int64(utf8.RuneCount(body))}
	}
	shown, out := left.cut(readable(body), most)
	return RecordedText{Text: shown, LeftOut: out}
}

// cut takes at most so many bytes of HTML of the room for a text. Of a longer one, the beginning and the end stay,
// because the latest turn of a conversation is at its end.
func (left *room) cut(text string, most int) (shown string, out int64) {
	most = min(most, int(*left))
	size := 0
	for _, c := range text {
		size += escaped(c)
	}
	if size <= most {
		*left -= room(size)
		return text, 0
	}
	*left -= room(most)
	from, to := 0, len(text)
	for used := 0; from < len(text); {
		c, n := utf8.DecodeRuneInString(text[from:])
		if used += escaped(c); used > most*2/3 {
			break
		}
		from += n
	}
	for used := 0; to > from; {
		c, n := utf8.DecodeLastRuneInString(text[:to])
		if used += escaped(c); used > most/3 {
			break
		}
		to -= n
	}
	out = int64(utf8.RuneCountInString(text[from:to]))
	return text[:from] + "\n… " + formatCount(out) + " characters …\n" + text[to:], out
}

// escaped returns the bytes that a character takes in the HTML of a page.
func escaped(c rune) int {
	switch c {
	case '"', '\'', '&', '+':
		return 5
	case '<', '>':
		return 4
	}
	return utf8.RuneLen(c)
}

// longWord matches words that are too long to read, such as pictures in base64.
var longWord = regexp.MustCompile(`[A-Za-z0-9+/_=-]{400,}`)

// readable returns a body as people read it: JSON is indented, events of a stream have no empty lines between them,
// files of a form that are no text are left out, and very long words are shortened.
func readable(body []byte) string {
	if !utf8.Valid(body) {
		body = withoutFiles(body)
	}
	text := bytes.ToValidUTF8(bytes.TrimSpace(body), []byte("\ufffd"))
	var indented bytes.Buffer
	switch {
	case len(text) <= readableSize && shallow(text) && json.Indent(&indented, text, "", "  ") == nil:
		text = indented.Bytes()
	case bytes.HasPrefix(text, []byte("data:")) || bytes.HasPrefix(text, []byte("event:")):
		text = bytes.ReplaceAll(text, []byte("\n\n"), []byte("\n"))
	}
	text = longWord.ReplaceAllFunc(text, func(word []byte) []byte {
		const shown = 40
		return fmt.Appendf(nil, "%s… (%s characters)", word[:shown], formatCount(int64(len(word))))
	})
	return string(text)
}

// withoutFiles returns a form without the files in it that are no text.
func withoutFiles(form []byte) []byte {
	parts := bytes.Split(form, []byte("\r\n--"))
	for i, part := range parts {
		if header, file, ok := bytes.Cut(part, []byte("\r\n\r\n")); ok && !utf8.Valid(file) {
			parts[i] = fmt.Appendf(bytes.Clone(header), "\r\n\r\n(%s bytes)", formatCount(int64(len(file))))
		}
	}
	return bytes.Join(parts, []byte("\r\n--"))
}

// shallow reports whether brackets are nested no deeper than readableDepth. Those within strings count too, which only
// leaves such a text as it is.
func shallow(text []byte) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '{', '[':
			if depth++; depth > readableDepth {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return true
}
