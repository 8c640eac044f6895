package chunks

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Tap observes a reply on the passthrough path. Every chunk of every such stream passes through
// Event, so it forwards most of them after a look at their names. It parses only chunks that may
// have usage, an error or a finish reason, and those before the first content.
type Tap struct {
	// Content reports whether a choice, streamed or whole, has any part of an answer. This is
	// the only difference between the two shapes.
	Content func(choice gjson.Result) bool

	Options shapes.TapOptions

	usage    dialogue.Usage
	counted  bool
	reason   dialogue.Reason
	finished [MaxChoices / 64]uint64 // a bit for each choice that has ended
	ended    int                     // number of choices that have ended
	content  bool
	done     bool
	err      *dialogue.Error
}

var (
	doneWord = []byte("[DONE]")
	nullWord = []byte("null")
)

// Event implements shapes.Tap.
func (t *Tap) Event(name string, data []byte) ([]byte, shapes.Verdict, bool) {
	switch {
	case t.done || t.err != nil:
		return nil, shapes.Drop, false
	case bytes.Equal(bytes.TrimSpace(data), doneWord):
		t.done = true
		return nil, shapes.Forward, false
	}
	verdict := shapes.Forward
	if !t.content || t.ended > 0 || name == "error" || mayEnd(data) {
		left, v := t.parseEvent(name, data)
		if v == shapes.Drop || v == shapes.Failed {
			return nil, v, false
		}
		data, verdict = left, v
	}
	if t.Options.Model != "" {
		if replaced, ok := withModel(data, t.Options.Model); ok {
			data, verdict = replaced, shapes.Replace
		}
	}
	if verdict == shapes.Forward {
		data = nil
	}
	return data, verdict, t.content
}

// parseEvent parses an event and returns the part that the client gets. Once every choice has
// ended, it drops an event that is not JSON, because the answer is complete.
func (t *Tap) parseEvent(name string, data []byte) (left []byte, v shapes.Verdict) {
	answered := t.Answered()
	chunk := gjson.ParseBytes(data)
	if name == "error" || HasError(chunk) {
		t.err = DecodeFailure(chunk)
		return nil, shapes.Failed
	}
	usage := chunk.Get("usage").IsObject()
	if usage {
		t.addUsage(chunk.Get("usage"))
	}
	var open []string // choices that had not ended before
	choices := 0
	OnlyArray(chunk.Get("choices")).ForEach(func(_, c gjson.Result) bool {
		choices++
		index := c.Get("index").Int()
		if answered || t.hasEnded(index) {
			return true // the choice has ended already, but some servers go on with it
		}
		open = append(open, c.Raw)
		t.content = t.content || t.Content(c)
		if word := c.Get("finish_reason"); word.Type == gjson.String && word.Str != "" {
			t.endChoice(index, word.Str)
		}
		return true
	})
	switch {
	case len(open) == 0 && usage && t.Options.HideUsage:
		return nil, shapes.Drop // clients of the vendor read choices[0] without checking
	case len(open) == choices:
		return data, shapes.Forward
	case len(open) == 0 && !usage:
		return nil, shapes.Drop
	}
	left, err := sjson.SetRawBytes(data, "choices", []byte("["+strings.Join(open, ",")+"]"))
	if err != nil {
		return nil, shapes.Drop // sjson does not write what it cannot read
	}
	return left, shapes.Replace
}

// hasEnded reports whether a choice has ended.
func (t *Tap) hasEnded(index int64) bool {
	return index >= 0 && index < MaxChoices && t.finished[index/64]&(1<<(index%64)) != 0
}

// endChoice records how a choice ended. Later reasons for the same choice are ignored.
func (t *Tap) endChoice(index int64, word string) {
	if t.hasEnded(index) {
		return
	}
	if index >= 0 && index < MaxChoices {
		t.finished[index/64] |= 1 << (index % 64)
	}
	t.reason = ParseFinishReason(word)
	t.ended++
}

