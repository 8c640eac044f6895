package chat

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// encoder writes one request for a chat upstream.
type encoder struct {
	jsonw.Writer
	req   *dialogue.Request
	t     dialogue.Target
	rep   *dialogue.Report
	env   *dialogue.Env
	names names
	// callIDs has the ids of the calls so far.
	callIDs *dialogue.CallIDs

	webSearch bool // a provider-run search is asked for
}

// encode implements shapes.Outbound. The members are written in the sequence of the functions
// below. Tools come before messages, because a tool's definition claims its name before a call uses
// it.
func encode(req *dialogue.Request, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) (shapes.Call, error) {
	e := &encoder{req: req, t: t, rep: rep, env: env, names: names{req: req},
		callIDs:   dialogue.NewCallIDs(dialogue.MaxCallID),
		webSearch: req.WebSearch && (req.Inbound == Name || t.Caps.WebSearch)}
	e.Buf = make([]byte, 0, req.EncodedSize())
	e.Object()
	e.Key("model").String(t.Model)
	for _, write := range []func() error{e.tools, e.messages, e.limits, e.output, e.identity, e.extras} {
		if err := write(); err != nil {
			return shapes.Call{}, err
		}
	}
	if req.Stream {
		// Usage is always asked for: the gateway accounts by it.
		e.Key("stream").Bool(true)
		e.Key("stream_options").Object().Key("include_usage").Bool(true).End()
	}
	e.End()
	return shapes.Call{Path: path, Body: e.Buf, Stream: req.Stream}, nil
}

// limits writes what bounds and steers the answer: the maximum of tokens, the parameters of sampling with their numbers
// as the client spelled them, the number of choices, log probabilities, stop sequences and the effort of reasoning.
func (e *encoder) limits() error {
	req := e.req
	if req.MaxTokens != nil { // 0 fills a cache in another shape, and is refused in this one
		e.Key(e.limitName()).Int(req.UpstreamMaxTokens(1, e.rep))
	}
	e.number("temperature", req.Temperature)
	e.number("top_p", req.TopP)
	e.number("seed", req.Seed)
	e.number("presence_penalty", req.PresencePenalty)
	e.number("frequency_penalty", req.FrequencyPenalty)
	e.raw("logit_bias", req.LogitBias)
	if req.N > 1 {
		e.Key("n").Int(int64(req.N))
	}
	if req.LogProbs {
		e.Key("logprobs").Bool(true)
		if req.TopLogProbs != nil {
			e.Key("top_logprobs").Int(min(*req.TopLogProbs, 20))
		}
	}
	e.stop()
	e.effort()
	return e.topK()
}

// limitName returns the name of the limit of tokens. A chat client's own choice is kept, because
// old servers know only max_tokens and the vendor's newer models refuse it.
func (e *encoder) limitName() string {
	if e.req.Inbound == Name {
		body := fields.View(e.req.Body)
		if body.Get("max_completion_tokens").Type != gjson.Number && body.Get("max_tokens").Type == gjson.Number {
			return "max_tokens"
		}
	}
	return "max_completion_tokens"
}

// maxStops is the vendor's limit of stop sequences. The gateway itself looks for the others.
const maxStops = 4

// stop writes the stop sequences that the upstream takes.
func (e *encoder) stop() {
	stop := e.req.UpstreamStop(maxStops, nil, e.rep)
	if len(stop) == 0 {
		return
	}
	e.Key("stop").Array()
	for _, s := range stop {
		e.String(s)
	}
	e.End()
}

// topK writes top_k only for a client that itself spoke chat, because most chat upstreams refuse
// it.
func (e *encoder) topK() error {
	switch {
	case e.req.TopK == nil:
	case e.req.Inbound == Name:
		e.Key("top_k").Int(*e.req.TopK)
	default:
		e.rep.Lose("top_k")
	}
	return nil
}

// effort writes reasoning_effort, the one parameter of the shape for thinking. A budget of tokens
// becomes the nearest word, thinking that is left to the model becomes medium, and none is sent to
// the models that accept it.
func (e *encoder) effort() {
	r := e.req.Reasoning
	word := r.Effort
	switch {
	case word == "max" && !e.req.Traits.MaxEffort:
		word = "xhigh" // the highest that every effort model knows
	case word != "" || e.t.Caps.Thinking == dialogue.ThinkingNone:
	case r.Disabled:
		word = e.t.Caps.EffortOff()
		e.rep.LoseIf(word == "", "reasoning:disabled")
	case r.Budget != nil && *r.Budget > 0:
		word = effortOf(*r.Budget)
	case r.Adaptive:
		word = "medium"
	}
	if word != "" {
		e.Key("reasoning_effort").String(word)
		return
	}
	e.rep.LoseIf(!r.Disabled && (r.Budget != nil || r.Adaptive), "thinking")
}

// effortOf returns the word for a budget of tokens. The limits are the gateway's own choice.
func effortOf(budget int64) string {
	switch {
	case budget < 4<<10:
		return "low"
	case budget < 16<<10:
		return "medium"
	}
	return "high"
}

