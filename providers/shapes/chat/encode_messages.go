package chat

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// messages writes the conversation in the sequence that the vendor demands: after a message with
// calls come the results of all of them, one message each, and only then anything else. Other
// shapes allow results and text in any sequence, so results are looked up ahead and written early.
// answered has those.
func (e *encoder) messages() error {
	e.Key("messages").Array()
	written := e.system()
	turns := e.req.Turns
	answered := make(map[*dialogue.Result]bool)
	for i := 0; i < len(turns); {
		n := 1
		if turns[i].Role == dialogue.Assistant {
			for i+n < len(turns) && turns[i+n].Role == dialogue.Assistant {
				n++
			}
		}
		said, err := e.exchange(turns[i:i+n], turns[i+n:], answered)
		if err != nil {
			return err
		}
		written = written || said
		i += n
	}
	if !written {
		e.writeMessage("user", "", []dialogue.Part{{Kind: dialogue.TextPart}})
	}
	e.End()
	return nil
}

// system writes the prompt at the front and reports whether there was one.
func (e *encoder) system() bool {
	var texts []string
	for _, p := range e.req.System {
		if strings.TrimSpace(p.Text) != "" {
			texts = append(texts, p.Text)
		}
	}
	if len(texts) == 0 {
		return false
	}
	// One message: servers that know only one system prompt take the last.
	e.Object().Key("role").String("system").Key("content").String(strings.Join(texts, "\n\n")).End()
	return true
}

// exchange writes adjacent turns of the assistant, or one turn of the user. It reports whether it
// wrote anything. later has the turns after them.
func (e *encoder) exchange(turns, later []dialogue.Turn, answered map[*dialogue.Result]bool) (bool, error) {
	if turns[0].Role == dialogue.Assistant {
		return e.assistant(turns, later, answered)
	}
	return e.user(turns[0], answered)
}

// assistantMessage holds the parts of one assistant message.
type assistantMessage struct {
	content  []dialogue.Part
	refusal  string
	thoughts []*dialogue.Thinking
	calls    []*dialogue.Call
}

// assistant writes adjacent turns of the assistant as one message and, behind it, the results of
// its calls, wherever they stand in later. Media in results follow in a message of the user,
// because a tool's message holds text only.
// Adjacent turns are joined, because the vendor has one message for each answer, and other shapes
// divide an answer that called tools into several. Calls with which the history ends are written without results,
// because the vendor requires a result of every call but the last ones.
func (e *encoder) assistant(turns, later []dialogue.Turn, answered map[*dialogue.Result]bool) (bool, error) {
	var u assistantMessage
	for _, t := range turns {
		for _, p := range t.Parts {
			e.sortParts(&u, p)
		}
	}
	if len(u.content) == 0 && u.refusal == "" && len(u.calls) == 0 {
		return false, nil
	}
	ids := make([]string, len(u.calls))
	for i, c := range u.calls {
		ids[i] = e.callIDs.Of(c)
	}
	e.writeAssistant(turns[0].Name, u, ids)
	if len(later) == 0 {
		return true, nil
	}
	var media []dialogue.Part
	for i, call := range u.calls {
		res := answerTo(call, later, answered)
		answered[res] = true
		shown := e.answer(ids[i], res)
		if len(shown) > 0 {
			media = append(media,
				dialogue.Part{Kind: dialogue.TextPart, Text: "Attachments of the result of tool call " + ids[i] + ":"})
			media = append(media, shown...)
		}
	}
	if len(media) > 0 {
		return true, e.writeMessage("user", "", media)
	}
	return true, nil
}

// sortParts adds a part to the member of the message where the shape has it.
func (e *encoder) sortParts(u *assistantMessage, p dialogue.Part) {
	switch p.Kind {
	case dialogue.TextPart, dialogue.SystemPart:
		if p.Text != "" {
			u.content = append(u.content, p)
		}
	case dialogue.RefusalPart:
		u.refusal += p.Text
	case dialogue.ThinkingPart:
		u.thoughts = append(u.thoughts, p.Thinking)
	case dialogue.CallPart:
		u.calls = append(u.calls, p.Call)
	case dialogue.MediaPart:
		e.rep.Lose("assistant_media") // only users can show something
	default:
		e.rep.Lose("server_tool")
	}
}

