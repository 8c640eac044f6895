package gemini

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// history brings the turns into the order this shape demands: roles alternate,
// and right after a turn with calls come their results, one for each, in the
// order of the calls.
func (e *encoder) history() ([]dialogue.Turn, error) {
	h := historyBuilder{e: e, known: map[string]bool{}, results: map[string][]*dialogue.Result{}}
	if err := h.index(); err != nil {
		return nil, err
	}
	for _, t := range e.req.Turns {
		for _, p := range t.Parts {
			if err := h.place(t.Role, p); err != nil {
				return nil, err
			}
		}
	}
	if h.anyAnswered() {
		h.answer()
	}
	return h.turns, nil
}

// historyBuilder puts turns into the order that the shape wants. Results wait in results until
// their calls are placed.
type historyBuilder struct {
	e       *encoder
	known   map[string]bool // keys of all calls
	results map[string][]*dialogue.Result
	turns   []dialogue.Turn
	pending []*dialogue.Call // calls of the last turn, not answered yet
}

// callKey returns how a result finds its call; clients of old shapes have names only.
func callKey(id, name string) string {
	if id != "" {
		return id
	}
	return "name:" + name
}

// index finds all calls and results, and refuses results that no one can read.
func (h *historyBuilder) index() error {
	for _, t := range h.e.req.Turns {
		if t.Name != "" {
			h.e.rep.Lose("name")
		}
		for _, p := range t.Parts {
			switch {
			case p.Kind == dialogue.CallPart && p.Call != nil:
				h.known[callKey(p.Call.ID, p.Call.Name)] = true
			case p.Kind == dialogue.ResultPart && p.Result != nil:
				if slices.ContainsFunc(p.Result.Parts, foreign) {
					return foreignFile()
				}
				key := callKey(p.Result.CallID, p.Result.Name)
				h.results[key] = append(h.results[key], p.Result)
			}
		}
	}
	return nil
}

// foreign reports a file that only another vendor can open: the answer must not
// quietly be made without it.
func foreign(p dialogue.Part) bool {
	return p.Media != nil && p.Media.FileID != "" && p.Media.FileIDs != traits.FileIDs
}

func foreignFile() error {
	return dialogue.Unsupported("file_id", "a file of another provider cannot be sent to this model")
}

func (h *historyBuilder) place(role dialogue.Role, p dialogue.Part) error {
	switch p.Kind {
	case dialogue.SystemPart:
		role = dialogue.User
		if p.Text == "" {
			return nil
		}
		h.e.rep.Lose("system:folded")
		p.Text = dialogue.Reminder(p.Text)
	case dialogue.ResultPart:
		return h.result(p.Result)
	case dialogue.CallPart:
		if p.Call == nil {
			return nil
		}
		h.push(dialogue.Assistant, p)
		h.pending = append(h.pending, p.Call)
		return nil
	case dialogue.MediaPart:
		return h.media(role, p)
	case dialogue.ThinkingPart:
		if p.Thinking == nil || p.Thinking.Origin != Name || dialogue.Sealed(p.Thinking.Signature) ||
			!h.e.env.Accepts(h.e.target, p.Thinking.Signature) ||
			p.Thinking.Text == "" && p.Thinking.Signature == "" {
			h.e.rep.Lose("thinking")
			return nil
		}
	case dialogue.ServerPart:
		if p.Origin != Name || len(p.Opaque) == 0 {
			h.e.rep.Lose("server_tool_blocks")
			return nil
		}
	default:
		if p.Text == "" {
			return nil
		}
	}
	h.push(role, p)
	return nil
}

func (h *historyBuilder) media(role dialogue.Role, p dialogue.Part) error {
	if foreign(p) {
		return foreignFile()
	}
	m := h.e.usable(p.Media)
	if m == nil {
		return nil
	}
	p.Media = m
	if m.Text != "" {
		p = dialogue.Part{Kind: dialogue.TextPart, Text: m.Text}
	}
	h.push(role, p)
	return nil
}

// usable returns the media as it can be sent, or nil if there is nothing to send.
func (e *encoder) usable(m *dialogue.Media) *dialogue.Media {
	if m == nil {
		return nil
	}
	if strings.HasPrefix(m.FileID, "cachedContents/") {
		e.cached = m.FileID
		return nil
	}
	if strings.HasPrefix(m.URL, "data:") {
		m = inlined(m)
	}
	if m.Text == "" && blank(m) {
		e.rep.Lose(string(m.Kind))
		return nil
	}
	if m.Base64 == "" && m.Text == "" && m.MIME == "" {
		e.rep.Lose(string(m.Kind) + ":mime_guessed")
	}
	if m.Detail != "" && m.Detail != "auto" {
		e.rep.Lose("detail")
	}
	e.rep.LoseFileName(m)
	return m
}

