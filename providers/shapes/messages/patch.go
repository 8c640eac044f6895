package messages

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// Patch prepares a request that goes to an upstream of this shape. It changes the model's name, a
// schema that the vendor would refuse, thinking that the vendor did not sign, parameters that the
// model refuses, and turns of a role that it does not know. Every other byte stays, so that the
// upstream's prompt cache still matches. A body without edits is returned as it is.
func (shape) Patch(
	body []byte, in shapes.Params, head shapes.Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	p := patch{body: body, head: &head, target: t, rep: rep, env: env}
	view(body).ForEach(func(key, v gjson.Result) bool {
		p.field(key, v)
		return true
	})
	call := shapes.Call{Path: path, Header: upstreamHeader(in.Header), Body: p.apply(), Stream: head.Stream}
	if strings.HasSuffix(in.Path, countPath) {
		call.Path = countPath
	}
	return call, nil
}

// patch collects the edits of one body while its top-level members are walked, in document order.
// Edits that depend on several members wait for apply.
// Positions are those in the original body, so all edits are collected first and made at once. The
// body itself is never written to, because another attempt may need it for another target.
type patch struct {
	body   []byte
	head   *shapes.Head
	target dialogue.Target
	rep    *dialogue.Report
	env    *dialogue.Env
	edits  []fields.Edit

	thinking gjson.Result // the field
	loop     toolLoop
	sampling []string // parameters of sampling that are given
	dropped  []string // fields to remove
}

// field notes the edits of one member at the top of the body.
func (p *patch) field(key, v gjson.Result) {
	switch key.Str {
	case "model":
		if v.Str != p.target.Model {
			p.replace(v, quoted(p.target.Model))
		}
	case "messages":
		p.messages(v)
	case "output_config":
		p.outputConfig(v)
	case "output_format":
		if v.IsObject() && !p.format(v) {
			p.replace(v, "null")
		}
	case "thinking":
		p.thinking = v
	case "tool_choice":
		if kind := v.Get("type").Str; p.target.Caps.NoForcedTools && (kind == "any" || kind == "tool") {
			p.rep.Lose("tool_choice:forced")
			p.replace(v, `{"type":"auto"`+flag(v, "disable_parallel_tool_use")+`}`)
		}
	case "temperature", "top_p", "top_k":
		p.sampling = append(p.sampling, key.Str)
		if !p.target.Caps.Sampling && (key.Str != "temperature" || v.Num != 1) {
			p.drop(key.Str)
		}
	}
}

// flag returns a member of an object with its comma, or "" if the object lacks it.
func flag(v gjson.Result, name string) string {
	if m := v.Get(name); m.Exists() {
		return `,"` + name + `":` + m.Raw
	}
	return ""
}

// drop removes a top-level field that the model refuses.
func (p *patch) drop(name string) {
	p.rep.Lose(name)
	p.dropped = append(p.dropped, name)
}

// thinks replaces a thinking parameter that the model or the conversation does not allow. It runs
// last, because it needs to know how the latest tool loop began.
// The replacements keep the request valid for a model that would refuse it, and each is reported as
// a loss. An answer without the thinking that was asked for is better than an error in the middle
// of an agent's work.
func (p *patch) thinks() {
	switch kind := p.thinking.Get("type").Str; {
	case kind == "disabled" && p.target.Caps.AlwaysThinks:
		p.rep.Lose("reasoning:none")
		p.dropped = append(p.dropped, "thinking")
	case kind == "enabled" && p.target.Caps.NoBudgets:
		p.rep.Lose("reasoning:budget")
		p.replace(p.thinking, `{"type":"adaptive"`+flag(p.thinking, "display")+`}`)
	case kind == "enabled" && p.loop.goes && p.loop.bare:
		// The vendor wants the thinking back, or no thinking.
		p.rep.Lose("reasoning:history")
		p.replace(p.thinking, `{"type":"disabled"}`)
	}
}

// replace notes that the bytes of v become with.
func (p *patch) replace(v gjson.Result, with string) {
	p.edits = append(p.edits, fields.Edit{Start: v.Index, End: v.Index + len(v.Raw), With: []byte(with)})
}

