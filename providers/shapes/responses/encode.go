package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

const (
	callPath        = "/responses"
	minOutputTokens = 16 // the least that the vendor accepts
	maxUser         = 64 // characters of safety_identifier
)

// encoder writes one request for an upstream of this shape.
type encoder struct {
	req    *dialogue.Request
	target dialogue.Target
	rep    *dialogue.Report
	env    *dialogue.Env
	w      jsonw.Writer
	names  names
	// foreign is set if the request came in another shape. Defaults of this shape that mean
	// something else there are then written out.
	foreign bool
	callIDs *dialogue.CallIDs
	// calls has the calls in the input so far by the client's ids, those of one id in order.
	calls map[string][]sentCall
	// results counts the results of the conversation that no call has been paired with yet, by the
	// client's ids.
	results map[string]int
}

// Encode writes req for an upstream of this shape.
func (shape) Encode(
	req *dialogue.Request, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	e := encoder{req: req, target: t, rep: rep, env: env, foreign: req.Inbound != Name,
		callIDs: dialogue.NewCallIDs(maxCallID), calls: map[string][]sentCall{}, results: map[string]int{}}
	if err := e.refuse(); err != nil {
		return shapes.Call{}, err
	}
	if err := e.body(); err != nil {
		return shapes.Call{}, err
	}
	if len(e.names.original) > 0 {
		req.Renamed = e.names.original
	}
	return shapes.Call{Path: callPath, Body: e.w.Buf, Stream: req.Stream}, nil
}

// refuse returns the error for a request whose answer would be another one if the field were left
// out.
func (e *encoder) refuse() *dialogue.Error {
	switch {
	case slices.Contains(e.req.Modalities, "audio"):
		return dialogue.Unsupported("modalities", "this model cannot answer with audio")
	case slices.Contains(e.req.Modalities, "image"):
		return dialogue.Unsupported("modalities", "this model answers in text only")
	case e.req.Suffix != "":
		return dialogue.Unsupported("suffix", "this model cannot fill in before a suffix")
	}
	return nil
}

// body writes the members of the request one after the other.
func (e *encoder) body() *dialogue.Error {
	e.w.Buf = make([]byte, 0, e.req.EncodedSize())
	e.w.Object()
	e.w.Key("model").String(e.target.Model)
	if err := e.dialogue(); err != nil {
		return err
	}
	if e.req.Stream {
		e.w.Key("stream").Bool(true)
	}
	e.limits()
	if err := e.tools(); err != nil {
		return err
	}
	e.text()
	e.reasoning()
	e.identity()
	e.storage()
	e.leaveOut()
	e.w.End()
	return nil
}

// dialogue writes input and instructions. The vendor requires at least one item. A request with
// nothing but a system prompt sends that as an item, and an empty request sends one empty text.
// The results are counted before the first item is written, because a call must be written together
// with a stand-in for its result if none will follow (see items.call). last marks the turns behind
// the last one of the user, whose calls are still open and need none.
func (e *encoder) dialogue() *dialogue.Error {
	system := systemText(e.req.System)
	e.w.Key("input").Array()
	items := items{encoder: e, w: e.w}
	if len(e.req.Turns) == 0 {
		if err := items.prompt(); err != nil {
			return err
		}
	}
	lastOfUser := -1
	for i, t := range e.req.Turns {
		if t.Role == dialogue.User {
			lastOfUser = i
		}
		for _, p := range t.Parts {
			if p.Kind == dialogue.ResultPart {
				e.results[p.Result.CallID]++
			}
		}
	}
	for i := range e.req.Turns {
		items.last = i > lastOfUser
		if err := items.turn(&e.req.Turns[i]); err != nil {
			return err
		}
	}
	items.flush()
	switch {
	case items.n > 0 || e.req.PreviousResponseID != "":
	case system != "":
		items.addText("developer", system)
		system = ""
	default:
		items.nothing()
	}
	e.w = items.w
	e.w.End()
	if system != "" {
		e.w.Key("instructions").String(system)
	}
	return nil
}

// systemText joins the parts of the system prompt, because instructions is one string.
func systemText(parts []dialogue.Part) string {
	var pieces []string
	for _, p := range parts {
		if p.Text != "" {
			pieces = append(pieces, p.Text)
		}
	}
	return strings.Join(pieces, "\n\n")
}