// inlined takes a data URL apart. The data is not decoded.
func inlined(m *dialogue.Media) *dialogue.Media {
	head, data, ok := strings.Cut(strings.TrimPrefix(m.URL, "data:"), ",")
	out := *m
	out.URL = ""
	if !ok || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return &out
	}
	out.Base64 = data
	if mime, _, _ := strings.Cut(head, ";"); mime != "" {
		out.MIME = mime
	}
	return &out
}

// push appends a part, merging turns of one role. Whatever follows calls on
// the user's side comes after their results.
func (h *historyBuilder) push(role dialogue.Role, p dialogue.Part) {
	if role == dialogue.User && len(h.pending) > 0 {
		h.answer()
	}
	if n := len(h.turns); n > 0 && h.turns[n-1].Role == role {
		h.turns[n-1].Parts = append(h.turns[n-1].Parts, p)
		return
	}
	h.turns = append(h.turns, dialogue.Turn{Role: role, Parts: []dialogue.Part{p}})
}

// result sees a result where it stood. One with a call is placed with the call;
// one without becomes text, so that what it says is not lost.
func (h *historyBuilder) result(r *dialogue.Result) error {
	if r == nil {
		return nil
	}
	if h.known[callKey(r.CallID, r.Name)] {
		if len(h.pending) > 0 {
			h.answer()
		}
		return nil
	}
	h.e.rep.Lose("tool_results:orphan")
	var text strings.Builder
	text.WriteString("Result of an earlier tool call")
	if r.Name != "" {
		text.WriteString(" (" + r.Name + ")")
	}
	text.WriteString(":\n" + textOf(r))
	h.push(dialogue.User, dialogue.Part{Kind: dialogue.TextPart, Text: text.String()})
	for _, p := range r.Parts {
		if p.Kind == dialogue.MediaPart {
			if err := h.media(dialogue.User, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *historyBuilder) anyAnswered() bool {
	return slices.ContainsFunc(h.pending,
		func(c *dialogue.Call) bool { return len(h.results[callKey(c.ID, c.Name)]) > 0 })
}

// answer places the results of the pending calls. A call that was never
// answered gets a result that says so, because the upstream refuses a history with a hole.
func (h *historyBuilder) answer() {
	pending := h.pending
	h.pending = nil
	for _, c := range pending {
		key := callKey(c.ID, c.Name)
		r := &dialogue.Result{CallID: c.ID, IsError: true,
			Parts: []dialogue.Part{{Kind: dialogue.TextPart, Text: "The call was not answered."}}}
		if queue := h.results[key]; len(queue) > 0 {
			found := *queue[0]
			r, h.results[key] = &found, queue[1:]
		} else {
			h.e.rep.Lose("tool_results:missing")
		}
		r.Name = h.e.names.spell(c.Namespace, c.Name)
		h.push(dialogue.User, dialogue.Part{Kind: dialogue.ResultPart, Result: r})
	}
}

// textOf joins the text of a result.
func textOf(r *dialogue.Result) string {
	var texts []string
	for _, p := range r.Parts {
		if p.Text != "" && p.Kind != dialogue.MediaPart {
			texts = append(texts, p.Text)
		}
		if p.Media != nil && p.Media.Text != "" {
			texts = append(texts, p.Media.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// placeholder stands where the shape wants the user to have spoken.
const placeholder = "."

// contents writes the turns. The user speaks first.
func (e *encoder) contents(turns []dialogue.Turn) {
	e.w.Key("contents").Array()
	if len(turns) == 0 || turns[0].Role != dialogue.User {
		e.rep.Lose("contents:placeholder")
		e.w.Object().Key("role").String("user").Key("parts").Array()
		writeText(&e.w, placeholder, false, "")
		e.w.End().End()
	}
	for _, t := range turns {
		e.w.Object().Key("role").String(roleWord(t.Role)).Key("parts").Array()
		e.parts(t)
		e.w.End().End()
	}
	e.w.End()
}

func roleWord(r dialogue.Role) string {
	if r == dialogue.Assistant {
		return "model"
	}
	return "user"
}

func (e *encoder) parts(t dialogue.Turn) {
	signatures := e.signatures(t)
	for i := 0; i < len(t.Parts); i++ {
		switch p := t.Parts[i]; p.Kind {
		case dialogue.CallPart:
			e.call(p.Call, signatures[0])
			signatures = signatures[1:]
		case dialogue.ResultPart:
			e.answerParts(t.Parts[i:])
			for i+1 < len(t.Parts) && t.Parts[i+1].Kind == dialogue.ResultPart {
				i++
			}
		case dialogue.MediaPart:
			if len(p.Opaque) > 0 && p.Origin == Name {
				e.w.Raw(p.Opaque)
			} else {
				writeMedia(&e.w, p.Media)
			}
		case dialogue.ThinkingPart:
			writeText(&e.w, p.Thinking.Text, p.Thinking.Text != "", p.Thinking.Signature)
		case dialogue.ServerPart:
			e.w.Raw(p.Opaque)
		default:
			sig := ""
			if i+1 < len(t.Parts) {
				if sig = signatureOf(t.Parts[i+1]); sig != "" {
					i++
				}
			}
			writeText(&e.w, p.Text, false, sig)
		}
	}
}

// signatureOf returns the signature that the decoder found on the text before: a
// thought without words.
func signatureOf(p dialogue.Part) string {
	if p.Kind != dialogue.ThinkingPart || p.Thinking.Text != "" {
		return ""
	}
	return p.Thinking.Signature
}

// signatures returns the thoughtSignatures of a turn's calls: their own, or what
// the gateway remembers. From the third generation on the first call of a step
// must have one; the history of another model gets the documented stand-in.
func (e *encoder) signatures(t dialogue.Turn) (list []string) {
	for _, p := range t.Parts {
		if p.Kind != dialogue.CallPart {
			continue
		}
		sig := p.Call.Signature
		if dialogue.Sealed(sig) {
			sig = ""
		}
		if sig == "" {
			sig, _ = e.env.RecallSignature(p.Call.ID)
		}
		if sig != "" && !e.env.Accepts(e.target, sig) {
			sig = ""
		}
		list = append(list, sig)
	}
	if e.target.Caps.CallSignatures && len(list) > 0 && list[0] == "" {
		e.rep.Lose("thought_signature:placeholder")
		list[0] = anySignature
	}
	return list
}

func (e *encoder) call(c *dialogue.Call, signature string) {
	w := &e.w
	w.Object().Key("functionCall").Object()
	if c.ID != "" {
		w.Key("id").String(c.ID)
	}
	w.Key("name").String(e.names.spell(c.Namespace, c.Name))
	if writeArgs(w.Key("args"), c.Args, c.Custom) {
		e.rep.Lose("tool_calls:arguments")
	}
	w.End()
	endPart(w, signature)
}

// answerParts writes the results at the head of parts, and behind all of them
// the media that could not stand inside.
func (e *encoder) answerParts(parts []dialogue.Part) {
	var beside []*dialogue.Media
	for _, p := range parts {
		if p.Kind != dialogue.ResultPart {
			break
		}
		beside = append(beside, e.response(p.Result)...)
	}
	for _, m := range beside {
		writeMedia(&e.w, m)
	}
}

// response writes a functionResponse. Models from the third generation on take
// media inside it; for the others, and for addresses, it follows.
func (e *encoder) response(r *dialogue.Result) (beside []*dialogue.Media) {
	var inside []*dialogue.Media
	for _, p := range r.Parts {
		if p.Kind == dialogue.ServerPart {
			e.rep.Lose("server_tool_blocks")
		}
		if p.Kind != dialogue.MediaPart {
			continue
		}
		switch m := e.usable(p.Media); {
		case m == nil || m.Text != "":
		case m.Base64 != "" && e.target.Caps.MediaResults:
			inside = append(inside, m)
		default:
			beside = append(beside, m)
		}
	}
	w := &e.w
	w.Object().Key("functionResponse").Object()
	if r.CallID != "" {
		w.Key("id").String(r.CallID)
	}
	w.Key("name").String(r.Name)
	writeResponse(w.Key("response"), r)
	if len(inside) > 0 {
		w.Key("parts").Array()
		for _, m := range inside {
			writeMedia(w, m)
		}
		w.End()
	}
	w.End().End()
	return beside
}

// writeResponse writes the object a response must be: the client's own, the
// text if it is one, else the text under the key the vendor documents.
func writeResponse(w *jsonw.Writer, r *dialogue.Result) {
	if len(r.Object) > 0 {
		w.Raw(r.Object)
		return
	}
	text := textOf(r)
	trimmed := strings.TrimSpace(text)
	structured := trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && fields.ValidLenientString(trimmed)
	switch {
	case r.IsError:
		w.Object().Key("error").String(text).End()
	case structured && trimmed[0] == '{':
		w.RawString(strings.ToValidUTF8(trimmed, "\ufffd"))
	case structured:
		w.Object().Key("output").RawString(strings.ToValidUTF8(trimmed, "\ufffd")).End()
	default:
		w.Object().Key("output").String(text).End()
	}
}