// outputConfig removes the format if the model cannot be bound to it, and keeps the other members.
func (p *patch) outputConfig(v gjson.Result) {
	members := 0
	var formatKey, format gjson.Result
	v.ForEach(func(k, m gjson.Result) bool {
		if members++; k.Str == "format" {
			formatKey, format = k, m
		}
		return true
	})
	if !format.IsObject() || p.format(format) {
		return
	}
	if members == 1 {
		p.replace(v, "{}")
		return
	}
	p.remove(formatKey, format)
}

// remove takes one of several members out of an object, together with the comma
// behind it or, if it is the last, the one before.
func (p *patch) remove(key, v gjson.Result) {
	from, to := key.Index, v.Index+len(v.Raw)
	if next := skipSpace(p.body, to, 1); p.body[next] == ',' {
		to = next + 1
	} else {
		from = skipSpace(p.body, from-1, -1)
	}
	p.edits = append(p.edits, fields.Edit{Start: from, End: to})
}

// skipSpace returns the first index from at on, in the direction of step, that is not white space.
func skipSpace(b []byte, at, step int) int {
	for b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r' {
		at += step
	}
	return at
}

// format edits the schema of a format as structured outputs demand, and reports
// whether the format may stay at all.
// The schema is replaced only if the rewrite changed it, so that its bytes stay where they can.
func (p *patch) format(v gjson.Result) bool {
	out := schema.DecideOutput(output(v), schema.ClosedObjects, p.target, p.rep)
	if out.Mode != dialogue.OutputSchema {
		return false
	}
	if v.Get("name").Exists() || v.Get("strict").Exists() { // of other vendors; this one refuses them
		p.replace(v, `{"type":"json_schema","schema":`+string(out.Schema)+`}`)
		return true
	}
	if given := v.Get("schema"); !same(json.RawMessage(given.Raw), out.Schema) {
		p.replace(given, string(out.Schema))
	}
	return true
}

// messages removes the thinking that the vendor would refuse, because it is unsigned or a gateway
// sealed it, and folds the turns of a system role where the model refuses that role. A message
// that had nothing else is left out.
// Most requests have neither a system turn nor thinking. They are recognised by one search, so that
// a history of many megabytes is not walked.
func (p *patch) messages(v gjson.Result) {
	fold := p.head.SystemTurns && !p.target.Caps.SystemTurns
	if !fold && !bytes.Contains(p.body, []byte(`thinking"`)) {
		return
	}
	turns := turnList{}
	v.ForEach(func(_, turn gjson.Result) bool {
		role := turn.Get("role").Str
		if fold && role == "system" {
			turns.remind(turn)
			p.rep.Lose("system:folded")
			return true
		}
		kept := p.thinned(turn, role)
		if kept != turn.Raw {
			turns.changed = true
			p.rep.Lose("thinking")
		}
		if kept != "" {
			p.loop.see(role, gjson.Get(kept, "content"))
			turns.add(role, kept)
		}
		return true
	})
	if turns.flush(); turns.changed {
		p.replace(v, "["+strings.Join(turns.all, ",")+"]")
	}
}

// turnList collects the turns of a conversation that is being changed.
// A note of the system cannot stay where it was if the model has no such role. It becomes a marked
// text (dialogue.Reminder) in the turn of the user beside it.
type turnList struct {
	all     []string
	role    string   // of the last turn
	notes   []string // text blocks of system turns that wait for a turn of the user
	changed bool
}

// remind keeps what a system turn says as blocks of the user's turn before or after it. The blocks
// stand behind the results of tools, which must come first in their turn.
func (l *turnList) remind(turn gjson.Result) {
	l.changed = true
	content := turn.Get("content")
	if content.Type == gjson.String {
		l.notes = append(l.notes, `{"type":"text","text":`+quoted(dialogue.Reminder(content.Str))+`}`)
	} else {
		content.ForEach(func(_, b gjson.Result) bool {
			note := b.Raw
			if b.Get("type").Str == "text" {
				if set, err := sjson.SetRaw(note, "text", quoted(dialogue.Reminder(b.Get("text").Str))); err == nil {
					note = set
				}
			}
			l.notes = append(l.notes, note)
			return true
		})
	}
}

// add adds a turn. Notes wait for a turn of the user that follows them only if none stands before them.
func (l *turnList) add(role, turn string) {
	if role != "user" || l.role == "user" {
		l.flush()
	}
	l.all, l.role = append(l.all, turn), role
}

