package gemini

import (
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// Encode implements shapes.Outbound. The request of a client of this shape is patched and not
// written anew, because the neutral form cannot hold all of it. That happens if a request cannot
// pass through for another reason, such as the framing of an array.
func (s shape) Encode(
	req *dialogue.Request, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	if req.Inbound == Name && len(req.Body) > 0 {
		head := shapes.Head{Structured: req.Output.Mode != dialogue.OutputText}
		return s.Patch(req.Body, shapes.Params{Model: req.Model, Stream: req.Stream}, head, t, rep, env)
	}
	e := encoder{req: req, target: t, rep: rep, env: env, names: names{}}
	body, err := e.body()
	if err != nil {
		return shapes.Call{}, err
	}
	return call(t.Model, req.Stream, body), nil
}

// encoder writes one request. w has the request so far. generation writes into a writer of its own, because
// an empty generationConfig is left out.
type encoder struct {
	req    *dialogue.Request
	target dialogue.Target
	rep    *dialogue.Report
	env    *dialogue.Env
	w      jsonw.Writer
	names  names
	cached string // id of a cached content that stands before the prompt
}

// body writes the members of the request. The names of functions are claimed first and the history
// is put in sequence before anything is written, because both can fail.
func (e *encoder) body() ([]byte, error) {
	if err := e.refuse(); err != nil {
		return nil, err
	}
	e.reserve()
	turns, err := e.history()
	if err != nil {
		return nil, err
	}
	e.w.Buf = make([]byte, 0, e.req.EncodedSize())
	e.w.Object()
	e.system()
	e.contents(turns)
	if e.cached != "" {
		e.w.Key("cachedContent").String(e.cached)
	}
	if err := e.tools(); err != nil {
		return nil, err
	}
	e.generation()
	e.tier()
	e.extra()
	e.w.End()
	e.lost()
	e.req.Renamed = e.names.renamed
	return e.w.Buf, nil
}

// refuse returns the error for what cannot be left out without changing the answer.
func (e *encoder) refuse() error {
	r := e.req
	for _, m := range r.Modalities {
		if m == "audio" && r.Inbound != Name {
			return dialogue.Unsupported("modalities", "audio output is not available from this model's provider")
		}
	}
	// Several calls for the rest would be billed with the prompt once each, which the client did not ask for.
	if r.N > maxChoices {
		return dialogue.Unsupported("n", "at most 8 choices are available in one call")
	}
	return nil
}

// system writes systemInstruction with a part for each text.
func (e *encoder) system() {
	var texts []string
	for _, p := range e.req.System {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	if len(texts) == 0 {
		return
	}
	e.w.Key("systemInstruction").Object().Key("parts").Array()
	for _, text := range texts {
		writeText(&e.w, text, false, "")
	}
	e.w.End().End()
}

// generation writes generationConfig. Numbers are copied as the client wrote them, so that 0.1 does not
// become another number.
func (e *encoder) generation() {
	r := e.req
	w := jsonw.Writer{}
	w.Object()
	number := func(name, value string) {
		if value != "" {
			w.Key(name).RawString(value)
		}
	}
	number("temperature", string(r.Temperature))
	number("topP", string(r.TopP))
	e.topK(&w)
	e.maxTokens(&w)
	e.stops(&w)
	e.seed(&w)
	number("presencePenalty", string(r.PresencePenalty))
	number("frequencyPenalty", string(r.FrequencyPenalty))
	if r.N > 1 {
		w.Key("candidateCount").Int(int64(r.N))
	}
	if r.LogProbs {
		w.Key("responseLogprobs").Bool(true)
		if r.TopLogProbs != nil {
			w.Key("logprobs").Int(*r.TopLogProbs)
		}
	}
	e.output(&w)
	e.thinking(&w)
	e.modalities(&w)
	e.configExtra(&w)
	w.End()
	if len(w.Buf) > len("{}") {
		e.w.Key("generationConfig").Raw(w.Buf)
	}
}

// topK writes topK, except 0: other shapes mean "no limit" by it, and this one refuses it.
func (e *encoder) topK(w *jsonw.Writer) {
	switch k := e.req.TopK; {
	case k == nil:
	case *k > 0:
		w.Key("topK").Int(*k)
	default:
		e.rep.Lose("top_k")
	}
}

// maxTokens writes the bound of the reply, if there is one.
func (e *encoder) maxTokens(w *jsonw.Writer) {
	if e.req.MaxTokens != nil {
		w.Key("maxOutputTokens").Int(e.req.UpstreamMaxTokens(1, e.rep))
	}
}

// stops writes the stop sequences that the upstream takes. The gateway itself looks for the others.
func (e *encoder) stops(w *jsonw.Writer) {
	stops := e.req.UpstreamStop(maxStops, nil, e.rep)
	if len(stops) == 0 {
		return
	}
	w.Key("stopSequences").Array()
	for _, s := range stops {
		w.String(s)
	}
	w.End()
}

// seed writes the seed if it fits 32 bits, which is its width here. It has 64 in other shapes.
func (e *encoder) seed(w *jsonw.Writer) {
	n, err := e.req.Seed.Int64()
	switch {
	case e.req.Seed == "":
	case err == nil && int64(int32(n)) == n:
		w.Key("seed").Int(n)
	default:
		e.rep.Lose("seed")
	}
}

// output writes the form of the answer. A schema keeps the dialect in which it came.
func (e *encoder) output(w *jsonw.Writer) {
	o := schema.DecideOutput(e.req.Output, schema.OpenAPI, e.target, e.rep)
	if o.Mode == dialogue.OutputText {
		return
	}
	w.Key("responseMimeType").String(mimeJSON)
	switch {
	case o.Mode == dialogue.OutputJSON || len(o.Schema) == 0:
	case o.GeminiSchema:
		w.Key("responseSchema").Raw(o.Schema)
	default:
		w.Key("responseJsonSchema").Raw(o.Schema)
	}
}

// modalities writes the kinds of output that a client of this shape asks for.
func (e *encoder) modalities(w *jsonw.Writer) {
	if e.req.Inbound != Name || len(e.req.Modalities) == 0 {
		return
	}
	w.Key("responseModalities").Array()
	for _, m := range e.req.Modalities {
		w.String(strings.ToUpper(m))
	}
	w.End()
}

// configPrefix marks the unknown members of generationConfig in Request.Extra.
const configPrefix = "generationConfig."

// configExtra writes members of generationConfig that only this shape has, if the client speaks it.
func (e *encoder) configExtra(w *jsonw.Writer) {
	if e.req.Inbound != Name {
		return
	}
	for _, f := range e.req.Extra {
		if name, ok := strings.CutPrefix(f.Name, configPrefix); ok {
			w.KeyOf(name).Raw(f.Value)
		}
	}
}

// tier writes the service tier, if both sides know the word. The words for standard service need
// not be sent.
func (e *encoder) tier() {
	switch tier := e.req.ServiceTier; tier {
	case "", "auto", "default", "standard", "standard_only":
	case "flex", "priority":
		e.w.Key("serviceTier").String(tier)
	default:
		e.rep.Lose("service_tier")
	}
}

// extra writes the members that the neutral form does not have, if they came in this shape, and
// else records them as lost.
func (e *encoder) extra() {
	for _, f := range e.req.Extra {
		switch {
		case e.req.Inbound != Name:
			e.rep.LoseField(f.Name, f.Value)
		case !strings.HasPrefix(f.Name, configPrefix):
			e.w.KeyOf(f.Name).Raw(f.Value)
		}
	}
}

// lost records the given parameters that the shape has no member for.
func (e *encoder) lost() {
	r := e.req
	e.rep.LoseIf(r.Output.Description != "", "response_format:description")
	e.rep.LoseField("logit_bias", r.LogitBias)
	e.rep.LoseField("metadata", r.Metadata)
	e.rep.LoseUntranslated(r, Name, traits)
	e.rep.LoseIf(r.Parallel != nil && !*r.Parallel, "parallel_tool_calls")
	e.rep.LoseIf(r.User != "", "user")
	e.rep.LoseIf(r.CacheKey != "", "prompt_cache_key")
	e.rep.LoseIf(r.CacheRetention != "", "prompt_cache_retention")
	e.rep.LoseIf(len(r.CacheOptions) > 0, "prompt_cache_options")
	e.rep.LoseIf(r.Verbosity != "" && r.Verbosity != "medium", "verbosity")
	e.rep.LoseIf(r.Suffix != "", "suffix")
}
