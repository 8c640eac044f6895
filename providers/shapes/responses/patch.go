package responses

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// Patch prepares a request that goes to an upstream of this shape. It changes the model, removes
// what the gateway does itself (a stored history, work in the background), what the model refuses,
// and reasoning that the upstream cannot read. All other bytes stay, unknown members included.
// Errors are for summaries of another owner.
func (shape) Patch(
	body []byte, in shapes.Params, head shapes.Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	p := patch{body: body}
	if head.Model != t.Model {
		p.set("model", t.Model)
	}
	if head.PreviousResponseID == "" {
		p.removeIf("previous_response_id", given)
	}
	if !head.Background {
		p.removeIf("background", gjson.Result.Bool)
	}
	if head.Structured {
		p.degrade(t, rep)
	}
	if bad := p.replaceSealed(t, rep, env); bad != nil {
		return shapes.Call{}, bad
	}
	if head.Tuned && (!t.Caps.Sampling || t.Caps.Thinking == dialogue.ThinkingNone) {
		p.dropTuning(&t.Caps, rep)
	}
	if p.err != nil {
		return shapes.Call{}, dialogue.Internal(p.err)
	}
	call := shapes.Call{Path: callPath, Body: p.body, Stream: head.Stream}
	if compacts(in) {
		call.Path += compactPath // whose reply is never a stream
		p.removeIf("stream", gjson.Result.Bool)
		call.Body = p.body
	}
	return call, nil
}

// patch is a body with the edits so far. An edit makes a copy, so that the client's body stays as
// it is. The first error stays in err, and later edits do nothing.
type patch struct {
	body []byte
	err  error
}

// set writes a string.
func (p *patch) set(path, value string) {
	p.apply(func() ([]byte, error) { return sjson.SetBytes(p.body, path, value) })
}

// setRaw writes a value that is JSON already.
func (p *patch) setRaw(path string, value []byte) {
	p.apply(func() ([]byte, error) { return sjson.SetRawBytes(p.body, path, value) })
}

// remove removes a member.
func (p *patch) remove(path string) {
	p.apply(func() ([]byte, error) { return sjson.DeleteBytes(p.body, path) })
}

// removeIf removes a member if cond is true of its value, which does not exist for a missing
// member.
func (p *patch) removeIf(path string, cond func(gjson.Result) bool) {
	if cond(gjson.GetBytes(p.body, path)) {
		p.remove(path)
	}
}

// apply makes one change. After the first error all further ones do nothing, and the caller looks once.
func (p *patch) apply(edit func() ([]byte, error)) {
	if p.err != nil {
		return
	}
	body, err := edit()
	if err != nil {
		p.err = err
		return
	}
	p.body = body
}

// degrade changes or removes the format that the model does not follow (gateway.md 4.8 rule 6), and
// keeps the other members of text.
func (p *patch) degrade(t dialogue.Target, rep *dialogue.Report) {
	asked := readFormat(gjson.GetBytes(p.body, "text.format"))
	kept := schema.DecideOutput(asked, schema.JSONSchema, t, rep)
	switch {
	case kept.Mode == asked.Mode && bytes.Equal(kept.Schema, asked.Schema):
	case kept.Mode == dialogue.OutputText:
		p.remove("text.format")
		p.removeIf("text", func(v gjson.Result) bool { return len(v.Map()) == 0 })
	default:
		p.setRaw("text.format.schema", kept.Schema)
	}
}

// dropTuning removes the parameters of sampling and thinking that the model refuses.
func (p *patch) dropTuning(caps *dialogue.Capabilities, rep *dialogue.Report) {
	effort := gjson.GetBytes(p.body, "reasoning.effort").Str
	for _, name := range tuning {
		v := gjson.GetBytes(p.body, name)
		switch {
		case v.Exists() && caps.Refuses(name, []byte(v.Raw), effort):
			rep.Lose(name)
			p.remove(name)
		case name == "include" && caps.Thinking == dialogue.ThinkingNone:
			for i, item := range v.Array() {
				if item.Str == dialogue.IncludeEncrypted {
					p.remove("include." + strconv.Itoa(i))
					break
				}
			}
		}
	}
}

// replaceSealed removes reasoning items that the upstream would refuse: those that carry a seal, because they hold the
// thoughts of another shape's upstream, and those of another provider where the target says so. The summary of a
// conversation that this gateway compacted takes the place of its item. The item of a vendor stays, also for an
// upstream that has refused it, because the model would answer without the conversation.
func (p *patch) replaceSealed(t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) (bad *dialogue.Error) {
	if !bytes.Contains(p.body, []byte(`"encrypted_content"`)) {
		return nil
	}
	for _, m := range fields.Members(p.body) {
		if m.Name != "input" {
			continue
		}
		input := p.body[m.Value:m.End]
		all := fields.Elements(input)
		var summaries []fields.Edit
		edits := fields.Drop(all, func(i int) bool {
			item := fields.View(input[all[i].Value:all[i].End])
			proof := item.Get("encrypted_content").Str
			if proof == "" || bad != nil {
				return false
			}
			if isCompaction(item.Get("type").Str) {
				var message []byte
				message, bad = restoredSummary("input["+strconv.Itoa(i)+"]", item, env)
				if message != nil {
					summaries = append(summaries, fields.Edit{Start: all[i].Value, End: all[i].End, With: message})
				}
				return false
			}
			refused := dialogue.Sealed(proof) || !env.Accepts(t, proof)
			rep.LoseIf(refused, "thinking")
			return refused
		})
		if bad != nil {
			return bad
		}
		edits = append(edits, summaries...)
		for i := range edits {
			edits[i].Start, edits[i].End = edits[i].Start+m.Value, edits[i].End+m.Value
		}
		p.body = fields.Splice(p.body, edits)
		return nil
	}
	return nil
}
