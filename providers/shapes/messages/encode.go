package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// maxUserID is the vendor's limit of metadata.user_id.
const maxUserID = 512

// Encode writes req for a messages upstream. It first refuses what cannot be left out, then decides
// about tools, turns and thinking, in this sequence because each needs the one before: a forced
// tool excludes thinking, and so does a last turn of the assistant. At last it writes the body in
// one pass.
func (shape) Encode(
	req *dialogue.Request, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	e := encoder{req: req, target: t, rep: rep, env: env, names: newNames(req)}
	if err := e.refuse(); err != nil {
		return shapes.Call{}, err
	}
	tools, err := e.tools()
	if err != nil {
		return shapes.Call{}, err
	}
	msgs, err := e.conversation()
	if err != nil {
		return shapes.Call{}, err
	}
	e.limit()
	plan := e.reasoning(tools.forced(), msgs)
	e.lose()
	header := upstreamHeader(nil)
	if req.Inbound == Name && len(req.Betas) > 0 {
		header[betaHeader] = slices.Clone(req.Betas)
	}
	return shapes.Call{
		Path:   path,
		Header: header,
		Body:   e.body(tools, msgs, plan),
		Stream: req.Stream,
	}, nil
}

// encoder writes one request. names gives tools names that the vendor takes, and remembers the client's for
// the reply. rep collects what is lost on the way.
type encoder struct {
	req       *dialogue.Request
	target    dialogue.Target
	rep       *dialogue.Report
	env       *dialogue.Env
	names     *names
	maxTokens int64
	defaulted bool // maxTokens is not the client's
}

// refuse returns the error for a request whose answer would be another one if the field were left
// out: audio or pictures as output, and text to insert. It also turns a completions prompt into a
// turn.
func (e *encoder) refuse() error {
	for _, m := range e.req.Modalities {
		if strings.EqualFold(m, "audio") || strings.EqualFold(m, "image") {
			return dialogue.Unsupported("modalities", "the model answers in text only")
		}
	}
	if e.req.Suffix != "" {
		return dialogue.Unsupported("suffix", "the model cannot insert text")
	}
	if len(e.req.Turns) == 0 {
		return e.prompt()
	}
	return nil
}

// prompt makes a turn of the user from a completions prompt. Lists of prompts and of token ids have
// no equivalent and are refused.
func (e *encoder) prompt() error {
	switch len(e.req.Prompts) {
	case 0:
		return nil
	case 1:
	default:
		return dialogue.Unsupported("prompt", "the model takes one prompt at a time")
	}
	text, ok := dialogue.PromptText(e.req.Prompts[0])
	if !ok {
		return dialogue.Unsupported("prompt", "the model does not take token ids")
	}
	e.req.Turns = []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Text: text}}}}
	return nil
}

// limit decides max_tokens, which the shape requires: the client's, else the target's own maximum, which is recorded as
// a loss because it may end a reply that the client did not bound.
func (e *encoder) limit() {
	switch asked := e.req.MaxTokens; {
	case asked == nil:
		e.maxTokens, e.defaulted = e.target.MaxOutputTokens, true
		e.rep.Lose("max_tokens:default")
	case e.req.Inbound == Name: // zero fills the prompt cache and makes no answer
		e.maxTokens = *asked
	default: // zero has another meaning, and not every upstream of the shape takes it
		e.maxTokens = e.req.UpstreamMaxTokens(1, e.rep)
	}
}

// lose records every given field that the shape has no member for. Values that mean the same as no
// value, such as a penalty of 0, are no loss.
func (e *encoder) lose() {
	r := e.req
	e.rep.LoseIf(r.Seed != "", "seed")
	e.rep.LoseIf(dialogue.NonZero(r.PresencePenalty), "presence_penalty")
	e.rep.LoseIf(dialogue.NonZero(r.FrequencyPenalty), "frequency_penalty")
	e.rep.LoseIf(r.LogProbs || r.TopLogProbs != nil, "logprobs")
	e.rep.LoseIf(r.Verbosity != "" && r.Verbosity != "medium", "verbosity")
	e.rep.LoseIf(r.CacheKey != "", "prompt_cache_key")
	e.rep.LoseIf(r.CacheRetention != "", "prompt_cache_retention")
	e.rep.LoseIf(len(r.CacheOptions) > 0, "prompt_cache_options")
	e.rep.LoseIf(r.Output.Description != "", "response_format:description")
	e.rep.LoseField("logit_bias", r.LogitBias)
	e.rep.LoseField("metadata", r.Metadata)
	e.rep.LoseUntranslated(r, Name, traits)
	if r.Inbound != Name {
		for _, f := range r.Extra {
			e.rep.LoseField(f.Name, f.Value)
		}
	}
}

// body writes the request. Its first size is an estimate from the client's body, because a buffer
// that grows is held twice while it is copied.
func (e *encoder) body(tools toolSet, msgs []message, plan reasoning) []byte {
	w := &jsonw.Writer{Buf: make([]byte, 0, e.req.EncodedSize())}
	w.Object()
	w.Key("model").String(e.target.Model)
	w.Key("max_tokens").Int(e.maxTokens)
	e.system(w)
	w.Key("messages").Array()
	for i := range msgs {
		e.writeMessage(w, &msgs[i])
	}
	w.End()
	tools.write(w)
	e.sampling(w, plan)
	plan.write(w)
	e.outputConfig(w, plan)
	e.identity(w)
	if e.req.Stream {
		w.Key("stream").Bool(true)
	}
	if e.req.Inbound == Name {
		for _, f := range e.req.Extra {
			w.KeyOf(f.Name).Raw(f.Value)
		}
	}
	w.End()
	return w.Buf
}

