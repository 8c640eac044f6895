package messages

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Decode builds the neutral form in one walk over the body. Turns stay as the client grouped them,
// because each target has rules of its own for that. The request shares memory with body. The only
// error is a tool result with more nested JSON than the limits of providers/fields allow.
func (shape) Decode(body []byte, in shapes.Params, env *dialogue.Env) (*dialogue.Request, error) {
	d := decoder{env: env, recall: env.NewThoughtRecall(body), req: &dialogue.Request{
		Inbound:      Name,
		Traits:       traits,
		IncludeUsage: true,
		Body:         body,
		Betas:        in.Header.Values(betaHeader),
	}}
	fields.View(body).ForEach(func(key, value gjson.Result) bool {
		d.field(key.Str, value)
		return d.err == nil
	})
	if d.err != nil {
		return nil, d.err
	}
	return d.req, nil
}

// checkResults returns the error of a tool result in the last turn whose text is JSON beyond the
// limits. Encoders of other shapes parse such a text, so it is bounded before they do.
func checkResults(turns []dialogue.Turn) *dialogue.Error {
	i := len(turns) - 1
	for j, p := range turns[i].Parts {
		if p.Result != nil {
			at := "messages." + strconv.Itoa(i) + ".content." + strconv.Itoa(j) + ".content"
			if bad := fields.CheckInnerParts(at, p.Result.Parts); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// decoder reads one request that has passed Check.
type decoder struct {
	req *dialogue.Request
	env *dialogue.Env
	err *dialogue.Error // the first result of a tool that is over the limits

	recall dialogue.ThoughtRecall
}

// field reads one member at the top of the body. null counts as absent. A member without a case
// here goes to Request.Extra: an upstream of this shape gets it, and any other records it as lost.
func (d *decoder) field(name string, v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	req := d.req
	switch name {
	case "model":
		req.Model = v.String()
	case "stream":
		req.Stream = v.Bool()
	case "max_tokens":
		req.MaxTokens = whole(v)
	case "temperature":
		req.Temperature = json.Number(v.Raw)
	case "top_p":
		req.TopP = json.Number(v.Raw)
	case "top_k":
		req.TopK = whole(v)
	case "stop_sequences":
		req.Stop = texts(v)
	case "system":
		req.System = d.system(v)
	case "messages":
		req.Turns = make([]dialogue.Turn, 0, v.Get("#").Int())
		v.ForEach(func(_, turn gjson.Result) bool {
			req.Turns = append(req.Turns, d.turn(turn))
			d.err = checkResults(req.Turns)
			return d.err == nil
		})
	case "tools":
		v.ForEach(func(_, tool gjson.Result) bool {
			d.tool(tool)
			return true
		})
	case "tool_choice":
		d.toolChoice(v)
	case "thinking":
		d.thinking(v)
	case "output_config":
		d.outputConfig(v)
	case "output_format":
		if req.Output.Mode == dialogue.OutputText {
			req.Output = output(v)
		}
	case "service_tier":
		req.ServiceTier = v.String()
	case "metadata":
		req.User = v.Get("user_id").String()
		req.RecordIgnoredExcept(name, v, "user_id")
	default:
		if name == contextManagement {
			req.ContextEdits, req.OnlyContextEdits = contextEdits(v)
		}
		req.Extra = append(req.Extra, dialogue.Field{Name: name, Value: fields.Raw(v)})
	}
}

// whole returns a number for one of the pointers in Request, in which nil stands for "not given".
func whole(v gjson.Result) *int64 {
	return new(v.Int())
}

// texts returns a list of strings.
func texts(v gjson.Result) []string {
	var out []string
	v.ForEach(func(_, e gjson.Result) bool {
		out = append(out, e.String())
		return true
	})
	return out
}

// system returns the instructions, with the hints of each block for the cache.
func (d *decoder) system(v gjson.Result) []dialogue.Part {
	if v.Type == gjson.String {
		return []dialogue.Part{{Text: v.Str}}
	}
	var parts []dialogue.Part
	v.ForEach(func(_, b gjson.Result) bool {
		d.req.RecordIgnoredExcept("system", b, "type", "text", "cache_control")
		parts = append(parts, dialogue.Part{Text: b.Get("text").String(), CacheHint: raw(b.Get("cache_control"))})
		return true
	})
	return parts
}

// raw returns nil for a value that is null or absent.
func raw(v gjson.Result) json.RawMessage {
	if v.Type == gjson.Null {
		return nil
	}
	return fields.Raw(v)
}

// tool adds one tool to the request. Its JSON is kept beside what is read of it, so that an
// upstream of this shape gets it unchanged. Tools that run at the vendor have a dated type such as
// web_search_20250305. Only the search has a counterpart elsewhere.
func (d *decoder) tool(v gjson.Result) {
	t := dialogue.Tool{
		Kind:      dialogue.FunctionTool,
		Name:      v.Get("name").String(),
		CacheHint: raw(v.Get("cache_control")),
		Origin:    Name,
		Opaque:    fields.Raw(v),
	}
	switch kind := v.Get("type").String(); {
	case clientTool(kind):
		d.req.RecordIgnoredExcept("tools", v, "type", "name", "description", "input_schema", "strict", "cache_control")
		t.Description = v.Get("description").String()
		t.Schema = raw(v.Get("input_schema"))
		if strict := v.Get("strict"); strict.IsBool() {
			t.Strict = new(strict.Bool())
		}
	case strings.HasPrefix(kind, "web_search"):
		t.Kind, t.Type = dialogue.WebSearchTool, kind
		d.req.WebSearch = true
	default:
		t.Kind, t.Type = dialogue.OpaqueTool, kind
	}
	d.req.Tools = append(d.req.Tools, t)
}

// toolChoice reads the choice, and the wish for parallel calls, which this vendor puts inside the
// choice and with the opposite sign.
func (d *decoder) toolChoice(v gjson.Result) {
	d.req.RecordIgnoredExcept("tool_choice", v, "type", "name", "disable_parallel_tool_use")
	choice := &dialogue.ToolChoice{}
	switch v.Get("type").String() {
	case "auto":
		choice.Mode = dialogue.ToolAuto
	case "none":
		choice.Mode = dialogue.ToolNone
	case "any":
		choice.Mode = dialogue.ToolRequired
	case "tool":
		choice.Mode, choice.Names = dialogue.ToolNamed, []string{v.Get("name").String()}
	}
	d.req.ToolChoice = choice
	if single := v.Get("disable_parallel_tool_use"); single.IsBool() {
		d.req.Parallel = new(!single.Bool())
	}
}

// thinking reads how much the model may think. The client sees the thoughts unless it asks to omit
// them.
func (d *decoder) thinking(v gjson.Result) {
	d.req.RecordIgnoredExcept("thinking", v, "type", "budget_tokens", "display")
	r := &d.req.Reasoning
	r.Include = v.Get("display").String() != "omitted"
	switch v.Get("type").String() {
	case "enabled":
		r.Budget = whole(v.Get("budget_tokens"))
	case "adaptive":
		r.Adaptive = true
	default:
		r.Disabled, r.Include = true, false
	}
}

// outputConfig reads the effort, which the vendor keeps here and not in thinking, and the format.
func (d *decoder) outputConfig(v gjson.Result) {
	d.req.RecordIgnoredExcept("output_config", v, "effort", "format")
	d.req.RecordIgnoredExcept("output_config.format", v.Get("format"), "type", "schema")
	d.req.Reasoning.Effort = v.Get("effort").String()
	if format := v.Get("format"); format.IsObject() {
		d.req.Output = output(format)
	}
}

// output returns the output that a format object asks for. A schema that is missing stays nil, and
// providers/schema decides what the client gets instead.
func output(format gjson.Result) dialogue.Output {
	if format.Get("type").String() == "json_object" {
		return dialogue.Output{Mode: dialogue.OutputJSON}
	}
	return dialogue.Output{Mode: dialogue.OutputSchema, Schema: raw(format.Get("schema"))}
}