// writeAssistant writes one message of the assistant. ids has the ids of its calls as the upstream gets
// them.
func (e *encoder) writeAssistant(name string, u assistantMessage, ids []string) {
	e.Object().Key("role").String("assistant")
	e.word("name", name)
	e.Key("content")
	if len(u.content) == 0 {
		e.Null()
	} else {
		_ = e.content(u.content) // text only: cannot be refused
	}
	e.word("refusal", u.refusal)
	e.thinking(u.thoughts, len(u.calls))
	if len(u.calls) > 0 {
		e.Key("tool_calls").Array()
		for i, c := range u.calls {
			e.call(ids[i], c)
		}
		e.End()
	}
	e.End()
}

// thinking writes reasoning_content with the text of the thoughts, and reasoning_details with the
// proofs that an upstream of this shape gave. calls is the number of calls in the message: some
// servers demand the text with calls, even if it is empty, and others refuse a message that has it
// (Capabilities.ReasoningContent). An upstream that gave out proofs wants them back in either case.
func (e *encoder) thinking(thoughts []*dialogue.Thinking, calls int) {
	text, details := "", []string(nil)
	bare := false // some text is in no details
	for _, t := range thoughts {
		if t == nil {
			continue
		}
		text += t.Text
		switch raw := returned(t); {
		case raw != nil && e.env.Accepts(e.t, t.Encrypted):
			chunks.OnlyArray(fields.View(raw)).ForEach(func(_, v gjson.Result) bool {
				details = append(details, v.Raw)
				return true
			})
			continue
		case t.Text == "":
			e.rep.Lose("thinking")
		case t.Encrypted != "":
			e.rep.Lose("thinking:encrypted") // only its summary is sent
		}
		bare = bare || t.Text != ""
	}
	switch back := e.t.Caps.ReasoningContent; {
	case back == dialogue.ReasoningRefused:
		e.rep.LoseIf(bare, "thinking")
	case text != "", back == dialogue.ReasoningRequired && calls > 0:
		e.Key("reasoning_content").String(text)
	}
	if len(details) == 0 {
		return
	}
	e.Key("reasoning_details").Array()
	for _, raw := range details {
		e.RawString(raw)
	}
	e.End()
}

// call writes one element of tool_calls.
func (e *encoder) call(id string, c *dialogue.Call) {
	name := e.names.of(c.Namespace, c.Name)
	e.Object().Key("id").String(id)
	if c.Custom {
		e.Key("type").String("custom").Key("custom").Object()
		e.Key("name").String(name).Key("input").String(c.Args).End()
	} else {
		e.Key("type").String("function").Key("function").Object()
		e.Key("name").String(name).Key("arguments").String(e.arguments(c.Args)).End()
	}
	e.End()
}

// arguments returns args if it is JSON. Other text, which a reply that was cut off left in the
// history, becomes {"invalid_json": args}: upstreams parse the arguments, and the model still sees
// what it wrote.
func (e *encoder) arguments(args string) string {
	switch {
	case strings.TrimSpace(args) == "":
		return "{}"
	case fields.ValidLenientString(args):
		return args
	}
	e.rep.Lose("tool_calls:arguments")
	e2 := encoder{}
	e2.Object().Key("invalid_json").String(args).End()
	return string(e2.Buf)
}

// answerTo returns the result of a call, or nil: the first unused one with its id, up to the place
// where the id is used again. A result without an id, as Gemini's clients send, is found by name.
func answerTo(c *dialogue.Call, later []dialogue.Turn, answered map[*dialogue.Result]bool) *dialogue.Result {
	for _, t := range later {
		for _, p := range t.Parts {
			switch p.Kind {
			case dialogue.CallPart:
				if p.Call.ID == c.ID && (c.ID != "" || p.Call.Name == c.Name) {
					return nil
				}
			case dialogue.ResultPart:
				r := p.Result
				if !answered[r] && (r.CallID == c.ID && c.ID != "" || r.CallID == "" && r.Name == c.Name ||
					c.ID == "" && r.Name == c.Name) {
					return r
				}
			}
		}
	}
	return nil
}

// answer writes the message of a result. r is nil if the history has none; the vendor refuses a
// call without a result, so the message then says so. It returns the media, which must follow after
// the last result.
// Media are returned and not written, because the results of all calls must stand together before
// anything else.
func (e *encoder) answer(id string, r *dialogue.Result) (media []dialogue.Part) {
	e.Object().Key("role").String("tool").Key("tool_call_id").String(id).Key("content")
	if r == nil {
		// Every call must be answered; the client's history lacks this one.
		e.String("(no result)").End()
		e.rep.Lose("tool_result:missing")
		return nil
	}
	text, media := resultText(r, e.rep)
	_ = e.content(text)
	e.End()
	return media
}