// system writes one string, or blocks where one of them is marked for caching.
func (e *encoder) system(w *jsonw.Writer) {
	var parts []dialogue.Part
	marked := false
	for _, p := range e.req.System {
		if strings.TrimSpace(p.Text) != "" {
			parts = append(parts, p)
			marked = marked || len(p.CacheHint) > 0
		}
	}
	if len(parts) == 0 {
		return
	}
	w.Key("system")
	if marked {
		w.Array()
		for _, p := range parts {
			writeText(w, p.Text, p.CacheHint)
		}
		w.End()
		return
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	w.String(strings.Join(texts, "\n\n"))
}

// writeMessage writes a turn with its blocks. Content is always a list of blocks. The vendor takes a string
// for a single text, too, but then that text could not carry a mark for the cache.
func (e *encoder) writeMessage(w *jsonw.Writer, t *message) {
	w.Object()
	w.Key("role").String(string(t.role))
	w.Key("content").Array()
	for i := range t.blocks {
		e.writeBlock(w, &t.blocks[i])
	}
	w.End().End()
}

// sampling writes temperature, top_p and top_k as far as thinking allows them. The vendor refuses a request
// that thinks with another temperature than 1, a top_p below 0.95 or any top_k. Its temperatures end at 1,
// where those of other shapes end at 2.
func (e *encoder) sampling(w *jsonw.Writer, plan reasoning) {
	r := e.req
	if r.Temperature != "" {
		switch f, err := r.Temperature.Float64(); {
		case err != nil || plan.thinks() && f != 1:
			e.rep.Lose("temperature")
		case f > 1:
			e.rep.Lose("temperature:clamped")
			w.Key("temperature").Int(1)
		default:
			w.Key("temperature").RawString(string(r.Temperature))
		}
	}
	if r.TopP != "" {
		if f, err := r.TopP.Float64(); err != nil || plan.thinks() && f < 0.95 {
			e.rep.Lose("top_p")
		} else {
			w.Key("top_p").RawString(string(r.TopP))
		}
	}
	if r.TopK != nil {
		if plan.thinks() {
			e.rep.Lose("top_k")
		} else {
			w.Key("top_k").Int(*r.TopK)
		}
	}
	e.stop(w)
}

// stop writes the stop sequences. The vendor refuses those of white space only. The gateway then
// ends the reply itself at such a sequence (dialogue.Enforced), and nothing is lost.
func (e *encoder) stop(w *jsonw.Writer) {
	stops := e.req.UpstreamStop(math.MaxInt, func(s string) bool { return strings.TrimSpace(s) != "" }, e.rep)
	if len(stops) == 0 {
		return
	}
	w.Key("stop_sequences").Array()
	for _, s := range stops {
		w.String(s)
	}
	w.End()
}

// outputConfig writes the one member that holds two unrelated things: the effort of thinking, and
// the schema of structured output as far as the model binds it.
func (e *encoder) outputConfig(w *jsonw.Writer, plan reasoning) {
	out := schema.DecideOutput(e.req.Output, schema.ClosedObjects, e.target, e.rep)
	if out.Mode != dialogue.OutputSchema && plan.effort == "" {
		return
	}
	w.Key("output_config").Object()
	if plan.effort != "" {
		w.Key("effort").String(plan.effort)
	}
	if out.Mode == dialogue.OutputSchema {
		w.Key("format").Object()
		w.Key("type").String("json_schema")
		w.Key("schema").Raw(out.Schema)
		w.End()
	}
	w.End()
}

// identity writes the user and the service tier. A user id that is too long is hashed, so that it
// still tells the vendor one end user from another.
func (e *encoder) identity(w *jsonw.Writer) {
	if user := e.req.User; user != "" {
		if len(user) > maxUserID {
			sum := sha256.Sum256([]byte(user))
			user = hex.EncodeToString(sum[:])
			e.rep.Lose("user:hashed")
		}
		w.Key("metadata").Object()
		w.Key("user_id").String(user).End()
	}
	if tier := e.tier(); tier != "" {
		w.Key("service_tier").String(tier)
	}
}

// tier returns the vendor's word for the service tier, "" for the vendor's default. It has two
// words: auto, which may use capacity that was paid for in advance, and standard_only.
func (e *encoder) tier() string {
	switch tier := e.req.ServiceTier; tier {
	case "", "auto":
		if e.req.Inbound == Name {
			return tier
		}
		return ""
	case "standard_only":
		return tier
	case "default", "flex":
		if tier == "flex" {
			e.rep.Lose("service_tier") // slower and cheaper, which standard is not
		}
		return "standard_only"
	default:
		e.rep.Lose("service_tier")
		return ""
	}
}

// writeText writes a block of text with its hint for the cache.
func writeText(w *jsonw.Writer, text string, hint json.RawMessage) {
	w.Object()
	w.Key("type").String("text")
	w.Key("text").String(text)
	writeHint(w, hint)
	w.End()
}

// writeHint writes a hint for the cache, if there is one.
func writeHint(w *jsonw.Writer, hint json.RawMessage) {
	if len(hint) > 0 {
		w.Key("cache_control").Raw(hint)
	}
}
