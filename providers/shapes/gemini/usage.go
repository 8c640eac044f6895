package gemini

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// counts holds usageMetadata as far as it was reported. -1 is unknown. Chunks carry running totals
// and leave zeros out, as proto JSON does, so a count stays until it is reported again.
type counts struct {
	prompt, tool, cached, candidates, thoughts, total int64
	audioIn, audioOut, imageIn, imageOut              int64
}

// noCounts are the counts of which none was reported.
var noCounts = counts{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// read takes the counts of a usageMetadata and reports whether any changed.
func (c *counts) read(v gjson.Result) bool {
	before := *c
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "promptTokenCount":
			take(&c.prompt, v)
		case "toolUsePromptTokenCount":
			take(&c.tool, v)
		case "cachedContentTokenCount":
			take(&c.cached, v)
		case "candidatesTokenCount":
			take(&c.candidates, v)
		case "thoughtsTokenCount":
			take(&c.thoughts, v)
		case "totalTokenCount":
			take(&c.total, v)
		case "promptTokensDetails":
			takeModalities(&c.audioIn, &c.imageIn, v)
		case "candidatesTokensDetails":
			takeModalities(&c.audioOut, &c.imageOut, v)
		}
		return true
	})
	return *c != before
}

// take replaces a count by a reported one. A negative number is noted as such unless a proper count
// is known.
func take(count *int64, v gjson.Result) {
	switch n, ok := integer(v); {
	case !ok:
	case n >= 0:
		*count = n
	case *count < 0:
		*count = dialogue.NegativeCount
	}
}

// takeModalities takes the counts of a list that has one for each kind of content.
func takeModalities(audio, image *int64, v gjson.Result) {
	each(v, func(_ int, v gjson.Result) bool {
		switch str(field(v, "modality")) {
		case "AUDIO":
			take(audio, field(v, "tokenCount"))
		case "IMAGE":
			take(image, field(v, "tokenCount"))
		}
		return true
	})
}

// usage returns the neutral form. Thoughts are part of the output there, and prompts of tools part
// of the input. If only the total is known, the output is the rest of it.
func (c *counts) usage() dialogue.Usage {
	u := dialogue.NoUsage
	u.CacheRead, u.Reasoning, u.AudioIn, u.AudioOut = c.cached, c.thoughts, c.audioIn, c.audioOut
	u.ImageIn, u.ImageOut = c.imageIn, c.imageOut
	switch {
	case c.prompt >= 0 || c.tool >= 0:
		u.InputTotal = dialogue.CountOrZero(c.prompt) + dialogue.CountOrZero(c.tool)
	case c.prompt == dialogue.NegativeCount:
		u.InputTotal = dialogue.NegativeCount
	}
	switch thoughts := dialogue.CountOrZero(c.thoughts); {
	case c.candidates >= 0:
		u.OutputTotal = c.candidates + thoughts
	// Relays report the total alone. What is not input is output then, and never less than the thoughts that were
	// reported.
	case c.total >= 0:
		u.OutputTotal = max(c.total-dialogue.CountOrZero(u.InputTotal), thoughts)
	case c.thoughts >= 0:
		u.OutputTotal = thoughts
	case c.candidates == dialogue.NegativeCount:
		u.OutputTotal = dialogue.NegativeCount
	}
	return u
}

// writeUsage writes the member usageMetadata, if any count is known. Counts of zero are left out,
// as the vendor does, but the total is always there.
func writeUsage(w *jsonw.Writer, u dialogue.Usage) {
	if u.InputTotal < 0 && u.OutputTotal < 0 {
		return
	}
	count := func(name string, n int64) {
		if n > 0 {
			w.Key(name).Int(n)
		}
	}
	w.Key("usageMetadata").Object()
	count("promptTokenCount", u.InputTotal)
	count("cachedContentTokenCount", u.CacheRead)
	count("candidatesTokenCount", dialogue.CountOrZero(u.OutputTotal)-dialogue.CountOrZero(u.Reasoning))
	count("thoughtsTokenCount", u.Reasoning)
	w.Key("totalTokenCount").Int(dialogue.CountOrZero(u.InputTotal) + dialogue.CountOrZero(u.OutputTotal))
	w.End()
}
