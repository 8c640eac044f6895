package chat

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// call is the state of one tool call. It is opened when its id and name are known, and arguments
// that come earlier wait in args.
type call struct {
	index     int64 // on the wire; -1 if the server sends none
	id, name  string
	custom    bool
	signature string

	part   int
	opened bool
	closed bool
	// args has all arguments so far. The first sent bytes have been emitted. The first cut bytes
	// are known not to be a whole JSON value, so that they are not checked again at every piece.
	args []byte
	sent int
	cut  int
	join fields.FragmentJoiner
}

// call reads one entry of tool_calls: the next piece of a call or a new one.
func (c *choice) call(v gjson.Result) {
	var id, name, args gjson.Result
	index, custom, signature := int64(-1), false, ""
	chunks.OnlyObject(v).ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
			if v.Type == gjson.Number {
				index = int64(v.Num)
			}
		case "id":
			id = v
		case "function":
			name, args = v.Get("name"), v.Get("arguments")
		case "custom":
			custom, name, args = true, v.Get("name"), v.Get("input")
		case "extra_content":
			signature = v.Get("google.thought_signature").Str
		}
		return true
	})
	k := c.find(index, id.Str, name.Str)
	if k == nil {
		k = &call{index: index, custom: custom}
		c.calls = append(c.calls, k)
	}
	if k.id == "" {
		k.id = id.Str
	}
	if k.name == "" {
		k.name = name.Str
	}
	if signature != "" {
		k.signature = signature
	}
	c.addArguments(k, args)
}

// legacy reads a function_call, which is the only call and has no id.
func (c *choice) legacy(v gjson.Result) {
	if len(c.calls) == 0 {
		c.calls = append(c.calls, &call{index: -1, id: c.env.CallID()})
	}
	k := c.calls[0]
	if k.name == "" {
		k.name = v.Get("name").Str
	}
	c.addArguments(k, v.Get("arguments"))
}

// find returns the call that an entry of tool_calls continues, or nil for a new one: the call with
// its index, else with its id, else the last one. An entry with a new id and a name under a known
// index is a new call, because some servers number every call 0. In a whole message every entry is
// a new call.
func (c *choice) find(index int64, id, name string) *call {
	if c.whole {
		return nil
	}
	for i := len(c.calls) - 1; i >= 0; i-- {
		k := c.calls[i]
		switch {
		case index >= 0 && k.index == index:
			if id != "" && name != "" && k.id != "" && k.id != id {
				continue
			}
			return k
		case index < 0 && id != "" && k.id == id:
			return k
		case index < 0 && id == "" && (name == "" || k.name == ""):
			return k
		}
	}
	return nil
}

// addArguments adds a piece of arguments to a call and emits what can be emitted. Some servers send an
// object where the shape has a string; its JSON is taken.
func (c *choice) addArguments(k *call, args gjson.Result) {
	switch {
	case args.Type == gjson.String:
		k.args = append(k.args, k.join.Add(args)...)
	case args.IsObject():
		k.args = append(k.args, args.Raw...)
	}
	if k.closed || k.name == "" || k.id == "" {
		return
	}
	if !k.opened {
		c.openCall(k)
	}
	c.flush(k)
}

// openCall emits EventOpen for a call. The open text ends, and so do calls that are complete.
func (c *choice) openCall(k *call) {
	// Text that comes behind a call is a part of its own.
	c.end()
	c.closeComplete()
	k.opened, k.part, c.called = true, c.parts, true
	c.parts++
	*c.ev = dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: k.part, PartKind: dialogue.CallPart,
		Call: &dialogue.Call{ID: k.id, Name: k.name, Custom: k.custom}}
	c.emit(c.ev)
}

// flush emits the arguments that have not been emitted.
func (c *choice) flush(k *call) {
	if k.sent == len(k.args) {
		return
	}
	*c.ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: k.part,
		Text: fields.TextOf(k.args[k.sent:])}
	k.sent = len(k.args)
	c.emit(c.ev)
}

// settle ends a call at the end of its choice. One whose id never came gets an id, and one without
// a name is dropped, because no client could execute it.
func (c *choice) settle(k *call) {
	if k.closed || k.name == "" {
		return
	}
	k.args = append(k.args, k.join.Rest()...)
	if !k.opened {
		if k.id == "" {
			k.id = c.env.CallID()
		}
		c.openCall(k)
	}
	c.flush(k)
	c.closeCall(k)
}

// closeCall emits EventClose for a call.
func (c *choice) closeCall(k *call) {
	k.closed = true
	*c.ev = dialogue.Event{Kind: dialogue.EventClose, Choice: c.index, Part: k.part, Signature: k.signature}
	c.emit(c.ev)
}

// closeComplete closes the open calls whose arguments are a whole JSON value, so that clients which
// show one block at a time need not wait for the end. "{}" alone may be a placeholder that the real
// ones follow.
func (c *choice) closeComplete() {
	for _, k := range c.calls {
		if !k.opened || k.closed || k.custom || len(k.args) <= max(len("{}"), k.cut) {
			continue
		}
		if fields.ValidLenient(k.args) {
			c.closeCall(k)
		} else {
			k.cut = len(k.args)
		}
	}
}