// limits writes the limits and the parameters of sampling. The shape has no stop sequences, so the
// gateway itself ends the reply at them (dialogue.Enforced).
// max_output_tokens is raised to the vendor's minimum, and the client finds that among the losses,
// because the tokens are paid for (dialogue.Request.UpstreamMaxTokens).
func (e *encoder) limits() {
	e.req.UpstreamStop(0, nil, e.rep) // the shape has none
	if e.req.MaxTokens != nil {
		e.w.Key("max_output_tokens").Int(e.req.UpstreamMaxTokens(minOutputTokens, e.rep))
	}
	if e.req.Temperature != "" {
		e.w.Key("temperature").RawString(string(e.req.Temperature))
	}
	if e.req.TopP != "" {
		e.w.Key("top_p").RawString(string(e.req.TopP))
	}
	if n := e.req.TopLogProbs; n != nil && *n > 0 {
		e.w.Key("top_logprobs").Int(*n)
	}
	e.rep.LoseIf(e.req.TopK != nil, "top_k")
}

// text writes text.format and text.verbosity.
func (e *encoder) text() {
	o := e.output()
	if o.Mode == dialogue.OutputText && e.req.Verbosity == "" {
		return
	}
	e.w.Key("text").Object()
	switch o.Mode {
	case dialogue.OutputJSON:
		e.w.Key("format").Object().Key("type").String("json_object").End()
	case dialogue.OutputSchema:
		e.format(o)
	}
	if e.req.Verbosity != "" {
		e.w.Key("verbosity").String(e.req.Verbosity)
	}
	e.w.End()
}

// output returns the structured output that the upstream is asked for.
func (e *encoder) output() dialogue.Output {
	o := schema.DecideOutput(e.req.Output, schema.JSONSchema, e.target, e.rep)
	if o.Mode != dialogue.OutputSchema || !e.req.Traits.DropsBounds {
		return o
	}
	stripped, found := schema.StripBounds(o.Schema)
	if found {
		e.rep.Degrade(dialogue.KeywordsStripped)
		o.Schema = stripped
	}
	return o
}

// inventedName is sent for a schema that came in a shape where schemas have no names.
const inventedName = "response"

// format writes text.format with a schema. Where the client's shape always binds a schema, the
// schema is made strict if that is possible.
// A shape that always binds its schemas has no strict member to say so. If its schema cannot be
// made strict, the member is left out, and the vendor then follows the schema as well as it can. That
// is a loss and no degradation, because all of the schema is sent.
func (e *encoder) format(o dialogue.Output) {
	e.w.Key("format").Object()
	e.w.Key("type").String("json_schema")
	name := inventedName
	if o.Name != "" {
		name = safeName(o.Name)
	}
	e.w.Key("name").String(name)
	if o.Description != "" {
		e.w.Key("description").String(o.Description)
	}
	switch {
	case o.Strict != nil:
		e.w.Key("strict").Bool(*o.Strict)
	case e.req.Traits.BindsSchema:
		var strict bool
		if o.Schema, strict = schema.Strict(o.Schema); strict {
			e.w.Key("strict").Bool(true)
		} else {
			e.rep.Lose("response_format:strict")
		}
	}
	e.w.Key("schema").Raw(o.Schema)
	e.w.End()
}

// reasoning writes the effort and the wish for a summary. Models that do not think refuse the
// member.
func (e *encoder) reasoning() {
	r := e.req.Reasoning
	effort := e.effort()
	summary := r.Summary
	if summary == "" && r.Include {
		summary = "auto"
	}
	if summary == "none" || e.foreign && !e.thinks() && effort == "" {
		summary = ""
	}
	if effort == "" && summary == "" {
		return
	}
	e.w.Key("reasoning").Object()
	if effort != "" {
		e.w.Key("effort").String(effort)
	}
	if summary != "" {
		e.w.Key("summary").String(summary)
	}
	e.w.End()
}

// thinks reports whether the model can think.
func (e *encoder) thinks() bool { return e.target.Caps.Thinking != dialogue.ThinkingNone }

// Steps between the words of effort, in thinking tokens.
const (
	mediumBudget = 4 << 10
	highBudget   = 16 << 10
)

