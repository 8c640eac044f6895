package chat

import (
	"cmp"
	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// decoder builds the neutral form of one request.
type decoder struct {
	env *dialogue.Env
	req *dialogue.Request

	recall    dialogue.ThoughtRecall
	maxTokens *int64          // deprecated, counts if the newer one is absent
	user      string          // deprecated, counts if safety_identifier is absent
	custom    map[string]bool // ids of custom calls seen so far
	functions []pendingFunction
	err       *dialogue.Error // the first string inside that is over the limits
}

// decode implements shapes.Inbound. Where the vendor renamed a parameter, the newer name wins,
// wherever it stands. The error refuses a string of the history that holds JSON beyond the limits
// of providers/fields, such as the arguments of a call.
func decode(body []byte, env *dialogue.Env) (*dialogue.Request, error) {
	d := &decoder{env: env, recall: env.NewThoughtRecall(body),
		req: &dialogue.Request{Inbound: Name, Traits: traits, Body: body}}
	chunks.OnlyObject(fields.View(body)).ForEach(func(name, v gjson.Result) bool {
		if v.Type != gjson.Null {
			d.field(name.String(), v)
		}
		return d.err == nil
	})
	if d.err != nil {
		return nil, d.err
	}
	if d.req.MaxTokens == nil {
		d.req.MaxTokens = d.maxTokens
	}
	d.req.User = cmp.Or(d.req.User, d.user)
	if d.req.LegacyFunctions && d.req.Parallel == nil {
		d.req.Parallel = new(false) // function_call holds one call, so further ones would be lost
	}
	return d.req, nil
}

// field reads one member at the top of the body. A member without a case here goes to Request.Extra, which
// upstreams of this shape get and others report as lost.
func (d *decoder) field(name string, v gjson.Result) {
	req := d.req
	switch name {
	case "messages":
		d.messages(v)
	case "max_completion_tokens":
		req.MaxTokens = chunks.Integer(v)
	case "max_tokens":
		d.maxTokens = chunks.Integer(v)
	case "top_k":
		req.TopK = chunks.Integer(v)
	case "logprobs":
		req.LogProbs = v.Bool()
	case "top_logprobs":
		req.TopLogProbs = chunks.Integer(v)
	case "parallel_tool_calls":
		req.Parallel = boolean(v)
	case "response_format":
		req.Output = output(v)
		req.RecordIgnoredExcept("response_format", v, "type", "json_schema")
		req.RecordIgnoredExcept("response_format.json_schema", v.Get("json_schema"), "name", "description", "strict",
			"schema")
	case "reasoning_effort":
		// Chat clients can show thoughts, so asking for effort asks for them.
		req.Reasoning = dialogue.Reasoning{Effort: v.Str, Include: v.Str != "none"}
	case "safety_identifier":
		req.User = v.Str
	case "user":
		d.user = v.Str
	case "metadata":
		req.Metadata = fields.Raw(v)
	case "service_tier":
		req.ServiceTier = v.Str
	case "prompt_cache_key":
		req.CacheKey = v.Str
	case "prompt_cache_retention":
		req.CacheRetention = v.Str
	case "prompt_cache_options":
		req.CacheOptions = fields.Raw(v)
	case "verbosity":
		req.Verbosity = v.Str
	case "store":
		req.Store = boolean(v)
	case "web_search_options":
		req.WebSearch, req.SearchOptions = true, fields.Raw(v)
	case "modalities":
		req.Modalities = chunks.StringList(v)
	case "tools", "tool_choice", "functions", "function_call":
		d.readToolMember(name, v)
	default:
		if chunks.DecodeField(req, name, v) {
			return
		}
		req.Extra = append(req.Extra, dialogue.Field{Name: name, Value: fields.Raw(v)})
	}
}

// output returns the output that response_format asks for. A schema that is missing stays nil, and
// providers/schema decides what the client gets instead.
func output(v gjson.Result) dialogue.Output {
	switch v.Get("type").Str {
	case "json_object":
		return dialogue.Output{Mode: dialogue.OutputJSON}
	case "json_schema":
	default:
		return dialogue.Output{}
	}
	o := dialogue.Output{Mode: dialogue.OutputSchema}
	chunks.OnlyObject(v.Get("json_schema")).ForEach(func(name, v gjson.Result) bool {
		switch {
		case v.Type == gjson.Null:
		case name.Str == "name":
			o.Name = v.String()
		case name.Str == "description":
			o.Description = v.String()
		case name.Str == "strict":
			o.Strict = boolean(v)
		case name.Str == "schema":
			o.Schema = fields.Raw(v)
		}
		return true
	})
	return o
}

// boolean returns a pointer to the value, for members whose absence is not the same as false.
func boolean(v gjson.Result) *bool {
	return new(v.Bool())
}
