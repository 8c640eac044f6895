package strict

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// A kind is a vendor's API with the rules of one of its models.
type kind struct {
	name  string
	shape dialogue.Shape
	model string
	check func(*vendor, gjson.Result) error
}

// thinkingChat is the name of the kind that wants its reasoning back with calls.
const thinkingChat = "thinking chat"

// kinds are the upstreams that loops are played against.
var kinds = []kind{
	{"chat", dialoguetest.Chat, "gpt-4.1", (*vendor).checkChat},
	{thinkingChat, dialoguetest.Chat, "deepseek-v4-pro", (*vendor).checkChat},
	{"responses", dialoguetest.Responses, "gpt-6-sol", (*vendor).checkResponses},
	{"messages", dialoguetest.Messages, "claude-sonnet-4-5", (*vendor).checkMessages},
	{"messages 5.5", dialoguetest.Messages, "claude-opus-5-5", (*vendor).checkMessages},
	{"gemini", dialoguetest.Gemini, "gemini-3.1-pro-preview", (*vendor).checkGemini},
}

// A vendor is an upstream in one loop. It implements http.RoundTripper, so that no connection is
// needed.
type vendor struct {
	kind
	name string

	script reader // reads the turn from the request; nil: the loop sets turn, and planned has its step

	mu      sync.Mutex
	turn    int    // of the loop
	now     step   // what it says in this turn
	fails   int    // the status with which it fails after it has checked the request; 0: it answers
	shown   bool   // the client's results have a picture
	beta    string // the betas of the request, where the vendor has them
	proofs  map[string]string
	sent    []string // elements of the conversation in the last request
	lost    []string // reasoning of its own that did not come back, and beginnings that changed
	refused []string // requests that it refused
}

func newVendor(k kind, name string) *vendor {
	return &vendor{kind: k, name: name, proofs: map[string]string{}}
}

// RoundTrip checks a request and answers with what the turn's plan says.
func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, kind, reply := v.answer(r.URL.Path, r.Header, body)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1,
		Body: io.NopCloser(bytes.NewReader(reply)), Request: r}, nil
}

// answer returns the reply to a request with its status and media type.
func (v *vendor) answer(path string, header http.Header, body []byte) (status int, kind string, reply []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.beta = strings.Join(header.Values("Anthropic-Beta"), ",")
	if err := v.examine(body); err != nil {
		v.refused = append(v.refused, fmt.Sprintf("turn %d: %v", v.turn, err))
		return 400, "application/json", refusal(v.shape, err)
	}
	doc := gjson.ParseBytes(body)
	if v.fails != 0 {
		return v.fails, "application/json",
			[]byte(`{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}`)
	}
	if doc.Get("stream").Bool() || strings.Contains(path, "stream") {
		return 200, "text/event-stream", v.reply(shapes.Stream, doc)
	}
	return 200, "application/json", v.reply(shapes.Whole, doc)
}

// examine finds out which turn a request is of, and checks it by the rules of the vendor. What the gateway
// has lost of the conversation is noted in v.lost and is no error. A refused request is an error. A loss is
// weaker: the vendor would take the request, but its model would not see what it thought before.
func (v *vendor) examine(body []byte) error {
	if !gjson.ValidBytes(body) {
		return fmt.Errorf("not JSON")
	}
	doc, loop := gjson.ParseBytes(body), true
	if v.script == nil {
		v.now = planned(v.turn)
	} else if v.turn, v.now, loop = v.script(v, doc); !loop {
		return nil
	}
	if err := v.check(v, doc); err != nil {
		return err
	}
	if v.shown && strings.Contains(string(body), resultOf("t1c0")) && !strings.Contains(string(body), picture) {
		v.noteLoss("the picture of t1c0")
	}
	v.compare(doc)
	return nil
}

