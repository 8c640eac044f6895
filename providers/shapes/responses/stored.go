package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// idPrefixes begin the ids of items that clients send without one.
var idPrefixes = map[string]string{
	"message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "custom_tool_call": "ctc_",
	"custom_tool_call_output": "ctco_", "reasoning": "rs_", "file_search_call": "fs_", "web_search_call": "ws_",
	"image_generation_call": "ig_", "computer_call": "cu_", "code_interpreter_call": "ci_", "mcp_call": "mcp_",
	"mcp_list_tools": "mcpl_", "mcp_approval_request": "mcpr_", "compaction": "cmp_",
}

// InputItems lists the input of a request as GET input_items returns it: every
// item has a type and an id, and the content of a message is an array of parts.
// newID makes the body of an id.
func InputItems(body []byte, newID func() string) []json.RawMessage {
	var out []json.RawMessage
	for _, item := range Items(body) {
		out = append(out, completeItem(gjson.ParseBytes(item), newID))
	}
	return out
}

// ownItems returns the items of input as they stand; a string is one message.
func ownItems(body []byte) []json.RawMessage {
	input := gjson.GetBytes(body, "input")
	if input.Type == gjson.String {
		var w jsonw.Writer
		w.Object().Key("type").String("message").Key("role").String("user")
		w.Key("content").Array().Object().Key("type").String("input_text").Key("text").RawString(input.Raw)
		w.End().End().End()
		return []json.RawMessage{w.Buf}
	}
	return elements(input)
}

// elements returns the elements of an array, or nil if it is not one. They share memory with it.
func elements(array gjson.Result) []json.RawMessage {
	var out []json.RawMessage
	if array.IsArray() {
		array.ForEach(func(_, v gjson.Result) bool {
			out = append(out, json.RawMessage(v.Raw))
			return true
		})
	}
	return out
}

// completeItem returns an item with what the client left out: an id, the type, and the array around a
// text.
// Members that it does not know are copied as they are, in their sequence, so that an item of a
// newer client survives being stored and returned.
func completeItem(item gjson.Result, newID func() string) json.RawMessage {
	if !item.IsObject() {
		return json.RawMessage(item.Raw)
	}
	kind := itemType(item)
	var w jsonw.Writer
	w.Object()
	if item.Get("id").Str == "" {
		prefix, ok := idPrefixes[kind]
		if !ok {
			prefix = "item_"
		}
		w.Key("id").String(prefix + newID())
	}
	if item.Get("type").Str == "" {
		w.Key("type").String(kind)
	}
	item.ForEach(func(key, v gjson.Result) bool {
		switch {
		case (key.Str == "id" || key.Str == "type") && v.Str == "":
		case key.Str == "content" && kind == "message" && v.Type == gjson.String:
			w.Key("content")
			appendContent(&w, item.Get("role").Str, v)
		default:
			w.KeyOf(key.Str).RawString(v.Raw)
		}
		return true
	})
	return w.End().Buf
}

// appendContent writes a message's text as an array of one part.
func appendContent(w *jsonw.Writer, role string, text gjson.Result) {
	w.Array().Object()
	if role == "assistant" {
		w.Key("type").String("output_text").Key("text").RawString(text.Raw)
		w.Key("annotations").Array().End()
	} else {
		w.Key("type").String("input_text").Key("text").RawString(text.Raw)
	}
	w.End().End()
}

// Items lists the items in the input of a request as they stand. A string is one message. A compaction_trigger is left
// out, because it asks for a summary and is not part of the conversation. The items are views of body.
func Items(body []byte) []json.RawMessage {
	return slices.DeleteFunc(ownItems(body), isTrigger)
}

// IsTranscript reports whether the input of body has a compacted conversation, so that it stands for all that
// came before it.
func IsTranscript(body []byte) bool {
	if !bytes.Contains(body, []byte("compaction")) {
		return false
	}
	return slices.ContainsFunc(ownItems(body), func(item json.RawMessage) bool {
		return isCompaction(fields.View(item).Get("type").Str)
	})
}

// Prepend returns body with items in front of its own input and without previous_response_id, which items stand for. Of
// a compacted conversation only what its newest compaction left is put there. body is not written to.
func Prepend(body []byte, items []json.RawMessage) []byte {
	var w jsonw.Writer
	w.Array()
	for _, item := range withoutCompacted(items) {
		w.Raw(item)
	}
	for _, item := range ownItems(body) {
		w.Raw(item)
	}
	w.End()
	p := patch{body: body}
	p.setRaw("input", w.Buf)
	p.removeIf("previous_response_id", gjson.Result.Exists)
	return p.body
}

// References lists the ids that the item references in the input of body name.
func References(body []byte) (ids []string) {
	for _, item := range ownItems(body) {
		if v := gjson.ParseBytes(item); itemType(v) == "item_reference" {
			ids = append(ids, v.Get("id").Str)
		}
	}
	return ids
}

