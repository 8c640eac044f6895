package chat

import (
	"cmp"
	"encoding/json"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// audioLife is the time in seconds for which a reply's audio can be referred to. The gateway keeps
// no audio, but clients require the field.
const audioLife = 3600

// customCall reports whether the client knows the called tool as a custom one. unwrap reports
// whether its input came as the one string of a JSON object, which is the form that other shapes
// give to custom tools.
func customCall(req *dialogue.Request, c *dialogue.Call) (custom, unwrap bool) {
	if c.Custom {
		return true, false
	}
	for i := range req.Tools {
		if t := &req.Tools[i]; t.Kind == dialogue.CustomTool && t.Name == c.Name {
			return true, true
		}
	}
	return false, false
}

// unwrapped returns the string in {"input": "..."}, or args if it is not an object with one string. The name of the
// member does not matter, because models do not always keep to it.
func unwrapped(args string) string {
	if !fields.ValidLenientString(args) {
		return args
	}
	value, members := "", 0
	chunks.OnlyObject(gjson.Parse(args)).ForEach(func(_, v gjson.Result) bool {
		members++
		if v.Type != gjson.String {
			members++ // not ours
		}
		value = v.String()
		return true
	})
	if members != 1 {
		return args
	}
	return value
}

// citable reports whether the shape has a form for a citation: it knows
// addresses, and none of the documents that a client of another shape gave.
func citable(c dialogue.Citation) bool { return c.URL != "" }

// writeAnnotation writes one source, if the shape has a form for it. Positions count from the beginning of the
// content: base is where the cited part began, end where the text is now.
func writeAnnotation(w *jsonw.Writer, c *dialogue.Citation, base, end int) {
	if !citable(*c) {
		return
	}
	from, to := base+c.Start, base+c.End
	if c.Start == 0 && c.End == 0 { // unknown: all of the part so far
		to = end
	}
	w.Object().Key("type").String("url_citation")
	w.Key("url_citation").Object()
	w.Key("start_index").Int(int64(from)).Key("end_index").Int(int64(to))
	w.Key("url").String(c.URL).Key("title").String(c.Title)
	w.End().End()
}

// writeSignature writes a call's thought signature where the vendor's own
// chat-compatible service puts it.
func writeSignature(w *jsonw.Writer, signature string) {
	w.Key("extra_content").Object().Key("google").Object()
	w.Key("thought_signature").String(signature)
	w.End().End()
}

// writeAudio writes the audio of a message. The transcript is the name of the media.
func writeAudio(w *jsonw.Writer, m *dialogue.Media, created int64, env *dialogue.Env) {
	w.Object().Key("id").String("audio_" + env.ID())
	w.Key("expires_at").Int(created + audioLife)
	w.Key("data").String(m.Base64)
	w.Key("transcript").String(m.Name)
	w.End()
}

// imageURL returns the address of a picture in a reply, which is a data URL if the picture came by value. It is "" if
// there is none.
func imageURL(m *dialogue.Media) string {
	switch {
	case m == nil || m.Kind != dialogue.Image:
		return ""
	case m.Base64 != "":
		return "data:" + cmp.Or(m.MIME, "image/png") + ";base64," + m.Base64
	}
	return m.URL
}

// writeImage writes an element of the member images, with which models return pictures beside their text.
func writeImage(w *jsonw.Writer, index int, url string) {
	w.Object().Key("index").Int(int64(index)).Key("type").String("image_url")
	w.Key("image_url").Object().Key("url").String(url).End().End()
}

// joined concatenates the logprobs arrays of many deltas.
func joined(arrays []json.RawMessage) json.RawMessage {
	w := jsonw.Writer{}
	w.Array()
	for _, a := range arrays {
		chunks.OnlyArray(fields.View(a)).ForEach(func(_, v gjson.Result) bool {
			w.RawString(v.Raw)
			return true
		})
	}
	w.End()
	return w.Buf
}
