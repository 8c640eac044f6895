package responses

import (
	"cmp"
	"encoding/json"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// decoder builds the neutral form of one request.
// It belongs to one request. What the neutral form cannot hold is recorded in the request
// (RecordIgnored, Lost), so that the client is not left to believe that it was used.
type decoder struct {
	env *dialogue.Env
	req *dialogue.Request

	compaction dialogue.Compaction // what the client asks for
	declared   map[string]int      // the places of tools by name, once an item of the input has declared some
}

// setters take one top-level field each. What is not here goes to Extra.
var setters = map[string]func(d *decoder, v gjson.Result){
	"model":                  func(d *decoder, v gjson.Result) { d.req.Model = v.Str },
	"stream":                 func(d *decoder, v gjson.Result) { d.req.Stream = v.Bool() },
	"instructions":           (*decoder).instructions,
	"max_output_tokens":      func(d *decoder, v gjson.Result) { d.req.MaxTokens = count(v) },
	"temperature":            func(d *decoder, v gjson.Result) { d.req.Temperature = json.Number(v.Raw) },
	"top_p":                  func(d *decoder, v gjson.Result) { d.req.TopP = json.Number(v.Raw) },
	"top_k":                  func(d *decoder, v gjson.Result) { d.req.TopK = count(v) },
	"top_logprobs":           func(d *decoder, v gjson.Result) { d.req.TopLogProbs = count(v) },
	"parallel_tool_calls":    func(d *decoder, v gjson.Result) { d.req.Parallel = flag(v) },
	"store":                  func(d *decoder, v gjson.Result) { d.req.Store = flag(v) },
	"previous_response_id":   func(d *decoder, v gjson.Result) { d.req.PreviousResponseID = v.Str },
	"metadata":               func(d *decoder, v gjson.Result) { d.req.Metadata = raw(v) },
	"service_tier":           func(d *decoder, v gjson.Result) { d.req.ServiceTier = v.Str },
	"prompt_cache_key":       func(d *decoder, v gjson.Result) { d.req.CacheKey = v.Str },
	"prompt_cache_retention": func(d *decoder, v gjson.Result) { d.req.CacheRetention = v.Str },
	"prompt_cache_options":   func(d *decoder, v gjson.Result) { d.req.CacheOptions = raw(v) },
	"safety_identifier":      func(d *decoder, v gjson.Result) { d.req.User = v.Str },
	"user":                   (*decoder).user,
	"include":                (*decoder).include,
	"reasoning":              (*decoder).reasoning,
	"text":                   (*decoder).text,
	"tools":                  (*decoder).tools,
	"tool_choice":            (*decoder).toolChoice,
	"truncation":             func(d *decoder, v gjson.Result) { d.req.Truncation = v.Str },
	// input is read after instructions, wherever it stands. The rest says
	// nothing about the answer: how it is stored, run and delivered.
	"input":          func(*decoder, gjson.Result) {},
	"conversation":   func(*decoder, gjson.Result) {},
	"background":     func(*decoder, gjson.Result) {},
	"stream_options": func(*decoder, gjson.Result) {},
}

// Decode builds the neutral form. The body must have passed Check.
func (shape) Decode(body []byte, in shapes.Params, env *dialogue.Env) (*dialogue.Request, error) {
	d := decoder{env: env, req: &dialogue.Request{Inbound: Name, Traits: traits, IncludeUsage: true, Body: body}}
	root := fields.View(body)
	var failed *dialogue.Error
	root.ForEach(func(key, v gjson.Result) bool {
		set := setters[key.Str]
		switch {
		case v.Type == gjson.Null:
		case set != nil:
			set(&d, v)
		case key.Str == "prompt": // a template, which only its own provider has
			failed = dialogue.Unsupported("prompt", "stored prompts are not available for this model")
		default:
			d.req.Extra = append(d.req.Extra, dialogue.Field{Name: key.Str, Value: raw(v)})
		}
		return failed == nil
	})
	if failed == nil {
		failed = d.input(root.Get("input"))
	}
	d.completeChoice()
	if failed != nil {
		return nil, failed
	}
	if compacts(in) {
		d.compaction = dialogue.CompactionObject
	}
	if d.compaction != dialogue.NoCompaction {
		d.compact()
	}
	return d.req, nil
}

// raw returns the JSON of v, or nil if v is null or absent.
func raw(v gjson.Result) json.RawMessage {
	if !given(v) {
		return nil
	}
	return fields.Raw(v)
}

// flag returns a boolean, or nil if v is not one.
func flag(v gjson.Result) *bool {
	if !v.IsBool() {
		return nil
	}
	return new(v.Bool())
}

// count returns a whole number, or nil if v is not one.
func count(v gjson.Result) *int64 {
	n, ok := whole(v)
	if !ok {
		return nil
	}
	return &n
}

// instructions reads the text that comes before the conversation.
func (d *decoder) instructions(v gjson.Result) {
	if v.Str != "" {
		d.req.System = append(d.req.System, dialogue.Part{Kind: dialogue.TextPart, Text: v.Str})
	}
}

// user reads the deprecated predecessor of safety_identifier, which counts only if the latter is
// absent.
// The setter of safety_identifier writes unconditionally, so the newer name wins whichever of the
// two comes first in the body.
func (d *decoder) user(v gjson.Result) {
	d.req.User = cmp.Or(d.req.User, v.Str)
}

// include reads which optional members the reply shall have.
func (d *decoder) include(v gjson.Result) {
	v.ForEach(func(_, item gjson.Result) bool {
		d.req.Include = append(d.req.Include, item.Str)
		switch item.Str {
		case dialogue.IncludeEncrypted:
			d.req.Reasoning.EncryptedContent = true
		case dialogue.IncludeLogProbs:
			d.req.LogProbs = true
		}
		return true
	})
}

// reasoning reads the effort and the summary. A client sees thoughts only if it asks for a summary.
// generate_summary is the deprecated name of summary.
func (d *decoder) reasoning(v gjson.Result) {
	d.req.RecordIgnoredExcept("reasoning", v, "effort", "summary", "generate_summary")
	r := &d.req.Reasoning
	r.Effort = v.Get("effort").Str
	if r.Summary = v.Get("summary").Str; r.Summary == "" {
		r.Summary = v.Get("generate_summary").Str
	}
	r.Include = r.Summary != "" && r.Summary != "none"
}

// text reads the format of the reply.
func (d *decoder) text(v gjson.Result) {
	d.req.RecordIgnoredExcept("text", v, "verbosity", "format")
	d.req.RecordIgnoredExcept("text.format", v.Get("format"), "type", "name", "description", "strict", "schema")
	d.req.Verbosity = v.Get("verbosity").Str
	d.req.Output = readFormat(v.Get("format"))
}

// readFormat reads text.format.
func readFormat(f gjson.Result) dialogue.Output {
	switch f.Get("type").Str {
	case "json_object":
		return dialogue.Output{Mode: dialogue.OutputJSON}
	case "json_schema":
		return dialogue.Output{
			Mode:        dialogue.OutputSchema,
			Name:        f.Get("name").Str,
			Description: f.Get("description").Str,
			Strict:      flag(f.Get("strict")),
			Schema:      raw(f.Get("schema")),
		}
	}
	return dialogue.Output{}
}
