package completions

import (
	"encoding/json"
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// encode implements shapes.Outbound. It refuses tools and media, and writes the conversation as one
// text.
func encode(req *dialogue.Request, t dialogue.Target, rep *dialogue.Report) (shapes.Call, error) {
	if len(req.Tools) > 0 {
		return shapes.Call{}, dialogue.Unsupported("tools", "are not supported by the chosen model")
	}
	if slices.ContainsFunc(req.Modalities,
		func(m string) bool { return strings.EqualFold(m, "audio") || strings.EqualFold(m, "image") }) {
		return shapes.Call{}, dialogue.Unsupported("modalities", "the chosen model answers in text only")
	}
	text, err := render(req, rep)
	if err != nil {
		return shapes.Call{}, err
	}
	unconstrain(req.Output, t, rep)

	w := &jsonw.Writer{Buf: make([]byte, 0, 512+len(text))}
	w.Object().Key("model").String(t.Model)
	w.Key("prompt").String(text)
	limits(w, req, t, rep)
	rep.LoseUntranslated(req, Name, traits)
	for _, f := range req.Extra {
		if req.Inbound == Name {
			w.KeyOf(f.Name).Raw(f.Value)
		} else {
			rep.LoseField(f.Name, f.Value)
		}
	}
	if req.Stream {
		w.Key("stream").Bool(true)
		w.Key("stream_options").Object().Key("include_usage").Bool(true).End()
	}
	w.End()
	return shapes.Call{Path: path, Body: w.Buf, Stream: req.Stream}, nil
}

// unconstrain reports that the answer will not follow the form that the client asked for, because
// the shape has no parameter for it. The request is served all the same.
func unconstrain(o dialogue.Output, t dialogue.Target, rep *dialogue.Report) {
	t.Caps.StructuredOutputs = false
	if o.Mode != dialogue.OutputText && schema.DecideOutput(o, schema.NoOutput, t, rep).Mode != dialogue.OutputText {
		rep.Degrade(dialogue.ModelUnsupported)
	}
}

// maxLogProbs limits the alternatives of a token.
const maxLogProbs = 5

// maxStops bounds the stop sequences of a request.
const maxStops = 4

// limits writes the limits and the parameters of sampling.
func limits(w *jsonw.Writer, req *dialogue.Request, t dialogue.Target, rep *dialogue.Report) {
	switch {
	case req.MaxTokens != nil:
		w.Key("max_tokens").Int(*req.MaxTokens)
	case t.MaxOutputTokens > 0:
		rep.Lose("max_tokens:default") // the shape's own default is 16
		w.Key("max_tokens").Int(t.MaxOutputTokens)
	}
	number(w, "temperature", req.Temperature)
	number(w, "top_p", req.TopP)
	number(w, "seed", req.Seed)
	number(w, "presence_penalty", req.PresencePenalty)
	number(w, "frequency_penalty", req.FrequencyPenalty)
	if len(req.LogitBias) > 0 {
		w.Key("logit_bias").Raw(req.LogitBias)
	}
	if req.N > 1 {
		w.Key("n").Int(int64(req.N))
	}
	if req.LogProbs {
		n := int64(0)
		if req.TopLogProbs != nil {
			if n = min(*req.TopLogProbs, maxLogProbs); n < *req.TopLogProbs {
				rep.Lose("logprobs:truncated")
			}
		}
		w.Key("logprobs").Int(n)
	}
	if stop := req.UpstreamStop(maxStops, nil, rep); len(stop) > 0 {
		w.Key("stop").Array()
		for _, s := range stop {
			w.String(s)
		}
		w.End()
	}
	if req.User != "" {
		w.Key("user").String(req.User)
	}
	lost(req, rep)
}

// lost records the given parameters that models of this shape do not have.
func lost(req *dialogue.Request, rep *dialogue.Report) {
	r := req.Reasoning
	rep.LoseField("metadata", req.Metadata)
	rep.LoseIf(req.TopK != nil, "top_k")
	rep.LoseIf(r.Effort != "" && r.Effort != "none" || r.Budget != nil || r.Adaptive, "reasoning")
	rep.LoseIf(req.Verbosity != "" && req.Verbosity != "medium", "verbosity")
	rep.LoseIf(req.WebSearch, "web_search")
	rep.LoseIf(req.ServiceTier != "" && req.ServiceTier != "auto", "service_tier")
	rep.LoseIf(req.CacheKey != "", "prompt_cache_key")
	rep.LoseIf(req.CacheRetention != "", "prompt_cache_retention")
	rep.LoseIf(len(req.CacheOptions) > 0, "prompt_cache_options")
	rep.LoseIf(req.Parallel != nil && !*req.Parallel, "parallel_tool_calls")
}

// number writes a number in the client's own spelling, if it was given.
func number(w *jsonw.Writer, name string, n json.Number) {
	if n != "" {
		w.Key(name).RawString(string(n))
	}
}

// render returns the conversation as a text for the model to continue. A single question is the
// text itself. Anything else gets role labels, as the package comment shows, and a final turn of
// the assistant is continued.
func render(req *dialogue.Request, rep *dialogue.Report) (string, error) {
	var lines []string
	for _, p := range req.System {
		if strings.TrimSpace(p.Text) != "" {
			lines = append(lines, p.Text)
		}
	}
	if len(req.Turns) == 1 && req.Turns[0].Role == dialogue.User && len(lines) == 0 {
		return said(req.Turns[0], rep)
	}
	open := false // the last line is the assistant's and is to be continued
	for _, t := range req.Turns {
		text, err := said(t, rep)
		if err != nil {
			return "", err
		}
		if text == "" && t.Role == dialogue.Assistant {
			continue // it only thought
		}
		if open = t.Role == dialogue.Assistant; open {
			lines = append(lines, "Assistant: "+text)
		} else {
			lines = append(lines, "User: "+text)
		}
	}
	if !open {
		lines = append(lines, "Assistant:")
	}
	return strings.Join(lines, "\n\n"), nil
}

// said returns the text of a turn. It fails for media and tools, and leaves thoughts out.
func said(t dialogue.Turn, rep *dialogue.Report) (string, error) {
	var b strings.Builder
	rep.LoseIf(t.Name != "", "name")
	for _, p := range t.Parts {
		switch {
		case p.Kind == dialogue.TextPart, p.Kind == dialogue.SystemPart, p.Kind == dialogue.RefusalPart:
			b.WriteString(p.Text)
		case p.Kind == dialogue.MediaPart && p.Media.Text != "":
			rep.LoseFileName(p.Media)
			b.WriteString(p.Media.Text)
		case p.Kind == dialogue.MediaPart:
			return "",
				dialogue.UnsupportedContent("the chosen model takes text only, not " + string(p.Media.Kind) + " input")
		case p.Kind == dialogue.CallPart, p.Kind == dialogue.ResultPart:
			return "", dialogue.UnsupportedContent("tool calls are not supported by the chosen model")
		case p.Kind == dialogue.ThinkingPart:
			rep.Lose("thinking")
		default:
			rep.Lose("server_tool")
		}
	}
	return b.String(), nil
}
