package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// Conversation returns the object of a conversation. created is in seconds.
func Conversation(id string, created int64, metadata []byte) []byte {
	var w jsonw.Writer
	w.Object().Key("id").String(id).Key("object").String("conversation").Key("created_at").Int(created)
	return w.Key("metadata").Raw(metadata).End().Buf
}

// DeletedConversation returns the reply to the deletion of a conversation.
func DeletedConversation(id string) []byte {
	var w jsonw.Writer
	w.Object().Key("id").String(id).Key("object").String("conversation.deleted").Key("deleted").Bool(true)
	return w.End().Buf
}

// ShownItems returns the list of items that were added, as ShownItem shows them.
func ShownItems(items []json.RawMessage, include []string) []byte {
	shown := make([]json.RawMessage, len(items))
	for i, it := range items {
		shown[i] = ShownItem(it, include)
	}
	return listOf(shown, false)
}

// included are the members of items that are shown only on request: by the names that a request has for them in
// include, which are also the paths to them.
var included = []string{
	"web_search_call.action.sources", "code_interpreter_call.outputs", "computer_call_output.output.image_url",
	"file_search_call.results", "message.input_image.image_url", "message.output_text.logprobs",
	"reasoning.encrypted_content",
}

// ShownItem returns an item of a conversation as the API shows it: with a status, with annotations beside the text of
// a model, and without the members that include does not name.
func ShownItem(item json.RawMessage, include []string) json.RawMessage {
	v := fields.View(item)
	if !v.IsObject() {
		return item
	}
	kind := itemType(v)
	shown := func(path string) bool { return !slices.Contains(included, path) || slices.Contains(include, path) }
	var w jsonw.Writer
	w.Object()
	v.ForEach(func(key, m gjson.Result) bool {
		path := kind + "." + key.Str
		switch {
		case !shown(path):
		case path == "message.content" && m.IsArray():
			w.Key("content").Array()
			m.ForEach(func(_, part gjson.Result) bool {
				appendShown(&w, "message."+part.Get("type").Str, part, shown)
				return true
			})
			w.End()
		case path == "web_search_call.action" || path == "computer_call_output.output":
			w.KeyOf(key.Str)
			appendShown(&w, path, m, shown)
		default:
			w.KeyOf(key.Str).RawString(m.Raw)
		}
		return true
	})
	if has := kind == "message" || kind == "reasoning" || strings.HasSuffix(kind, "_call") ||
		strings.HasSuffix(kind, "_output"); has && !v.Get("status").Exists() {
		w.Key("status").String(statusCompleted)
	}
	return w.End().Buf
}

// appendShown writes a part of an item, whose members are called path and a name.
func appendShown(w *jsonw.Writer, path string, v gjson.Result, shown func(path string) bool) {
	if !v.IsObject() {
		w.RawString(v.Raw)
		return
	}
	w.Object()
	v.ForEach(func(key, m gjson.Result) bool {
		if shown(path + "." + key.Str) {
			w.KeyOf(key.Str).RawString(m.Raw)
		}
		return true
	})
	if path == "message.output_text" && !v.Get("annotations").Exists() {
		w.Key("annotations").Array().End()
	}
	w.End()
}
