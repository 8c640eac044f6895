package messages

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// tap implements shapes.Tap. It parses only the few events that carry usage, the reason or the
// model, and recognises the others by their names.
type tap struct {
	options shapes.TapOptions
	usage   usage
	reason  dialogue.Reason
	err     *dialogue.Error
	done    bool
}

// Event implements shapes.Watcher. The events of blocks are the most frequent ones and pass without being parsed.
// Events after the end or after an error are dropped, since clients expect none.
func (t *tap) Event(name string, data []byte) (replaced []byte, v shapes.Verdict, content bool) {
	if t.done || t.err != nil {
		return nil, shapes.Drop, false
	}
	if name == "" {
		name = kindOf(name, view(data))
	}
	switch name {
	case blockStart, blockDelta, blockStop:
		return nil, shapes.Forward, true
	case messageStart:
		return t.start(data)
	case messageDelta:
		doc := view(data)
		t.usage.merge(doc.Get("usage"))
		t.stop(doc.Get("delta.stop_reason"))
		return nil, shapes.Forward, true
	case messageStop:
		t.done = true
		return nil, shapes.Forward, true
	case errorEvent:
		t.err = streamed(gjson.ParseBytes(data))
		return nil, shapes.Failed, false
	}
	return nil, shapes.Forward, false
}

// start learns the usage of the input, and replaces the model's name if the client used an alias.
func (t *tap) start(data []byte) ([]byte, shapes.Verdict, bool) {
	message := view(data).Get("message")
	t.usage.merge(message.Get("usage"))
	if replaced := t.renamed(data, message.Get("model")); replaced != nil {
		return replaced, shapes.Replace, false
	}
	return nil, shapes.Forward, false
}

// renamed returns data with the model's name replaced, or nil if it stays. It copies around the
// name, so that all other bytes remain the upstream's.
func (t *tap) renamed(data []byte, model gjson.Result) []byte {
	if t.options.Model == "" || model.Type != gjson.String || model.Index <= 0 {
		return nil
	}
	out := make([]byte, 0, len(data)+len(t.options.Model))
	out = append(out, data[:model.Index]...)
	out = jsonw.AppendString(out, t.options.Model)
	return append(out, data[model.Index+len(model.Raw):]...)
}

// stop notes why the reply ended.
func (t *tap) stop(reason gjson.Result) {
	if reason.Type == gjson.String {
		t.reason = reasonOf(reason.Str)
	}
}

// Body implements shapes.Watcher. It refuses a document that is not a message, as some servers send one with status 200
// for an error.
func (t *tap) Body(body []byte) ([]byte, *dialogue.Error) {
	if t.err = fields.CheckReply("reply", body); t.err != nil {
		return nil, t.err
	}
	doc := view(body)
	if t.err = notAMessage(doc); t.err != nil {
		return nil, t.err
	}
	t.usage.merge(doc.Get("usage"))
	t.stop(doc.Get("stop_reason"))
	t.done = true
	if replaced := t.renamed(body, doc.Get("model")); replaced != nil {
		return replaced, nil
	}
	return body, nil
}

func (t *tap) Err() *dialogue.Error { return t.err }

func (t *tap) Done() bool { return t.done }

func (t *tap) Answered() bool { return t.done }

// EOF implements shapes.Watcher. The shape has a terminal event, so an end without it is a cut
// reply.
func (t *tap) EOF() ([]byte, *dialogue.Error) {
	if t.done {
		return nil, nil
	}
	return nil, dialogue.Incomplete()
}

// Fail implements shapes.Watcher. The error event ends the stream, so nothing follows it.
func (t *tap) Fail(dst []byte, err *dialogue.Error) []byte {
	t.done = true
	return shapes.AppendEvent(dst, errorEvent, appendEnvelope(nil, err))
}

func (t *tap) Usage() dialogue.Usage { return t.usage.neutral() }

func (t *tap) Reason() dialogue.Reason { return t.reason }
