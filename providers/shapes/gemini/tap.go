package gemini

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// NewTap implements shapes.Passthrough. The Tap reads server-sent events only: Patch asks for them,
// and a client that wants an array is served through the neutral form, because its framing differs.
func (shape) NewTap(o shapes.TapOptions, _ *dialogue.Env) shapes.Tap {
	return shapes.TapOf(&tap{options: o, counts: noCounts})
}

// tap implements shapes.Tap. Every chunk must be parsed, because its members may stand in any
// sequence and spelling.
type tap struct {
	options shapes.TapOptions
	counts  counts
	reason  dialogue.Reason
	calls   bool
	blocked bool                        // the prompt was
	over    [(maxIndex + 1) / 64]uint64 // a bit for each candidate that said why it stopped
	ended   int                         // how many have
	done    bool
	err     *dialogue.Error
}

// seen is the contents of one chunk, as far as they matter.
type seen struct {
	named   bool // it says the model
	content bool // it holds a part of the answer
	usage   bool
	// going are the candidates that had not ended before, of all that there are.
	going []string
	all   int
	err   *dialogue.Error
}

func (t *tap) Err() *dialogue.Error  { return t.err }
func (t *tap) Done() bool            { return t.done }
func (t *tap) Usage() dialogue.Usage { return t.counts.usage() }

// Answered implements shapes.Tap. A blocked prompt has no candidates.
func (t *tap) Answered() bool {
	return t.done || t.ended >= max(t.options.Choices, 1) || t.blocked && t.ended == 0
}

// Reason implements shapes.Learned. STOP with calls means that the client has to run tools.
func (t *tap) Reason() dialogue.Reason {
	if t.reason == dialogue.ReasonStop && t.calls {
		return dialogue.ReasonTool
	}
	return t.reason
}

// Event implements shapes.Watcher. [DONE], which some relays append, is dropped, because the
// vendor's SDKs fail on it.
func (t *tap) Event(_ string, data []byte) ([]byte, shapes.Verdict, bool) {
	switch trimmed := bytes.TrimSpace(data); {
	case t.done || len(trimmed) == 0:
		return nil, shapes.Drop, false
	case string(trimmed) == "[DONE]":
		t.done = true
		return nil, shapes.Drop, false
	}
	in := t.look(gjson.ParseBytes(data))
	if in.err != nil {
		return nil, t.fail(in.err), false
	}
	verdict := shapes.Forward
	if len(in.going) < in.all {
		if len(in.going) == 0 && !in.usage {
			return nil, shapes.Drop, false
		}
		data, verdict = withCandidates(data, in.going), shapes.Replace
	}
	if in.named && t.options.Model != "" {
		data, verdict = t.renamed(data), shapes.Replace
	}
	if verdict == shapes.Forward {
		data = nil
	}
	return data, verdict, in.content
}

// fail notes the failure of the reply.
func (t *tap) fail(err *dialogue.Error) shapes.Verdict {
	t.done, t.err = true, err
	return shapes.Failed
}

// withCandidates replaces the candidates of a chunk.
func withCandidates(data []byte, list []string) []byte {
	var changed []byte
	var err error
	if len(list) == 0 {
		changed, err = sjson.DeleteBytes(data, "candidates")
	} else {
		changed, err = sjson.SetRawBytes(data, "candidates", []byte("["+strings.Join(list, ",")+"]"))
	}
	return edit(data, changed, err)
}

// look reads one chunk and updates the state.
func (t *tap) look(doc gjson.Result) (in seen) {
	if doc.IsArray() || !doc.IsObject() {
		return seen{err: readError(0, doc)}
	}
	eachMember(doc, func(name string, v gjson.Result) bool {
		switch name {
		case "error":
			in.err = readError(0, doc)
		case "modelVersion":
			in.named = true
		case "usageMetadata":
			in.usage = true
			t.counts.read(v)
		case "promptFeedback":
			if str(field(v, "blockReason")) != "" && t.ended == 0 {
				t.blocked, t.reason, in.content = true, dialogue.ReasonFilter, true
			}
		case "candidates":
			each(v, func(i int, v gjson.Result) bool {
				// Each candidate of the list costs a walk, and a provider chooses how many there are.
				if in.all++; in.all > fields.MaxParts {
					in.err = fields.TooManyParts()
					return false
				}
				if content, going := t.candidate(i, v); going {
					in.going = append(in.going, v.Raw)
					in.content = in.content || content
				}
				return true
			})
		}
		return in.err == nil
	})
	return in
}

// candidate reads one candidate of a chunk. content reports a part of the answer. going is false if
// the candidate had ended before, and the piece must be dropped.
func (t *tap) candidate(position int, v gjson.Result) (content, going bool) {
	index := int64(position)
	if given := field(v, "index"); given.Exists() {
		index, _ = integer(given)
	}
	known := index >= 0 && index <= maxIndex
	if t.Answered() || known && t.over[index/64]&(1<<(index%64)) != 0 {
		return false, false
	}
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "content":
			parts := field(v, "parts")
			content = content || parts.Exists()
			if parts.Exists() && !t.calls {
				each(parts, func(_ int, v gjson.Result) bool {
					t.calls = t.calls || field(v, "functionCall").Exists()
					return true
				})
			}
		case "finishReason":
			if reason, ok := reasonOf(str(v)); ok {
				t.reason, content = reason, true
				t.ended++
				if known {
					t.over[index/64] |= 1 << (index % 64)
				}
			}
		}
		return true
	})
	return content, true
}

// renamed returns data with the name of the model that the client used.
func (t *tap) renamed(data []byte) []byte {
	changed, err := sjson.SetBytes(data, "modelVersion", t.options.Model)
	return edit(data, changed, err)
}

// Body implements shapes.Watcher.
func (t *tap) Body(body []byte) ([]byte, *dialogue.Error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	doc := gjson.ParseBytes(body)
	failed := doc.IsObject() && field(doc, "error").Exists() || doc.IsArray() && doc.Get("0.error").Exists()
	if !failed && (!doc.IsObject() || !field(doc, "candidates").Exists() && !field(doc, "promptFeedback").Exists()) {
		return nil, dialogue.BadUpstream("reply without candidates and promptFeedback")
	}
	in := t.look(doc)
	if in.err != nil {
		t.err = in.err
		return nil, t.err
	}
	t.done = true
	if in.named && t.options.Model != "" {
		return t.renamed(body), nil
	}
	return body, nil
}

// EOF implements shapes.Watcher. A stream of this shape ends with its body, if a candidate has given
// a reason.
func (t *tap) EOF() ([]byte, *dialogue.Error) {
	if t.err != nil || t.ended > 0 || t.blocked {
		return nil, t.err
	}
	return nil, dialogue.Incomplete()
}

// Fail implements shapes.Watcher with a chunk that holds the error.
func (t *tap) Fail(dst []byte, err *dialogue.Error) []byte {
	t.done = true
	return append(appendEnvelope(append(dst, "data: "...), err), "\n\n"...)
}
