package gemini

import (
	"strings"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// writeText writes a text part. thought and signature are left out where they
// say nothing.
func writeText(w *jsonw.Writer, text string, thought bool, signature string) {
	w.Object().Key("text").String(text)
	if thought {
		w.Key("thought").Bool(true)
	}
	endPart(w, signature)
}

// endPart closes a part with the signature it carries.
func endPart(w *jsonw.Writer, signature string) {
	if signature != "" {
		w.Key("thoughtSignature").String(signature)
	}
	w.End()
}

// writeCall writes a functionCall part with the arguments args and the signature, if it has one. It
// does not read c.Args, because the arguments of a streamed call are collected outside of c. It reports what
// writeArgs does.
func writeCall(w *jsonw.Writer, c *dialogue.Call, args, signature string) (wrapped bool) {
	w.Object().Key("functionCall").Object()
	if c.ID != "" {
		w.Key("id").String(c.ID)
	}
	w.Key("name").String(c.Name)
	wrapped = writeArgs(w.Key("args"), args, c.Custom)
	w.End()
	endPart(w, signature)
	return wrapped
}

// writeArgs writes the arguments of a call as an object, which this shape requires, and reports
// whether the arguments of a function were something else. An object is written as it is. Empty
// arguments and null become {}. The free text of a custom tool, any other JSON value and broken
// JSON become the member "input" of an object.
func writeArgs(w *jsonw.Writer, args string, custom bool) (wrapped bool) {
	if custom {
		w.Object().Key("input").String(args).End() // with its white space, which a patch needs
		return false
	}
	args = strings.TrimSpace(args)
	switch {
	case args == "" || args == "null":
		w.Object().End()
		return false
	case args[0] == '{' && fields.ValidLenientString(args):
		w.RawString(strings.ToValidUTF8(args, "\ufffd"))
		return false
	case fields.ValidLenientString(args) && utf8.ValidString(args):
		w.Object().Key("input").RawString(args).End()
	default:
		w.Object().Key("input").String(args).End()
	}
	return true
}

// writeMedia writes inlineData or fileData, whichever the media is.
func writeMedia(w *jsonw.Writer, m *dialogue.Media) {
	w.Object()
	writeMediaMember(w, m)
	w.End()
}

// writeMediaMember writes the one member of a media part, without the braces around it: inlineData
// if the media has data, else fileData with its address or file id.
func writeMediaMember(w *jsonw.Writer, m *dialogue.Media) {
	if m.Base64 != "" {
		w.Key("inlineData").Object().Key("mimeType").String(mimeOf(m)).Key("data").String(m.Base64).End()
		return
	}
	w.Key("fileData").Object().Key("mimeType").String(mimeOf(m)).Key("fileUri").String(m.URL + m.FileID).End()
}

// extensions has the media type of each file extension. It is for media whose client has not named the type.
var extensions = map[string]string{
	"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif", "heic": "image/heic",
	"heif": "image/heif", "pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown", "html": "text/html", "htm": "text/html",
	"csv": "text/csv", "json": "application/json", "xml": "text/xml", "mp3": "audio/mp3", "wav": "audio/wav", "flac": "audio/flac", "ogg": "audio/ogg",
	"m4a": "audio/mp4", "aac": "audio/aac", "aiff": "audio/aiff", "mp4": "video/mp4", "mov": "video/quicktime", "webm": "video/webm",
	"mpeg": "video/mpeg", "mpg": "video/mpeg", "avi": "video/x-msvideo", "3gp": "video/3gpp",
}

// mimeOf returns the media type that the client gave, or the one that belongs to the extension of the address or the
// name, or else the most common one of the kind. It never returns "", because this shape requires a type.
func mimeOf(m *dialogue.Media) string {
	if m.MIME != "" {
		return m.MIME
	}
	for _, name := range []string{m.URL, m.Name} {
		name, _, _ = strings.Cut(name, "?")
		name, _, _ = strings.Cut(name, "#")
		if mime, ok := extensions[strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])]; ok {
			return mime
		}
	}
	switch m.Kind {
	case dialogue.Image:
		return "image/jpeg"
	case dialogue.Audio:
		return "audio/wav"
	case dialogue.Video:
		return "video/mp4"
	}
	return "application/pdf"
}