// flush adds the notes to the last turn if it is the user's, and else as a turn of their own. A turn is changed once
// for all notes beside it, because a conversation may have many notes beside a large turn.
func (l *turnList) flush() {
	if len(l.notes) == 0 {
		return
	}
	if l.role != "user" {
		l.all = append(l.all, `{"role":"user","content":[`+strings.Join(l.notes, ",")+`]}`)
		l.role, l.notes = "user", nil
		return
	}
	turn := &l.all[len(l.all)-1]
	blocks := l.notes
	switch content := gjson.Get(*turn, "content"); {
	case content.Type == gjson.String && content.Str != "":
		blocks = append([]string{`{"type":"text","text":` + content.Raw + `}`}, blocks...)
	case content.IsArray() && content.Get("0").Exists():
		list := strings.TrimRight(content.Raw, " \t\r\n")
		blocks = append([]string{list[1 : len(list)-1]}, blocks...)
	}
	if changed, err := sjson.SetRaw(*turn, "content", "["+strings.Join(blocks, ",")+"]"); err == nil {
		*turn = changed
	}
	l.notes = nil
}

// toolLoop learns how the latest tool loop of a conversation began. The vendor has one
// configuration of thinking for each answer, which begins after the user's last text and goes on
// while tools are called. So the first message of the assistant after that text decides.
type toolLoop struct {
	begun bool // the assistant has answered the last text of the user
	bare  bool // that answer began without thinking
	goes  bool // the results of its latest calls are the last turn
}

// see learns from the next turn.
func (l *toolLoop) see(role string, content gjson.Result) {
	switch {
	case role == "assistant":
		if !l.begun {
			l.begun, l.bare = true, !strings.HasSuffix(content.Get("0.type").Str, "thinking")
		}
		l.goes = false
	case !hasResult(content):
		*l = toolLoop{}
	default:
		l.goes = l.begun
	}
}

// hasResult reports whether a message has a result of a tool.
func hasResult(content gjson.Result) (found bool) {
	if content.IsArray() {
		content.ForEach(func(_, b gjson.Result) bool {
			found = b.Get("type").Str == "tool_result"
			return !found
		})
	}
	return found
}

// thinned returns a message of the assistant without the blocks that are refused, or "" if nothing
// else is in it. Other messages are returned as they are.
func (p *patch) thinned(turn gjson.Result, role string) string {
	content := turn.Get("content")
	if !content.IsArray() || role != "assistant" {
		return turn.Raw
	}
	var kept []string
	all := 0
	content.ForEach(func(_, b gjson.Result) bool {
		if all++; !p.refuses(b) {
			kept = append(kept, b.Raw)
		}
		return true
	})
	switch len(kept) {
	case all:
		return turn.Raw
	case 0:
		return ""
	}
	at := content.Index - turn.Index
	return turn.Raw[:at] + "[" + strings.Join(kept, ",") + "]" + turn.Raw[at+len(content.Raw):]
}

// refuses reports whether the upstream would refuse a thinking block: one without a proof, one with
// a seal of a gateway, or one whose proof another provider gave (dialogue.Env.Accepts). Other
// blocks are fine.
// A refused block costs the client its whole request, while a missing one costs the model the
// memory of a thought.
func (p *patch) refuses(b gjson.Result) bool {
	proof := ""
	switch b.Get("type").Str {
	case "thinking":
		proof = b.Get("signature").String()
	case "redacted_thinking":
		proof = b.Get("data").Str
	default:
		return false
	}
	return proof == "" || dialogue.Sealed(proof) || !p.env.Accepts(p.target, proof)
}

// apply makes the edits that needed the whole body to be known, then all others, and returns the
// new body. Members to drop are removed afterwards, because their places move with the edits.
func (p *patch) apply() []byte {
	p.thinks()
	if p.target.Caps.OneSampling && slices.Contains(p.sampling, "temperature") && slices.Contains(p.sampling, "top_p") {
		p.drop("top_p")
	}
	body := fields.Splice(p.body, p.edits)
	if len(p.dropped) == 0 {
		return body
	}
	members := fields.Members(body)
	return fields.Without(body, members, func(i int) bool { return slices.Contains(p.dropped, members[i].Name) })
}
