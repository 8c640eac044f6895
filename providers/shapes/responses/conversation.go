package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// ConversationRequest is the body of a request to the Conversations API.
type ConversationRequest struct {
	// Metadata is the given map as JSON, {} if it is null, or nil without one.
	Metadata json.RawMessage
	// Input is a request body whose input is the given items, or nil without items.
	Input []byte
}

// ReadConversation reads the body of a request that creates or changes a conversation. It allows at most maxItems
// items.
func ReadConversation(body []byte, maxItems int) (r ConversationRequest, err *dialogue.Error) {
	root := fields.View(body)
	if !root.IsObject() {
		return r, dialogue.Invalid("body", "must be a JSON object")
	}
	if v := root.Get("metadata"); given(v) {
		if err := checkMetadata(nil, "metadata", v); err != nil {
			return r, err
		}
		r.Metadata = raw(v)
	} else if v.Exists() {
		r.Metadata = json.RawMessage("{}")
	}
	v := root.Get("items")
	switch {
	case !given(v):
		return r, nil
	case !v.IsArray():
		return r, dialogue.Invalid("items", "must be an array")
	case longerThan(v, maxItems):
		return r, dialogue.Invalid("items", fmt.Sprintf("must have at most %d items", maxItems))
	}
	if err := each("items", v, checkItem); err != nil {
		return r, err
	}
	var w jsonw.Writer
	r.Input = w.Object().Key("input").RawString(v.Raw).End().Buf
	return r, nil
}

// longerThan reports whether an array has more than n elements. It reads no more of it than that takes.
func longerThan(v gjson.Result, n int) bool {
	v.ForEach(func(_, _ gjson.Result) bool {
		n--
		return n >= 0
	})
	return n < 0
}

// checkConversation reads the id of a conversation, as a string or in an object.
func checkConversation(c *checker, path string, v gjson.Result) *dialogue.Error {
	if v.IsObject() {
		v, path = v.Get("id"), path+".id"
	}
	if v.Type != gjson.String {
		return dialogue.Invalid(path, "must be a string, or an object with an id")
	}
	if v.Str == "" {
		return dialogue.Invalid(path, "must not be empty")
	}
	c.head.Conversation = v.Str
	return nil
}

// WithConversation returns body with the conversation in the form that responses have.
func WithConversation(body []byte, id string) []byte {
	var w jsonw.Writer
	p := patch{body: body}
	p.setRaw("conversation", w.Object().Key("id").String(id).End().Buf)
	return p.body
}

// maxItemID is the most bytes of an item's id in a conversation. Ids come from clients and are
// kept.
const maxItemID = 128

// CheckItems returns the error for items, which all have ids, that cannot be added to a conversation because an id is
// too long or occurs twice. history has the items of the conversation, or is nil if they are compared elsewhere.
// Ids must be unique within a conversation, because clients page through the items by id and delete
// them by id.
func CheckItems(param string, history, items []json.RawMessage) *dialogue.Error {
	ids := make(map[string]bool, len(history)+len(items))
	for _, it := range history {
		ids[itemID(it)] = true
	}
	for _, it := range items {
		switch id := itemID(it); {
		case len(id) > maxItemID:
			return dialogue.Invalid(param, fmt.Sprintf("ids of items must have at most %d bytes", maxItemID))
		case ids[id]:
			return DuplicateItem(param, id)
		default:
			ids[id] = true
		}
	}
	return nil
}

// DuplicateItem returns the 400 for an item whose id is taken, with the text by which clients know it.
func DuplicateItem(param, id string) *dialogue.Error {
	e := dialogue.Invalid(param, "")
	e.Message = "Duplicate item found with id " + shortID(id) +
		". Remove duplicate items from your input and try again."
	e.Code = nil
	return e
}

// shortID cuts an id of a client for a message.
func shortID(id string) string { return strings.ToValidUTF8(id[:min(len(id), maxItemID)], "") }

// CheckCalls returns the error for a conversation in which a call has no output or an output has no call, which no
// upstream takes. Without it a conversation would fail with another text at each upstream.
func CheckCalls(history, items []json.RawMessage) *dialogue.Error {
	var calls, outputs []string
	called, answered := make(map[string]bool), make(map[string]bool)
	for _, list := range [][]json.RawMessage{history, items} {
		for _, raw := range list {
			item := fields.View(raw)
			id := item.Get("call_id").Str
			switch item.Get("type").Str {
			case "function_call", "custom_tool_call":
				calls, called[id] = append(calls, id), true
			case "function_call_output", "custom_tool_call_output":
				outputs, answered[id] = append(outputs, id), true
			}
		}
	}
	unpaired := func(ids []string, others map[string]bool, text string) *dialogue.Error {
		for _, id := range ids {
			if !others[id] {
				e := dialogue.Invalid("input", "")
				e.Message, e.Code = text+shortID(id)+".", nil
				return e
			}
		}
		return nil
	}
	if err := unpaired(calls, answered, "No tool output found for function call "); err != nil {
		return err
	}
	return unpaired(outputs, called, "No tool call found for function call output with call_id ")
}

// ItemPage collects one page of a list of items, of which each is seen once, the oldest first. It
// keeps no more items than the page has, and one to learn whether there are more, however long the
// list is.
// A page of 20 items holds at most 21 of them in memory, whichever end it begins at, although a
// conversation can be far larger.
type ItemPage struct {
	limit      int
	descending bool
	after      string
	found      bool // the item that after names
	items      []json.RawMessage
}

// NewItemPage returns an empty page. limit 0, order "" and after "" mean not given: 20 items, newest first, from the
// beginning.
func NewItemPage(limit int, order, after string) (*ItemPage, *dialogue.Error) {
	limit = cmp.Or(limit, defaultPage)
	switch {
	case limit < 1 || limit > maxPage:
		return nil, dialogue.Invalid("limit", "must be between 1 and 100")
	case order != "" && order != "asc" && order != "desc":
		return nil, dialogue.Invalid("order", "must be one of asc, desc")
	}
	return &ItemPage{limit: limit, descending: order != "asc", after: after, found: after == ""}, nil
}

// Add adds the next item of the list, the oldest one first, and reports whether the page needs no further one. It keeps
// a copy.
// In descending order the page is a window that slides to the newest items. It stops at the item
// that after names, because the list is read from the oldest item and the page ends just before
// that one.
func (p *ItemPage) Add(item []byte) (full bool) {
	named := p.after != "" && itemID(item) == p.after
	if p.descending {
		if named {
			p.found = true
			return true
		}
		if len(p.items) > p.limit { // one more than the page has shows that there are more
			p.items = p.items[1:]
		}
	} else if !p.found {
		p.found = named
		return false
	}
	p.items = append(p.items, append(json.RawMessage(nil), item...))
	return !p.descending && len(p.items) > p.limit
}

// List returns the page as the API does, with its items as show returns them. An after that no item had is an error.
func (p *ItemPage) List(show func(json.RawMessage) json.RawMessage) ([]byte, *dialogue.Error) {
	if !p.found {
		return nil, dialogue.Invalid("after", "is not the id of an item of this list")
	}
	if p.descending {
		slices.Reverse(p.items)
	}
	more := len(p.items) > p.limit
	if more {
		p.items = p.items[:p.limit]
	}
	for i := range p.items {
		p.items[i] = show(p.items[i])
	}
	return listOf(p.items, more), nil
}
