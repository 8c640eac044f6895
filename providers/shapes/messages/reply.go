package messages

import (
	"cmp"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// head holds the state that both emitters keep of the reply they write.
type head struct {
	req *dialogue.Request
	env *dialogue.Env
	// unseen are the thoughts since the last call that the client did not ask for.
	unseen []dialogue.Thinking
	id     string
	model  string // as the upstream names it
}

func (h *head) begin(ev *dialogue.Event) { h.id, h.model = ev.ID, ev.Model }

// ending collects why a reply ended, from several events, until its stop members are written.
type ending struct {
	reason       dialogue.Reason
	stopSequence string
	detail       string
	calls        int    // calls the client has to answer
	refusal      string // what the model said to refuse
}

// close reconciles the reason with the parts of the reply, because upstreams of other shapes put it
// differently: a reply with calls ends with tool_use and no other does, and a refusal in words,
// which chat sends with reason stop, ends with refusal.
func (e *ending) close() {
	switch {
	case e.reason == dialogue.ReasonStop && e.refusal != "":
		e.reason = dialogue.ReasonFilter
	case e.reason == dialogue.ReasonStop && e.calls > 0:
		e.reason = dialogue.ReasonTool
	case e.reason == dialogue.ReasonTool && e.calls == 0:
		e.reason = dialogue.ReasonStop
	}
	e.detail = cmp.Or(e.detail, e.refusal)
}

// write writes the stop members of a message or of a message_delta.
func (e *ending) write(w *jsonw.Writer) {
	w.Key("stop_reason").String(stopReason(e.reason))
	w.Key("stop_sequence")
	if e.reason == dialogue.ReasonStopSequence {
		w.StringOrNull(e.stopSequence)
	} else {
		w.Null()
	}
	w.Key("stop_details")
	if e.reason != dialogue.ReasonFilter || e.detail == "" {
		w.Null()
		return
	}
	w.Object()
	w.Key("type").String("refusal")
	w.Key("explanation").String(e.detail)
	w.End()
}

// open writes the members with which every message begins. The id gets the vendor's prefix, which
// some clients check. The model is the name that the client asked for, and not the upstream's.
func (h *head) open(w *jsonw.Writer) {
	id := h.id
	if !strings.HasPrefix(id, "msg_") {
		id = "msg_" + h.env.ID()
	}
	model := h.req.Model
	if model == "" {
		model = h.model
	}
	w.Object()
	w.Key("id").String(id)
	w.Key("type").String("message")
	w.Key("role").String("assistant")
	w.Key("model").String(model)
}

// carrier returns the string in which a client brings the proof of a thought back: the signature of
// a thinking block, or the data of a redacted_thinking block if the thought has no text. The
// vendor's own proof is passed on. Another vendor's is sealed, so that no upstream takes it for its
// own.
func (h *head) carrier(t *dialogue.Thinking, hasText bool) (signature, redacted string) {
	switch {
	case t != nil && t.Origin == Name:
		return t.Signature, t.Redacted
	case t == nil && !hasText || h.env.Sealer == nil:
		return "", ""
	}
	var foreign dialogue.Thinking
	if t != nil {
		foreign = *t
		foreign.Text = "" // the block has it
	}
	if seal := h.env.Sealer.Seal(&foreign); hasText {
		return seal, ""
	} else {
		return "", seal
	}
}

// hides reports whether the client did not ask for thinking. It then gets no part of it: many
// clients read the first block only. What a call was made with is kept for when the call comes back.
func (h *head) hides() bool {
	r := &h.req.Reasoning
	return h.req.Inbound == Name && !r.Adaptive && (r.Budget == nil || *r.Budget == 0)
}

// hide keeps a thought that the client did not ask for, until the next call takes it (remember).
func (h *head) hide(t *dialogue.Thinking, text string) {
	var thought dialogue.Thinking
	if t != nil {
		thought = *t
	}
	thought.Text = cmp.Or(thought.Text, text)
	h.unseen = append(h.unseen, thought)
}

// remember keeps the thought signature of a call, which the shape cannot carry, and the thoughts
// that the client does not see.
func (h *head) remember(callID, signature string) {
	if signature != "" {
		h.env.RememberSignature(callID, signature)
	}
	h.env.RememberThoughts(callID, h.unseen)
	h.unseen = nil
}

// writeCitation writes a citation in the vendor's own form, or the one of its
// forms that says what the other shapes say.
func writeCitation(w *jsonw.Writer, c *dialogue.Citation) {
	if c.Origin == Name && len(c.Opaque) > 0 {
		w.Raw(c.Opaque)
		return
	}
	w.Object()
	w.Key("type").String("web_search_result_location")
	w.Key("url").String(c.URL)
	w.Key("title").StringOrNull(c.Title)
	w.Key("cited_text").String(c.CitedText)
	w.Key("encrypted_index").String("")
	w.End()
}

// citable reports whether the shape has a form for a citation.
func citable(c dialogue.Citation) bool {
	return c.URL != "" || c.Origin == Name && len(c.Opaque) > 0
}
