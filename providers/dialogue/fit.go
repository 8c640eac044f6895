package dialogue

import (
	"encoding/json"
	"strconv"
)

// Fit removes from a request what its target refuses in every shape, as the catalogue describes the model: parameters
// of sampling, the effort of reasoning, and a choice that forces the model to call a tool. It records each change as a
// loss. Call it before the encoder of the target's shape. It changes r, but nothing that r points to.
func (r *Request) Fit(t Target, rep *Report) {
	r.fitSampling(&t.Caps, rep)
	if asked := r.Reasoning; t.Caps.Thinking == ThinkingNone && asked.Effort != "" {
		rep.LoseIf(asked.Effort != "none", "reasoning")
		r.Reasoning.Effort = ""
	}
	if c := r.ToolChoice; c != nil && t.Caps.NoForcedTools {
		forced := *c
		switch {
		case c.Mode == ToolRequired, c.Mode == ToolNamed:
			forced = ToolChoice{Mode: ToolAuto}
		case c.Mode == ToolAllowed && c.Required:
			forced.Required = false
		default:
			return
		}
		r.ToolChoice = &forced
		rep.Lose("tool_choice:forced")
	}
}

// fitSampling removes the parameters of sampling that the model refuses. It removes a parameter that has its default
// without a loss. Some models take these parameters only while they do not reason (SamplingAtRest), and some refuse
// temperature and top_p together (OneSampling), in which case temperature stays.
func (r *Request) fitSampling(caps *Capabilities, rep *Report) {
	drop := func(value *json.Number, name string, unchanged float64) {
		if *value == "" {
			return
		}
		if f, err := value.Float64(); err != nil || f != unchanged {
			rep.Lose(name)
		}
		*value = ""
	}
	asked := r.Reasoning
	rests := asked.Disabled || asked.Effort == "none" || asked.Effort == "" && asked.Budget == nil && !asked.Adaptive
	switch {
	case !caps.Sampling && caps.SamplingAtRest && rests:
	case !caps.Sampling:
		drop(&r.Temperature, "temperature", 1)
		drop(&r.TopP, "top_p", 1)
		drop(&r.PresencePenalty, "presence_penalty", 0)
		drop(&r.FrequencyPenalty, "frequency_penalty", 0)
		if r.TopK != nil {
			rep.Lose("top_k")
			r.TopK = nil
		}
	case caps.OneSampling && r.Temperature != "":
		drop(&r.TopP, "top_p", 1)
	}
}

// Refuses reports whether the model refuses a member of a request that passes through, by its name
// in the shapes of chat and responses. A parameter of sampling that has its default is not refused. effort is what the
// request asks for as its effort of reasoning, or "".
func (c *Capabilities) Refuses(name string, value []byte, effort string) bool {
	unchanged := 1.0
	switch name {
	case "reasoning_effort", "reasoning":
		return c.Thinking == ThinkingNone
	case "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options":
		return c.NoCacheKey
	case "top_k":
		return !c.Sampling && string(value) != "null"
	case "presence_penalty", "frequency_penalty":
		unchanged = 0
	case "temperature", "top_p":
	default:
		return false
	}
	if c.Sampling || c.SamplingAtRest && (effort == "" || effort == "none") {
		return false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	return err == nil && f != unchanged
}