// written returns an element of a conversation as compare sees it. An agent may write the same content
// anew, so the elements of agents are compared without what the vendor does not count among the content:
// members that are null, marks of the vendor's cache and members for the vendor's own use.
func (v *vendor) written(element gjson.Result) string {
	if v.script == nil {
		return element.Raw
	}
	var strip func(any) any
	strip = func(value any) any {
		switch value := value.(type) {
		case object:
			for name, member := range value {
				if member == nil || name == "cache_control" || name == passedThrough {
					delete(value, name)
				} else {
					value[name] = strip(member)
				}
			}
		case array:
			for i := range value {
				value[i] = strip(value[i])
			}
		}
		return value
	}
	text, err := json.Marshal(strip(element.Value()))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// compare notes whether the earlier turns came back in other bytes than before, which makes the
// vendor's prompt cache useless. The last turn may go on.
func (v *vendor) compare(doc gjson.Result) {
	var all []string
	for _, name := range []string{"messages", "input", "contents"} {
		doc.Get(name).ForEach(func(_, e gjson.Result) bool {
			all = append(all, v.written(e))
			return true
		})
	}
	for i := range len(v.sent) - 1 {
		if i >= len(all) || all[i] != v.sent[i] {
			got := "nothing"
			if i < len(all) {
				got = all[i]
			}
			v.noteLoss("element %d was\n   %.600s\n and is\n   %.600s", i, v.sent[i], got)
			break
		}
	}
	v.sent = all
}

// noteLoss adds what did not come back to v.lost.
func (v *vendor) noteLoss(format string, args ...any) {
	v.lost = append(v.lost, fmt.Sprintf("turn %d: ", v.turn)+fmt.Sprintf(format, args...))
}

// refusal returns the body of a 400 in the vendor's shape.
func refusal(shape dialogue.Shape, err error) []byte {
	return registry.ByName()[shape].Envelope(dialogue.Invalid("messages", err.Error()))
}

// writer writes one reply of a vendor with the gateway's own emitter of the shape, whose form the cases test.
type writer struct {
	shape   dialogue.Shape
	emitter shapes.Emitter
	parts   int // that were written
	out     []byte
}

func (w *writer) emit(ev dialogue.Event) { w.out = w.emitter.Emit(w.out, &ev) }

// part writes a part whose text comes in two pieces. end is its last event, whose thinking the first one has as well.
func (w *writer) part(kind dialogue.PartKind, call *dialogue.Call, text string, end dialogue.Event) {
	w.emit(dialogue.Event{Kind: dialogue.EventOpen, Part: w.parts, PartKind: kind, Call: call, Thinking: end.Thinking,
		Origin: w.shape})
	for _, piece := range []string{text[:len(text)/2], text[len(text)/2:]} {
		if piece != "" {
			w.emit(dialogue.Event{Kind: dialogue.EventDelta, Part: w.parts, Text: piece})
		}
	}
	end.Kind, end.Part, end.Origin = dialogue.EventClose, w.parts, w.shape
	w.emit(end)
	w.parts++
}

// reply writes the turn's step with proofs that only this vendor knows.
func (v *vendor) reply(mode shapes.Mode, doc gjson.Result) []byte {
	s := v.now
	req := &dialogue.Request{Model: v.model, Inbound: v.shape, IncludeUsage: true,
		Reasoning: dialogue.Reasoning{Include: true, Adaptive: true}}
	w := writer{shape: v.shape, emitter: registry.ByName()[v.shape].NewEmitter(req, mode,
		dialoguetest.NewEnv(1, v.name+fmt.Sprint(v.turn)+"n"))}
	if s.compact {
		v.sent = nil // it comes back in other words
	}
	w.emit(dialogue.Event{Kind: dialogue.EventStart, ID: fmt.Sprintf("%s%d", v.name, v.turn), Model: v.model})
	thought := v.thought(&s, doc)
	if s.compact && v.shape == dialoguetest.Responses {
		v.writeCompaction(&w, s.text)
		s.text = ""
	}
	if thought != nil && v.shape != dialoguetest.Gemini {
		text := thought.Text
		thought.Text = ""
		if thought.Origin == "" {
			w.part(dialogue.ThinkingPart, nil, text, dialogue.Event{})
		} else {
			w.part(dialogue.ThinkingPart, nil, text, dialogue.Event{Thinking: thought})
		}
	}
	if s.text != "" {
		w.part(dialogue.TextPart, nil, s.text, dialogue.Event{})
	}
	v.writeCalls(&w, &s, thought)
	reason := dialogue.ReasonTool
	if len(s.calls) == 0 {
		reason = dialogue.ReasonStop
	}
	usage := dialogue.Usage{InputTotal: 10, OutputTotal: 10}
	if s.long {
		usage.InputTotal = 100_000_000
	}
	w.emit(dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage})
	w.emit(dialogue.Event{Kind: dialogue.EventFinish, Reason: reason})
	w.emit(dialogue.Event{Kind: dialogue.EventEnd})
	return w.out
}