// output writes response_format. Shapes differ in what binds: where the client's shape always binds
// a schema (Traits.BindsSchema), the schema is made strict. If it cannot be, the vendor follows it as
// well as it can. That is a loss and no degradation, because all of the schema is sent.
func (e *encoder) output() error {
	o := schema.DecideOutput(e.req.Output, schema.JSONSchema, e.t, e.rep)
	switch o.Mode {
	case dialogue.OutputJSON:
		e.Key("response_format").Object().Key("type").String("json_object").End()
	case dialogue.OutputSchema:
		raw := o.Schema
		if o.GeminiSchema {
			raw = schema.FromGemini(raw)
		}
		if e.req.Traits.DropsBounds {
			raw = e.withoutBounds(raw)
		}
		e.Key("response_format").Object().Key("type").String("json_schema")
		e.Key("json_schema").Object()
		e.Key("name").String(outputName(o.Name))
		if o.Description != "" {
			e.Key("description").String(o.Description)
		}
		if o.Strict == nil && e.req.Traits.BindsSchema {
			var strict bool
			if raw, strict = schema.Strict(raw); strict {
				e.Key("strict").Bool(true)
			} else {
				e.rep.Lose("response_format:strict")
			}
		}
		e.strict(o.Strict, raw, "response_format:strict")
		e.Key("schema").Raw(raw)
		e.End().End()
	}
	return nil
}

// withoutBounds removes minimum, pattern and the like, which the client was promised not to be
// enforced, and reports it as a degradation.
func (e *encoder) withoutBounds(raw json.RawMessage) json.RawMessage {
	out, stripped := schema.StripBounds(raw)
	if stripped {
		e.rep.Degrade(dialogue.KeywordsStripped)
	}
	return out
}

// outputName returns the name of a schema, which is required here and absent in other shapes.
func outputName(name string) string {
	return legal(cmp.Or(name, "response"))
}

// strict writes the member strict if the client gave it. It is turned off where the vendor would
// refuse the schema under it, unless the client's shape has the same rules: then the refusal is the
// right answer.
func (e *encoder) strict(strict *bool, raw json.RawMessage, name string) {
	if strict == nil {
		return
	}
	on := *strict
	if on && !e.req.Traits.StrictIsNative && !schema.SupportsStrict(raw) {
		on = false
		e.rep.Lose(name)
	}
	e.Key("strict").Bool(on)
}

// identity writes the members that do not change the question: the user, metadata, the class of service, the cache key,
// verbosity, store, web search and the kinds of output.
func (e *encoder) identity() error {
	req := e.req
	if req.User != "" {
		user := req.User
		if len(user) > 64 { // safety_identifier holds 64 characters
			sum := sha256.Sum256([]byte(user))
			user = hex.EncodeToString(sum[:])
		}
		// The newer name and the one that older servers know.
		e.Key("safety_identifier").String(user)
		e.Key("user").String(user)
	}
	if req.Traits.KeepsMetadata {
		e.raw("metadata", req.Metadata)
		e.word("service_tier", req.ServiceTier)
	} else {
		e.rep.LoseField("metadata", req.Metadata)
		tier, lost := req.OwnTier()
		e.word("service_tier", tier)
		e.rep.LoseIf(lost, "service_tier")
	}
	e.cacheKey()
	e.word("verbosity", req.Verbosity)
	if req.Store != nil && req.Inbound == Name {
		e.Key("store").Bool(*req.Store) // the other shape that has it is stored here
	}
	if e.webSearch {
		e.Key("web_search_options")
		if len(req.SearchOptions) > 0 {
			e.Raw(req.SearchOptions)
		} else {
			e.Object().End()
		}
	}
	return e.modalities()
}

// cacheKey writes what only some vendors take. It changes no reply, but a loss says why the cache was not used.
func (e *encoder) cacheKey() {
	req := e.req
	if !e.t.Caps.NoCacheKey {
		e.word("prompt_cache_key", req.CacheKey)
		e.word("prompt_cache_retention", req.CacheRetention)
		e.raw("prompt_cache_options", req.CacheOptions)
		return
	}
	e.rep.LoseIf(req.CacheKey+req.CacheRetention != "" || len(req.CacheOptions) > 0, "prompt_cache_key")
}

// modalities writes the kinds of output that a chat client asks for. For other clients audio and
// pictures are refused, because a reply without them would not be what was asked for.
func (e *encoder) modalities() error {
	if e.req.Inbound == Name {
		if len(e.req.Modalities) > 0 {
			e.Key("modalities").Array()
			for _, m := range e.req.Modalities {
				e.String(m)
			}
			e.End()
		}
		return nil
	}
	for _, m := range e.req.Modalities {
		switch strings.ToLower(m) {
		case "audio":
			return dialogue.Unsupported("modalities",
				"the chosen model's provider needs a voice for audio output, which this request cannot name")
		case "image":
			return dialogue.Unsupported("modalities", "the chosen model answers in text only")
		}
	}
	return nil
}

// extras writes the fields that the neutral form does not have, if they came in this shape. Those of
// other shapes are recorded as lost.
func (e *encoder) extras() error {
	e.rep.LoseUntranslated(e.req, Name, traits)
	for _, f := range e.req.Extra {
		if e.req.Inbound == Name {
			e.KeyOf(f.Name).Raw(f.Value)
		} else {
			e.rep.LoseField(f.Name, f.Value)
		}
	}
	return nil
}

// number writes a number in the client's own spelling, if it was given.
func (e *encoder) number(name string, n json.Number) {
	if n != "" {
		e.Key(name).RawString(string(n))
	}
}

// raw writes a JSON value, if it was given.
func (e *encoder) raw(name string, v json.RawMessage) {
	if len(v) > 0 {
		e.Key(name).Raw(v)
	}
}

// word writes a string, if it is not empty.
func (e *encoder) word(name, v string) {
	if v != "" {
		e.Key(name).String(v)
	}
}