// addUsage merges the counts of a chunk into the usage.
func (t *Tap) addUsage(v gjson.Result) {
	if !t.counted {
		t.usage, t.counted = dialogue.NoUsage, true
	}
	t.usage.Merge(Usage(v))
}

// Body implements shapes.Tap.
func (t *Tap) Body(body []byte) ([]byte, *dialogue.Error) {
	r := fields.NewLenientReader(body)
	defer r.Free()
	if r.Peek() != fields.Object {
		return nil, dialogue.BadUpstream("reply is not a JSON object")
	}
	failed, listed := false, false
	_ = r.Object(func(name []byte) error {
		switch string(name) {
		case "error":
			failed = !r.Null()
		case "choices":
			if listed = r.Peek() == fields.Array; listed {
				return t.readChoices(r)
			}
		case "usage":
			if r.Peek() == fields.Object {
				t.addUsage(fields.View(r.Skip()))
			}
		}
		return nil
	})
	if bad := r.BadReply("reply"); bad != nil {
		return nil, bad
	}
	switch {
	case failed:
		return nil, DecodeFailure(gjson.ParseBytes(body))
	case !listed:
		return nil, dialogue.BadUpstream("reply has no choices")
	}
	t.done = true
	if t.Options.Model == "" {
		return body, nil
	}
	if replaced, ok := withModel(body, t.Options.Model); ok {
		return replaced, nil
	}
	return body, nil
}

// readChoices records how the choices of a whole reply ended.
func (t *Tap) readChoices(r *fields.Reader) error {
	return r.Array(func(int) error {
		if r.Peek() != fields.Object {
			return nil
		}
		index, word := int64(0), ""
		err := r.Object(func(name []byte) error {
			switch string(name) {
			case "index":
				index = fields.View(r.Skip()).Int()
			case "finish_reason":
				word = fields.View(r.Skip()).Str
			}
			return nil
		})
		if word != "" {
			t.endChoice(index, word)
		}
		return err
	})
}

// EOF implements shapes.Tap. Some servers leave out [DONE], so a reply with a finish reason is
// complete without it. The client still gets one.
func (t *Tap) EOF() ([]byte, *dialogue.Error) {
	switch {
	case t.done:
		return nil, nil
	case t.ended == 0:
		return nil, dialogue.Incomplete()
	}
	t.done = true
	return []byte(Done), nil
}

// Answered implements shapes.Tap.
func (t *Tap) Answered() bool { return t.done || t.ended >= max(t.Options.Choices, 1) }

// Err implements shapes.Tap.
func (t *Tap) Err() *dialogue.Error { return t.err }

// Done implements shapes.Tap.
func (t *Tap) Done() bool { return t.done }

// Fail implements shapes.Tap.
func (t *Tap) Fail(dst []byte, err *dialogue.Error) []byte { return AppendFailure(dst, err) }

// Usage implements shapes.Tap.
func (t *Tap) Usage() dialogue.Usage {
	if !t.counted {
		return dialogue.NoUsage
	}
	return t.usage
}

// Reason implements shapes.Tap.
func (t *Tap) Reason() dialogue.Reason { return t.reason }

// mayEnd reports whether data may have usage, an error or a finish reason. A chunk without them cannot change the state
// of the Tap. A name inside a string also counts, and then the event is parsed for nothing.
func mayEnd(data []byte) bool {
	for name, value := range fields.Mentioned(data) {
		switch string(name) {
		case "usage", "error", "finish_reason":
			if !bytes.HasPrefix(value, nullWord) {
				return true
			}
		}
	}
	return false
}

// withModel returns data with another top-level model, if it has one.
func withModel(data []byte, model string) ([]byte, bool) {
	e, ok := modelEdit(data, model)
	if !ok {
		return nil, false
	}
	return fields.Splice(data, []fields.Edit{e}), true
}
