package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Decode implements shapes.Inbound. The error is always nil, because the body has passed Check.
func (shape) Decode(body []byte, in shapes.Params, env *dialogue.Env) (*dialogue.Request, error) {
	d := decoder{env: env, callIDs: dialogue.NewCallIDs(dialogue.MaxCallID), req: &dialogue.Request{
		Inbound: Name, Traits: traits, Model: in.Model, Stream: in.Stream, IncludeUsage: true, Body: body,
	}}
	eachMember(fields.View(body), func(name string, v gjson.Result) bool {
		d.member(name, v)
		return true
	})
	d.attachCache()
	return d.req, nil
}

// decoder reads one request that has passed Check.
type decoder struct {
	env  *dialogue.Env
	req  *dialogue.Request
	open []*dialogue.Call // calls that no functionResponse has answered yet
	// callIDs has the ids of calls and results that came without one.
	callIDs *dialogue.CallIDs
	cached  string
	// searched counts the pieces of text that were searched for the place of a thought.
	searched int
}

// maxSearched bounds the search of one request, whose client may repeat one thought behind many pieces of text.
const maxSearched = 1 << 20

// member reads one member at the top of the body. A member that the neutral form does not have goes to Request.Extra.
func (d *decoder) member(name string, v gjson.Result) {
	r := d.req
	switch name {
	case "contents":
		each(v, func(_ int, v gjson.Result) bool { d.content(v); return true })
	case "systemInstruction":
		d.system(v)
	case "generationConfig":
		eachMember(v, func(name string, v gjson.Result) bool { d.generation(name, v); return true })
		d.output(v)
	case "tools":
		each(v, func(_ int, v gjson.Result) bool { d.tool(v); return true })
	case "toolConfig":
		d.toolConfig(v)
	case "serviceTier":
		r.ServiceTier = str(v)
	case "store":
		r.Store = new(boolean(v))
	case "labels":
		r.Metadata = raw(v)
	case "cachedContent":
		d.cached = str(v)
	case "model": // the path wins
	default:
		r.Extra = append(r.Extra, dialogue.Field{Name: name, Value: raw(v)})
	}
}

// attachCache adds the content that cachedContent refers to as a document before everything else,
// where it stands in the prompt. Only its vendor can read it. Encoders of other shapes refuse files
// of another service, so no answer is made without it.
func (d *decoder) attachCache() {
	if d.cached == "" {
		return
	}
	part := dialogue.Part{Kind: dialogue.MediaPart, Origin: Name,
		Media: &dialogue.Media{Kind: dialogue.File, FileID: d.cached, FileIDs: traits.FileIDs}}
	turns := d.req.Turns
	if len(turns) == 0 || turns[0].Role != dialogue.User {
		d.req.Turns = append([]dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{part}}}, turns...)
		return
	}
	turns[0].Parts = append([]dialogue.Part{part}, turns[0].Parts...)
}

// system reads systemInstruction in any of its three forms, which are a string, an object with a text, and an object
// with parts.
func (d *decoder) system(v gjson.Result) {
	add := func(text string) {
		if text != "" {
			d.req.System = append(d.req.System, dialogue.Part{Kind: dialogue.TextPart, Text: text})
		}
	}
	if v.Type == gjson.String {
		add(v.Str)
		return
	}
	d.unread("systemInstruction", v, "role", "parts", "text")
	parts := field(v, "parts")
	if !parts.Exists() {
		add(str(field(v, "text")))
		return
	}
	each(parts, func(_ int, v gjson.Result) bool {
		d.unread("systemInstruction.parts", v, "text")
		add(str(field(v, "text")))
		return true
	})
}

// unread records the members of object that are not among the known ones, for the list of losses.
func (d *decoder) unread(path string, object gjson.Result, known ...string) {
	eachMember(object, func(name string, v gjson.Result) bool {
		if !slices.Contains(known, name) {
			d.req.RecordIgnored(path, name, v)
		}
		return true
	})
}

// generation reads one member of generationConfig.
func (d *decoder) generation(name string, v gjson.Result) {
	r := d.req
	switch name {
	case "temperature":
		r.Temperature, _ = number(v)
	case "topP":
		r.TopP, _ = number(v)
	case "topK":
		r.TopK = wholeNumber(v)
	case "candidateCount":
		n, _ := integer(v)
		r.N = int(n)
	case "maxOutputTokens":
		r.MaxTokens = wholeNumber(v)
	case "stopSequences":
		each(v, func(_ int, v gjson.Result) bool { r.Stop = append(r.Stop, str(v)); return true })
	case "seed":
		r.Seed, _ = number(v)
	case "presencePenalty":
		r.PresencePenalty, _ = number(v)
	case "frequencyPenalty":
		r.FrequencyPenalty, _ = number(v)
	case "responseLogprobs":
		r.LogProbs = boolean(v)
	case "logprobs":
		r.TopLogProbs = wholeNumber(v)
	case "responseModalities":
		each(v, func(_ int, v gjson.Result) bool {
			r.Modalities = append(r.Modalities, strings.ToLower(str(v)))
			return true
		})
	case "thinkingConfig":
		eachMember(v, func(name string, v gjson.Result) bool { d.thinking(name, v); return true })
	case "responseMimeType", "responseSchema", "responseJsonSchema": // see output
	default:
		r.Extra = append(r.Extra, dialogue.Field{Name: "generationConfig." + name, Value: raw(v)})
	}
}

// wholeNumber returns a number, or nil if v is none.
func wholeNumber(v gjson.Result) *int64 {
	n, ok := integer(v)
	if !ok {
		return nil
	}
	return &n
}

// thinking reads one member of thinkingConfig. A budget of 0 means no thinking, and -1 leaves the
// amount to the model.
func (d *decoder) thinking(name string, v gjson.Result) {
	r := &d.req.Reasoning
	switch name {
	case "includeThoughts":
		r.Include = boolean(v)
	case "thinkingLevel":
		if v.Str != unspecifiedLevel {
			r.Effort = strings.ToLower(v.Str)
		}
	case "thinkingBudget":
		switch n, _ := integer(v); {
		case n < 0:
			r.Adaptive = true
		case n == 0:
			r.Disabled = true
		default:
			r.Budget = &n
		}
	default:
		d.req.RecordIgnored("generationConfig.thinkingConfig", name, v)
	}
}

// output reads the form of the answer, which three members of generationConfig describe together. A
// media type other than JSON and plain text has no neutral form, so it is kept in Request.Extra.
func (d *decoder) output(config gjson.Result) {
	mime := str(field(config, "responseMimeType"))
	schema, subset := field(config, "responseJsonSchema"), field(config, "responseSchema")
	if mime != mimeJSON {
		if mime != "" && mime != "text/plain" {
			value, _ := json.Marshal(mime)
			d.req.Extra = append(d.req.Extra, dialogue.Field{Name: "generationConfig.responseMimeType", Value: value})
		}
		return
	}
	switch {
	case schema.Exists():
		d.req.Output = dialogue.Output{Mode: dialogue.OutputSchema, Schema: raw(schema)}
	case subset.Exists():
		d.req.Output = dialogue.Output{Mode: dialogue.OutputSchema, Schema: raw(subset), GeminiSchema: true}
	default:
		d.req.Output = dialogue.Output{Mode: dialogue.OutputJSON}
	}
	if name := str(field(subset, "title")); name != "" {
		d.req.Output.Name = name
	}
}