// effort returns the word for how much to think, or "". A budget, or the wish to leave the amount
// to the model, becomes a word only if the model can think, because other models refuse the
// parameter.
func (e *encoder) effort() string {
	r := e.req.Reasoning
	switch {
	case r.Effort == "max" && !e.req.Traits.MaxEffort:
		return "xhigh" // the highest that every effort model knows
	case r.Effort != "":
		return r.Effort
	case r.Disabled && e.thinks():
		off := e.target.Caps.EffortOff()
		e.rep.LoseIf(off == "", "reasoning:disabled")
		return off
	case r.Disabled, r.Budget == nil && !r.Adaptive:
		return ""
	case !e.thinks():
		e.rep.Lose("reasoning")
		return ""
	case r.Budget == nil || *r.Budget < 0:
		return "medium"
	case *r.Budget < mediumBudget:
		return "low"
	case *r.Budget < highBudget:
		return "medium"
	}
	return "high"
}

// identity writes the user and the class of service, and, for a client of the vendor's other shapes, metadata and the
// parameters of the prompt cache.
func (e *encoder) identity() {
	if e.req.User != "" {
		e.w.Key("safety_identifier").String(shortUser(e.req.User))
	}
	if e.req.Traits.KeepsMetadata {
		if len(e.req.Metadata) > 0 {
			e.w.Key("metadata").Raw(e.req.Metadata)
		}
		if e.req.CacheKey != "" {
			e.w.Key("prompt_cache_key").String(e.req.CacheKey)
		}
		if e.req.CacheRetention != "" {
			e.w.Key("prompt_cache_retention").String(e.req.CacheRetention)
		}
		if len(e.req.CacheOptions) > 0 {
			e.w.Key("prompt_cache_options").Raw(e.req.CacheOptions)
		}
	}
	if tier := e.serviceTier(); tier != "" {
		e.w.Key("service_tier").String(tier)
	}
}

// serviceTier returns the tier in the vendor's words.
func (e *encoder) serviceTier() string {
	if e.req.Traits.KeepsMetadata {
		return e.req.ServiceTier
	}
	tier, lost := e.req.OwnTier()
	e.rep.LoseIf(lost, "service_tier")
	return tier
}

// shortUser returns the identifier, or its hash if it is longer than the vendor allows. A hash
// still tells one end user from another.
func shortUser(user string) string {
	if utf8.RuneCountInString(user) <= maxUser {
		return user
	}
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}

// storage writes what the upstream keeps and what it returns for the next turn. A client of another
// shape cannot refer to a stored response, so nothing is stored for it, and its reasoning comes
// back encrypted.
// The vendor stores a response by default. That must not happen to a client that did not choose
// this vendor and has no way to delete the response again.
func (e *encoder) storage() {
	switch {
	case e.foreign:
		e.w.Key("store").Bool(false)
	case e.req.Store != nil:
		e.w.Key("store").Bool(*e.req.Store)
	}
	if e.req.Truncation != "" && !e.foreign {
		e.w.Key("truncation").String(e.req.Truncation)
	}
	if e.req.PreviousResponseID != "" && !e.foreign {
		e.w.Key("previous_response_id").String(e.req.PreviousResponseID)
	}
	include := slices.Clone(e.req.Include)
	kept := e.foreign || e.req.Reasoning.EncryptedContent
	if kept && e.thinks() && !slices.Contains(include, dialogue.IncludeEncrypted) {
		include = append(include, dialogue.IncludeEncrypted) // refused by models that do not think
	}
	if e.req.LogProbs && !slices.Contains(include, dialogue.IncludeLogProbs) {
		include = append(include, dialogue.IncludeLogProbs)
	}
	if len(include) == 0 {
		return
	}
	e.w.Key("include").Array()
	for _, name := range include {
		e.w.String(name)
	}
	e.w.End()
}

// leaveOut writes the members that only this shape has, if the request came in it, and records all
// others as lost.
func (e *encoder) leaveOut() {
	e.rep.LoseUntranslated(e.req, Name, traits)
	for _, f := range e.req.Extra {
		if e.foreign {
			e.rep.LoseField(f.Name, f.Value)
			continue
		}
		e.w.KeyOf(f.Name).Raw(f.Value)
	}
	e.rep.LoseIf(e.req.Seed != "", "seed")
	e.rep.LoseIf(dialogue.NonZero(e.req.PresencePenalty), "presence_penalty")
	e.rep.LoseIf(dialogue.NonZero(e.req.FrequencyPenalty), "frequency_penalty")
	e.rep.LoseIf(e.req.BestOf > 1, "best_of")
	e.rep.LoseField("logit_bias", e.req.LogitBias)
	if !e.req.Traits.KeepsMetadata {
		e.rep.LoseField("metadata", e.req.Metadata)
	}
}