// Resolve replaces the item references in the input of body by the items in known. Another reference stays if forward
// is set, for the upstream to resolve, and is an error otherwise. So is a body that would be longer than most bytes,
// because a few bytes of references may name the same large item many times. grow is called with the bytes that are
// needed before they are allocated, and its error is returned.
// The references are resolved before an upstream is chosen, because only this gateway knows the
// items that it stored, and a target of another shape has no notion of a reference.
func Resolve(body []byte, known map[string]json.RawMessage, forward bool, most int,
	grow func(n int64) *dialogue.Error) ([]byte, *dialogue.Error) {
	items, size, found := ownItems(body), len(body), false
	for i, item := range items {
		v := gjson.ParseBytes(item)
		if itemType(v) != "item_reference" {
			continue
		}
		switch stored := known[v.Get("id").Str]; {
		case stored != nil:
			items[i], found = stored, true
			size += len(stored)
		case !forward:
			return nil, dialogue.NotStored("input", "item_not_found", "an item that it refers to is not stored")
		}
	}
	if !found {
		return body, nil
	}
	if size > most {
		return nil, dialogue.Invalid("input", fmt.Sprintf(
			"must not be longer than %d MiB with the items that it refers to", most>>20))
	}
	const perByte = 3 // copies: the list, as it grows, and the body
	if err := grow(perByte * int64(size)); err != nil {
		return nil, err
	}
	var w jsonw.Writer
	w.Array()
	for _, item := range items {
		w.Raw(item)
	}
	p := patch{body: body}
	p.setRaw("input", w.End().Buf)
	return p.body, nil
}

// Elements lists the elements of an array.
func Elements(array []byte) []json.RawMessage { return elements(gjson.ParseBytes(array)) }

// OutputItems lists the output of a response.
func OutputItems(response []byte) []json.RawMessage {
	return elements(gjson.GetBytes(response, "output"))
}

// Status returns the status of a response.
func Status(response []byte) string { return gjson.GetBytes(response, "status").String() }

// Terminal reports whether a response of this status will not change any more.
func Terminal(status string) bool {
	return slices.Contains([]string{statusCompleted, statusIncomplete, statusFailed, statusCancelled}, status)
}

// Answered reports whether a response of this status has ended with an answer, whole or cut off.
func Answered(status string) bool { return status == statusCompleted || status == statusIncomplete }

// Queued returns the response to a background request that has not begun.
func Queued(body []byte, id string, now time.Time) []byte {
	o := newObject(body)
	o.id, o.created, o.status = id, now.Unix(), statusQueued
	var w jsonw.Writer
	o.append(&w, func(*jsonw.Writer) {})
	return w.Buf
}

// WarmedUp returns the stream of a response without output. It is the reply to a request that a client sends to
// prepare the next one.
func WarmedUp(body []byte, id string, now time.Time) []byte {
	o := newObject(body)
	o.id, o.created, o.completed, o.status = id, now.Unix(), now.Unix(), statusInProgress
	var w jsonw.Writer
	event := func(name string, number int64) {
		w.Buf = append(append(append(w.Buf, "event: "...), name...), "\ndata: "...)
		w.Object().Key("type").String(name).Key("sequence_number").Int(number).Key("response")
		o.append(&w, func(*jsonw.Writer) {})
		w.End()
		w.Buf = append(w.Buf, "\n\n"...)
	}
	event("response.created", 0)
	o.status, o.usage = statusCompleted, &dialogue.Usage{}
	event("response.completed", 1)
	return w.Buf
}

// Cancelled returns response after its cancellation. One that has ended stays as it is, because
// cancelling twice is not an error.
func Cancelled(response []byte, _ time.Time) []byte {
	if Terminal(Status(response)) {
		return response
	}
	return ended(response, statusCancelled, []byte("null"))
}

// Failed returns response after err ended it.
func Failed(response []byte, err *dialogue.Error) []byte {
	var w jsonw.Writer
	appendFailure(&w, err)
	return ended(response, statusFailed, w.Buf)
}

// ended returns response with a final status and an error, which is JSON.
func ended(response []byte, status string, failure []byte) []byte {
	p := patch{body: response}
	p.set("status", status)
	p.setRaw("error", failure)
	p.removeIf("completed_at", gjson.Result.Exists)
	return p.body
}

// Deleted returns the reply to the deletion of a response.
func Deleted(id string) []byte {
	var w jsonw.Writer
	w.Object().Key("id").String(id).Key("object").String("response").Key("deleted").Bool(true)
	return w.End().Buf
}

// The number of items on a page that a client does not choose, and the largest that it can choose.
const (
	defaultPage = 20
	maxPage     = 100
)

// itemID returns the id of a stored item.
func itemID(item json.RawMessage) string { return gjson.GetBytes(item, "id").String() }

// listOf returns a page of items. more reports whether further pages follow.
func listOf(page []json.RawMessage, more bool) []byte {
	var first, last string
	if len(page) > 0 {
		first, last = itemID(page[0]), itemID(page[len(page)-1])
	}
	var w jsonw.Writer
	w.Object().Key("object").String("list")
	w.Key("data").Array()
	for _, item := range page {
		w.Raw(item)
	}
	w.End()
	w.Key("first_id").StringOrNull(first)
	w.Key("last_id").StringOrNull(last)
	w.Key("has_more").Bool(more)
	return w.End().Buf
}

// StoredPath returns the path of a stored response at the upstream that made it.
func StoredPath(id string) string { return callPath + "/" + id }