// writeCompaction writes an item with the compacted conversation. Its content shows the marker of the turn, as a text
// would.
func (v *vendor) writeCompaction(w *writer, text string) {
	made := "made by " + v.name + " for " + text
	v.proofs[made] = ""
	w.emit(dialogue.Event{Kind: dialogue.EventOpen, PartKind: dialogue.ServerPart, Origin: v.shape,
		Opaque: fmt.Appendf(nil, `{"id":"cmp_%s","type":"compaction","encrypted_content":%q}`, v.name, made)})
	w.emit(dialogue.Event{Kind: dialogue.EventClose})
}

// writeCalls writes the calls of a step and remembers which proof each of them needs in the next request.
func (v *vendor) writeCalls(w *writer, s *step, thought *dialogue.Thinking) {
	for i, c := range s.calls {
		call := &dialogue.Call{ID: v.callID(i), Name: c.name, Namespace: c.namespace, Custom: c.custom}
		end := dialogue.Event{}
		if v.shape == dialoguetest.Gemini && i == 0 {
			end.Signature = v.signature("g")
			v.proofs[end.Signature] = c.marker
		}
		if v.shape != dialoguetest.Gemini && thought != nil {
			v.proofs["call "+c.marker] = v.proofOf(thought, s)
		}
		w.part(dialogue.CallPart, call, c.args, end)
	}
}

// callID is an id as the vendor makes them; gemini makes none.
func (v *vendor) callID(i int) string {
	switch v.shape {
	case dialoguetest.Gemini:
		return ""
	case dialoguetest.Messages:
		return fmt.Sprintf("toolu_01%s%dc%dabcdefghijk", v.name, v.turn, i)
	}
	return fmt.Sprintf("call_%s%dc%dabcdefghijklmnop", v.name, v.turn, i)
}

// signature returns a proof that no other vendor, turn or kind of reasoning has.
func (v *vendor) signature(what string) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s of %s, turn %d", what, v.name, v.turn))
}

// thought returns the reasoning of a turn with its proof, or nil if the model does not think or the request did not ask
// for it. The proof is added to v.proofs, so that the next request can be checked for it.
func (v *vendor) thought(s *step, doc gjson.Result) *dialogue.Thinking {
	t := &dialogue.Thinking{Text: s.thought, Origin: v.shape}
	switch {
	case s.thought == "":
		return nil
	case v.model == "gpt-4.1":
		return nil
	case v.shape == dialoguetest.Chat:
		return &dialogue.Thinking{Text: s.thought}
	case v.shape == dialoguetest.Responses:
		if !slices.ContainsFunc(doc.Get("include").Array(), func(e gjson.Result) bool {
			return e.Str == "reasoning.encrypted_content"
		}) {
			return nil
		}
		t.ItemID, t.Encrypted = fmt.Sprintf("rs_%s%d", v.name, v.turn), v.signature("r")
		v.proofs[t.Encrypted] = t.ItemID
	case v.shape == dialoguetest.Messages:
		if kind := doc.Get("thinking.type").Str; kind != "enabled" && kind != "adaptive" {
			return nil
		}
		if s.hidden {
			t.Redacted, t.Text = v.signature("h"), ""
			v.proofs[t.Redacted] = ""
			return t
		}
		t.Signature = v.signature("m")
		v.proofs[t.Signature] = s.thought
	}
	return t
}

// proofOf returns the proof that must precede a call of this vendor when the call comes back.
func (v *vendor) proofOf(t *dialogue.Thinking, s *step) string {
	for _, proof := range []string{t.Encrypted, t.Signature, t.Redacted} {
		if proof != "" {
			return proof
		}
	}
	return s.thought
}