// resultText returns the text of a result, at least one part, and its media. The text of a failed result begins with
// "Error", because a message of this shape cannot say otherwise that the call failed.
// The parts are copied and never changed in place, because they belong to the request, which
// another attempt may encode for another target.
func resultText(r *dialogue.Result, rep *dialogue.Report) (text, media []dialogue.Part) {
	for _, p := range r.Parts {
		switch {
		case p.Kind == dialogue.MediaPart && p.Media.Text == "":
			media = append(media, p)
		case p.Kind == dialogue.MediaPart:
			rep.LoseFileName(p.Media)
			text = append(text, dialogue.Part{Text: p.Media.Text})
		case p.Kind == dialogue.ServerPart:
			rep.Lose("server_tool")
		case p.Text != "":
			text = append(text, dialogue.Part{Text: p.Text})
		}
	}
	if len(text) == 0 {
		text = []dialogue.Part{{Text: string(r.Object)}}
	}
	// is_error has no field here; the model has to be able to read it.
	if r.IsError && !strings.HasPrefix(strings.ToLower(text[0].Text), "error") {
		text[0].Text = strings.TrimSuffix("Error: "+text[0].Text, ": ")
	}
	if text[0].Text == "" && len(media) > 0 {
		text[0].Text = "(see the attachments that follow)"
	}
	return text, media
}

// user writes a turn of the user, and reports whether it wrote anything. Results that were written
// behind their calls are left out. Results of no call become text, because upstreams refuse them. A
// system part in the middle splits the turn, because it needs a message of its own.
// An empty text alone still makes a message, so that a turn which the client sent does not vanish
// from the alternation of the roles.
func (e *encoder) user(t dialogue.Turn, answered map[*dialogue.Result]bool) (bool, error) {
	var content []dialogue.Part
	said, blank := false, false
	flush := func() error {
		if len(content) == 0 && !blank {
			return nil
		}
		said, blank = true, false
		parts := content
		content = nil
		return e.writeMessage("user", t.Name, parts)
	}
	for _, p := range t.Parts {
		switch p.Kind {
		case dialogue.ResultPart:
			if !answered[p.Result] {
				content = append(content, orphan(p.Result, e.rep)...)
			}
		case dialogue.SystemPart:
			if err := flush(); err != nil {
				return said, err
			}
			e.Object().Key("role").String("system").Key("content").String(p.Text).End()
			said = true
		case dialogue.TextPart, dialogue.RefusalPart:
			if blank = blank || p.Text == ""; p.Text != "" {
				content = append(content, p)
			}
		case dialogue.MediaPart:
			content = append(content, p)
		default:
			e.rep.Lose("server_tool")
		}
	}
	err := flush()
	return said, err
}

// orphan returns parts that say what a result of an unknown call contained.
func orphan(r *dialogue.Result, rep *dialogue.Report) []dialogue.Part {
	rep.Lose("tool_result:orphan")
	text, media := resultText(r, rep)
	text[0].Text = "Result of tool call " + cmp.Or(r.CallID, r.Name) + ": " + text[0].Text
	return append(text, media...)
}

// writeMessage writes one message. name is the optional name of the participant.
func (e *encoder) writeMessage(role, name string, parts []dialogue.Part) error {
	e.Object().Key("role").String(role)
	e.word("name", name)
	e.Key("content")
	if err := e.content(parts); err != nil {
		return err
	}
	e.End()
	return nil
}

// content writes the parts of a message: as a string if one text is all, because not every server
// takes lists, and else as a list.
func (e *encoder) content(parts []dialogue.Part) error {
	if len(parts) == 0 {
		e.String("")
		return nil
	}
	if len(parts) == 1 && parts[0].Media == nil {
		e.String(parts[0].Text)
		return nil
	}
	e.Array()
	for _, p := range parts {
		if p.Media != nil {
			if err := e.media(p); err != nil {
				return err
			}
			continue
		}
		e.text(p.Text)
	}
	e.End()
	return nil
}

func (e *encoder) text(s string) {
	e.Object().Key("type").String("text").Key("text").String(s).End()
}
