package messages

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// Patch changes the model's name, a schema the vendor would refuse, and thinking
// that it did not sign. Every other byte stays (translation.md 3).
func (shape) Patch(
	body []byte, in shapes.Params, head shapes.Head, t dialogue.Target, rep *dialogue.Report, _ *dialogue.Env,
) (shapes.Call, error) {
	p := patch{body: body, target: t, rep: rep}
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

// patch collects edits of a body, in the order of the document.
type patch struct {
	body   []byte
	target dialogue.Target
	rep    *dialogue.Report
	edits  []edit

	thinking gjson.Result // the field
	bare     bool         // the last assistant message begins without its thinking
	goesOn   bool         // and its calls were answered
}

// edit replaces body[from:to].
type edit struct {
	from, to int
	with     string
}

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
	}
}

func (p *patch) replace(v gjson.Result, with string) {
	p.edits = append(p.edits, edit{v.Index, v.Index + len(v.Raw), with})
}

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
	p.edits = append(p.edits, edit{from: from, to: to})
}

func skipSpace(b []byte, at, step int) int {
	for b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r' {
		at += step
	}
	return at
}

// format edits the schema of a format as structured outputs demand, and reports
// whether the format may stay at all (gateway.md 4.8).
func (p *patch) format(v gjson.Result) bool {
	out := schema.DecideOutput(output(v), schema.ClosedObjects, p.target, p.rep)
	if out.Mode != dialogue.OutputSchema {
		return false
	}
	if given := v.Get("schema"); !same(json.RawMessage(given.Raw), out.Schema) {
		p.replace(given, string(out.Schema))
	}
	return true
}

// messages takes out the thinking that the vendor would refuse: unsigned, or
// sealed by a gateway. A message that had nothing else goes with it.
func (p *patch) messages(v gjson.Result) {
	if !bytes.Contains(p.body, []byte(`thinking"`)) {
		return
	}
	var turns []string
	changed := false
	v.ForEach(func(_, turn gjson.Result) bool {
		kept := thinned(turn)
		if kept != turn.Raw {
			changed = true
		}
		if kept != "" {
			p.follow(turn, kept)
			turns = append(turns, kept)
		}
		return true
	})
	if changed {
		p.rep.Lose("thinking")
		p.replace(v, "["+strings.Join(turns, ",")+"]")
	}
}

// thinned returns a message without the blocks that are refused, "" if there is
// nothing else in it.
func thinned(turn gjson.Result) string {
	content := turn.Get("content")
	if !content.IsArray() || turn.Get("role").Str != "assistant" {
		return turn.Raw
	}
	var kept []string
	all := 0
	content.ForEach(func(_, b gjson.Result) bool {
		if all++; !refused(b) {
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

func refused(b gjson.Result) bool {
	switch b.Get("type").Str {
	case "thinking":
		signature := b.Get("signature").String()
		return signature == "" || dialogue.Sealed(signature)
	case "redacted_thinking":
		return dialogue.Sealed(b.Get("data").Str)
	}
	return false
}

// follow learns how the conversation ends: whether the model is to go on with
// calls of a message that lost the thinking in front of them.
func (p *patch) follow(turn gjson.Result, kept string) {
	switch {
	case turn.Get("role").Str == "assistant":
		p.bare = kept != turn.Raw && !strings.HasSuffix(gjson.Get(kept, "content.0.type").Str, "thinking")
		p.goesOn = false
	case p.bare:
		p.goesOn = turn.Get("content.0.type").Str == "tool_result"
	}
}

// apply makes the edits, if there are any.
func (p *patch) apply() []byte {
	if p.goesOn && p.thinking.Get("type").Str == "enabled" {
		// The vendor wants the thinking back, or no thinking (wire/messages.md 6).
		p.rep.Lose("reasoning:history")
		p.replace(p.thinking, `{"type":"disabled"}`)
	}
	if len(p.edits) == 0 {
		return p.body
	}
	slices.SortFunc(p.edits, func(a, b edit) int { return a.from - b.from })
	out := make([]byte, 0, len(p.body)+256)
	at := 0
	for _, e := range p.edits {
		out = append(append(out, p.body[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, p.body[at:]...)
}
