package gemini

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// history returns the turns in the sequence that the vendor demands: roles alternate, and right
// behind a turn with calls stand their results, one for each call and in the sequence of the calls.
// It fails for files of another vendor.
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
	for key, rest := range h.results {
		e.rep.LoseIf(len(rest) > 0 && h.known[key], "tool_results:duplicate")
	}
	return h.turns, nil
}

// historyBuilder puts turns into the order that the shape wants. Results wait in results until
// their calls are placed.
// Other shapes allow text between a call and its result, or no result at all, where this one allows
// neither. So the history is built anew in two passes, and not converted turn by turn.
type historyBuilder struct {
	e       *encoder
	known   map[string]bool // keys of all calls
	results map[string][]*dialogue.Result
	turns   []dialogue.Turn
	pending []*dialogue.Call // calls of the last turn, not answered yet
}

// callKey returns the key by which a result finds its call: the id, or the name for clients that
// have no ids.
func callKey(id, name string) string {
	if id != "" {
		return id
	}
	return "name:" + name
}

// index collects all calls and results before any is placed, because other shapes allow results far
// behind their calls.
// Files of other vendors inside results are refused in this pass, before anything is placed,
// because the results are placed later from several points that cannot fail.
func (h *historyBuilder) index() error {
	for _, t := range h.e.req.Turns {
		h.e.rep.LoseIf(t.Name != "", "name")
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

// foreign reports whether a part is a file that only another vendor can open. An answer without it
// would not be the one that was asked for.
func foreign(p dialogue.Part) bool {
	return p.Media != nil && p.Media.FileID != "" && p.Media.FileIDs != traits.FileIDs
}

// foreignFile returns the error for a file that only another provider has.
func foreignFile() error {
	return dialogue.UnsupportedContent("a file of another provider cannot be sent to this model")
}

// place adds one part to the turns, or drops it and records the loss. The role system does not
// exist inside a conversation, so such a text is a marked text of the user (dialogue.Reminder).
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

// media adds media, and the text of a plain text document as text.
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

// usable returns the media as they can be sent, or nil if there is nothing to send. The id of a
// cached content is taken out, because it is a member of the request and not a part.
// A type that had to be guessed is recorded as a loss, since the vendor interprets the bytes by it.
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
	e.rep.LoseIf(m.Detail != "" && m.Detail != "auto", "detail")
	e.rep.LoseFileName(m)
	return m
}

// inlined returns media whose URL is a data URL with their contents instead. Base64 is not decoded, and the rare
// contents in percent encoding become base64.
func inlined(m *dialogue.Media) *dialogue.Media {
	head, data, ok := strings.Cut(strings.TrimPrefix(m.URL, "data:"), ",")
	out := *m
	out.URL = ""
	if !ok {
		return &out
	}
	if !strings.HasSuffix(strings.ToLower(head), ";base64") {
		text, err := url.PathUnescape(data)
		if err != nil {
			return &out
		}
		data = base64.StdEncoding.EncodeToString([]byte(text))
	}
	out.Base64 = data
	if mime, _, _ := strings.Cut(head, ";"); mime != "" {
		out.MIME = mime
	}
	return &out
}

// push adds a part to the last turn if that has the same role, and else as a new turn. Before the
// user says anything behind calls, their results are added.
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

// result handles a result at its place in the client's history. A result that belongs to a call was or will be
// added behind the call. Any other result becomes text.
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

// anyAnswered reports whether a call of the last turn has a result. If none has, the conversation
// ends with open calls, which is legal.
func (h *historyBuilder) anyAnswered() bool {
	return slices.ContainsFunc(h.pending,
		func(c *dialogue.Call) bool { return len(h.results[callKey(c.ID, c.Name)]) > 0 })
}

// answer adds the results of the calls that wait for them. A call without one gets a result that
// says so, because the vendor refuses a history with a gap.
// The results are copied before their name is set, because they are shared with the request, which
// another attempt may encode for another target.
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
		r.Name = h.e.names.upstreamName(c.Namespace, c.Name)
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

// placeholder is the text of a turn of the user that has to be invented. The vendor refuses an
// empty text.
const placeholder = "."

// contents writes the turns. The vendor demands that the user begins.
// The invented turn has a text without meaning. An empty one would be refused, and a sentence would
// be an instruction that the client did not give.
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

// roleWord returns the vendor's word for a role. It has two.
func roleWord(r dialogue.Role) string {
	if r == dialogue.Assistant {
		return "model"
	}
	return "user"
}

// parts writes the parts of a turn. A thought without words behind a text is the signature of that
// text. Chat has its thoughts before all text, so there such a thought is the signature of the text behind it.
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
			if signatureOf(p) != "" && unsignedText(t.Parts[i+1:]) {
				i++
				writeText(&e.w, t.Parts[i].Text, false, p.Thinking.Signature)
				continue
			}
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

// signatureOf returns the signature of a thought without words, or "" for another part.
func signatureOf(p dialogue.Part) string {
	if p.Kind != dialogue.ThinkingPart || p.Thinking.Text != "" {
		return ""
	}
	return p.Thinking.Signature
}

// unsignedText reports whether parts begins with a text that has no signature behind it.
func unsignedText(parts []dialogue.Part) bool {
	return len(parts) > 0 && (parts[0].Kind == dialogue.TextPart || parts[0].Kind == dialogue.RefusalPart) &&
		(len(parts) == 1 || signatureOf(parts[1]) == "")
}

// signatures returns the thoughtSignature of each call of a turn: its own, or the one that the
// gateway remembers, if the target accepts it. From the third generation on the first call of a
// step must have one. The history of another model gets the stand-in that the vendor documents for
// it.
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

// call writes a functionCall. Arguments that are not an object are wrapped into one.
func (e *encoder) call(c *dialogue.Call, signature string) {
	sent := dialogue.Call{ID: c.ID, Name: e.names.upstreamName(c.Namespace, c.Name), Custom: c.Custom}
	e.rep.LoseIf(writeCall(&e.w, &sent, c.Args, signature), "tool_calls:arguments")
}

// answerParts writes the results with which parts begins, and behind all of them the media that
// cannot stand inside.
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

// response writes a functionResponse, and returns the media that must follow it: models from the
// third generation on take data inside it, and no model takes addresses there.
// Addresses stand behind all results of a turn and not between them, because the vendor requires
// the results of parallel calls side by side.
func (e *encoder) response(r *dialogue.Result) (beside []*dialogue.Media) {
	var inside []*dialogue.Media
	for _, p := range r.Parts {
		e.rep.LoseIf(p.Kind == dialogue.ServerPart, "server_tool_blocks")
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

// writeResponse writes the response, which must be an object: the client's own, the text if it is
// one, or else the text under the key output or error, as the vendor documents.
// JSON in a text is sent as JSON, so that the model sees the structure and not a string full of
// backslashes. Bytes that are not UTF-8 are replaced, because the body must be JSON.
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
