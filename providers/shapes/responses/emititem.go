package responses

import (
	"encoding/json"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// itemKind is the sort of an output item that the emitter writes.
type itemKind uint8

// The sorts of output items.
const (
	messageItem itemKind = iota
	reasoningItem
	callItem
	customItem
	imageItem
	opaqueItem // an item of this shape's own upstream, as it came
)

// prefixes begin the ids of items. Clients tell the types of items apart by them.
var prefixes = [...]string{messageItem: "msg_", reasoningItem: "rs_", callItem: "fc_", customItem: "ctc_",
	imageItem: "ig_"}

// outputItem is an item of the response. It is kept until the response ends, because the last event
// has all items.
type outputItem struct {
	kind   itemKind
	index  int
	id     string
	status string

	contents []content // of a message
	// text has everything so far: the summary, arguments or input, or a picture in base64.
	text []byte

	callID, name, namespace string
	unwrap                  *unwrapper // the input of a custom tool comes as JSON
	encrypted               string
	opaque                  json.RawMessage
}

// content is a part of a message's content.
type content struct {
	refusal     bool
	closed      bool
	text        []byte
	annotations []json.RawMessage
	logprobs    []json.RawMessage
}

// append writes the item. fresh writes it as it is announced, without anything that its deltas will
// bring.
func (it *outputItem) append(w *jsonw.Writer, fresh bool) {
	if it.kind == opaqueItem {
		w.Raw(it.opaque)
		return
	}
	w.Object()
	w.Key("id").String(it.id)
	switch it.kind {
	case messageItem:
		it.appendMessage(w, fresh)
	case reasoningItem:
		it.appendReasoning(w, fresh)
	case callItem:
		w.Key("type").String("function_call")
		it.appendCall(w, "arguments", fresh)
	case customItem:
		w.Key("type").String("custom_tool_call")
		it.appendCall(w, "input", fresh)
	case imageItem:
		w.Key("type").String("image_generation_call")
		w.Key("status").String(it.status)
		if !fresh {
			w.Key("result").Text(it.text)
		}
	}
	w.End()
}

// appendMessage writes a message. fresh is set for the event that adds it, in which it has no content yet.
func (it *outputItem) appendMessage(w *jsonw.Writer, fresh bool) {
	w.Key("type").String("message")
	w.Key("status").String(it.status)
	w.Key("role").String("assistant")
	w.Key("content").Array()
	if !fresh {
		for i := range it.contents {
			it.contents[i].append(w)
		}
	}
	w.End()
}

// appendReasoning writes reasoning with its summary and, if the client may send it back, its encrypted form.
func (it *outputItem) appendReasoning(w *jsonw.Writer, fresh bool) {
	w.Key("type").String("reasoning")
	w.Key("summary").Array()
	if !fresh && len(it.text) > 0 {
		appendSummary(w, it.text)
	}
	w.End()
	if !fresh && it.encrypted != "" {
		w.Key("encrypted_content").String(it.encrypted)
	}
}

// appendSummary writes the one part of a summary.
func appendSummary(w *jsonw.Writer, text []byte) {
	w.Object().Key("type").String("summary_text").Key("text").Text(text).End()
}

// appendCall writes the members of a call. field is the name of the member with its input.
func (it *outputItem) appendCall(w *jsonw.Writer, field string, fresh bool) {
	w.Key("status").String(it.status)
	w.Key("call_id").String(it.callID)
	w.Key("name").String(it.name)
	if it.namespace != "" {
		w.Key("namespace").String(it.namespace)
	}
	text := ""
	if !fresh {
		text = string(it.text)
	}
	w.Key(field).String(text)
}

// append writes the part with the text, annotations and logprobs so far.
func (c *content) append(w *jsonw.Writer) {
	if c.refusal {
		w.Object().Key("type").String("refusal").Key("refusal").Text(c.text).End()
		return
	}
	w.Object().Key("type").String("output_text")
	w.Key("text").Text(c.text)
	w.Key("annotations").Array()
	for _, a := range c.annotations {
		w.Raw(a)
	}
	w.End()
	w.Key("logprobs")
	appendLogProbs(w, c.logprobs)
	w.End()
}

// appendLogProbs joins the arrays that came with the deltas into one.
func appendLogProbs(w *jsonw.Writer, arrays []json.RawMessage) {
	w.Array()
	for _, a := range arrays {
		eachElement(a, func(element string) { w.RawString(element) })
	}
	w.End()
}

// annotation returns c as an annotation, or nil if it has no address: the other types of
// annotations refer to files that only their own provider has.
func annotation(c *dialogue.Citation) json.RawMessage {
	if c.Origin == Name && len(c.Opaque) > 0 {
		return append(json.RawMessage(nil), c.Opaque...)
	}
	if c.URL == "" {
		return nil
	}
	var w jsonw.Writer
	w.Object().Key("type").String("url_citation")
	w.Key("url").String(c.URL)
	w.Key("title").String(c.Title)
	w.Key("start_index").Int(int64(c.Start))
	w.Key("end_index").Int(int64(c.End))
	return w.End().Buf
}
