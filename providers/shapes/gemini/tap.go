package gemini

import (
	"bytes"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// NewTap watches a reply on the untouched lane. It only ever sees server-sent
// events: Patch asks for them, and a client that wants an array is served
// through the neutral form, because its framing is another.
func (shape) NewTap(o shapes.TapOptions, _ *dialogue.Env) shapes.Tap {
	return &tap{options: o, counts: noCounts}
}

type tap struct {
	options  shapes.TapOptions
	counts   counts
	reason   dialogue.Reason
	calls    bool
	finished bool // some candidate said why it stopped, or the prompt was blocked
	done     bool
	err      *dialogue.Error
}

func (t *tap) Err() *dialogue.Error  { return t.err }
func (t *tap) Done() bool            { return t.done }
func (t *tap) Usage() dialogue.Usage { return t.counts.usage() }

// Reason is STOP with calls: a turn to the client's tools.
func (t *tap) Reason() dialogue.Reason {
	if t.reason == dialogue.ReasonStop && t.calls {
		return dialogue.ReasonTool
	}
	return t.reason
}

// Event looks at one chunk. A [DONE], which some relays append, is dropped: the
// vendor's SDKs cannot read it.
func (t *tap) Event(_ string, data []byte) ([]byte, shapes.Verdict, bool) {
	switch trimmed := bytes.TrimSpace(data); {
	case t.done || len(trimmed) == 0:
		return nil, shapes.Drop, false
	case string(trimmed) == "[DONE]":
		t.done = true
		return nil, shapes.Drop, false
	}
	if bad := fields.CheckReply("event", data); bad != nil {
		return nil, t.fail(bad), false
	}
	doc := gjson.ParseBytes(data)
	named, content, err := t.look(doc)
	if err != nil {
		return nil, t.fail(err), false
	}
	if named && t.options.Model != "" {
		return t.renamed(data), shapes.Replace, content
	}
	return nil, shapes.Forward, content
}

func (t *tap) fail(err *dialogue.Error) shapes.Verdict {
	t.done, t.err = true, err
	return shapes.Failed
}

// look learns from one chunk. named: it says the model. content: it holds a
// part of the answer.
func (t *tap) look(doc gjson.Result) (named, content bool, err *dialogue.Error) {
	if doc.IsArray() || !doc.IsObject() {
		return false, false, readError(0, doc)
	}
	eachMember(doc, func(name string, v gjson.Result) bool {
		switch name {
		case "error":
			err = readError(0, doc)
		case "modelVersion":
			named = true
		case "usageMetadata":
			t.counts.read(v)
		case "promptFeedback":
			if str(field(v, "blockReason")) != "" {
				t.finished, t.reason, content = true, dialogue.ReasonFilter, true
			}
		case "candidates":
			each(v, func(_ int, v gjson.Result) bool { content = t.candidate(v) || content; return true })
		}
		return err == nil
	})
	return named, content, err
}

func (t *tap) candidate(v gjson.Result) (content bool) {
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "content":
			parts := field(v, "parts")
			content = content || parts.Exists()
			if parts.Exists() && !t.calls {
				each(parts, func(_ int, v gjson.Result) bool { t.calls = t.calls || field(v, "functionCall").Exists(); return true })
			}
		case "finishReason":
			if reason, told := reasonOf(str(v)); told {
				t.reason, t.finished, content = reason, true, true
			}
		}
		return true
	})
	return content
}

// renamed puts the name the client used into the reply.
func (t *tap) renamed(data []byte) []byte {
	out, err := sjson.SetBytes(data, "modelVersion", t.options.Model)
	if err != nil {
		return data
	}
	return out
}

// Body looks at a whole reply.
func (t *tap) Body(body []byte) ([]byte, *dialogue.Error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	doc := gjson.ParseBytes(body)
	failed := doc.IsObject() && field(doc, "error").Exists() || doc.IsArray() && doc.Get("0.error").Exists()
	if !failed && (!doc.IsObject() || !field(doc, "candidates").Exists() && !field(doc, "promptFeedback").Exists()) {
		return nil, dialogue.BadUpstream("reply without candidates and promptFeedback")
	}
	named, _, err := t.look(doc)
	if err != nil {
		t.err = err
		return nil, err
	}
	t.done = true
	if named && t.options.Model != "" {
		return t.renamed(body), nil
	}
	return body, nil
}

// EOF is the regular end of a stream of this shape, if there was a reason for it.
func (t *tap) EOF() ([]byte, *dialogue.Error) {
	if t.err != nil || t.finished {
		return nil, t.err
	}
	return nil, dialogue.Incomplete()
}

// Fail appends an error chunk.
func (t *tap) Fail(dst []byte, err *dialogue.Error) []byte {
	t.done = true
	return append(appendEnvelope(append(dst, "data: "...), err), "\n\n"...)
}
