package chunks

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// Usage reads the usage object. As in the neutral form, prompt_tokens includes cached tokens and
// completion_tokens includes reasoning.
func Usage(v gjson.Result) dialogue.Usage {
	u := dialogue.NoUsage
	hits := int64(-1)
	v.ForEach(func(name, n gjson.Result) bool {
		switch name.Str {
		case "prompt_tokens":
			count(n, &u.InputTotal)
		case "completion_tokens":
			count(n, &u.OutputTotal)
		case "prompt_tokens_details":
			inputDetails(n, &u)
		case "completion_tokens_details":
			outputDetails(n, &u)
		case "prompt_cache_hit_tokens":
			count(n, &hits)
		}
		return true
	})
	if u.CacheRead < 0 { // some servers report cached tokens without the details object
		u.CacheRead = hits
	}
	return u
}

// inputDetails reads prompt_tokens_details, whose counts are parts of prompt_tokens.
func inputDetails(v gjson.Result, u *dialogue.Usage) {
	v.ForEach(func(name, n gjson.Result) bool {
		switch name.Str {
		case "cached_tokens":
			count(n, &u.CacheRead)
		case "cache_write_tokens":
			count(n, &u.CacheWrite)
		case "audio_tokens":
			count(n, &u.AudioIn)
		case "image_tokens":
			count(n, &u.ImageIn)
		}
		return true
	})
}

// outputDetails reads completion_tokens_details, whose counts are parts of completion_tokens.
func outputDetails(v gjson.Result, u *dialogue.Usage) {
	v.ForEach(func(name, n gjson.Result) bool {
		switch name.Str {
		case "reasoning_tokens":
			count(n, &u.Reasoning)
		case "audio_tokens":
			count(n, &u.AudioOut)
		case "image_tokens":
			count(n, &u.ImageOut)
		}
		return true
	})
}

// count sets n to v if it is a count. A negative number is recorded as NegativeCount.
func count(v gjson.Result, n *int64) {
	switch {
	case v.Type != gjson.Number || v.Num >= 1<<53:
	case v.Num >= 0:
		*n = int64(v.Num)
	case *n < 0:
		*n = dialogue.NegativeCount
	}
}

// WriteUsage writes the usage object. Unknown counts are written as 0.
func WriteUsage(w *jsonw.Writer, u dialogue.Usage) {
	in, out := dialogue.CountOrZero(u.InputTotal), dialogue.CountOrZero(u.OutputTotal)
	w.Object()
	w.Key("prompt_tokens").Int(in)
	w.Key("completion_tokens").Int(out)
	w.Key("total_tokens").Int(in + out)
	w.Key("prompt_tokens_details").Object()
	w.Key("cached_tokens").Int(dialogue.CountOrZero(u.CacheRead))
	w.Key("audio_tokens").Int(dialogue.CountOrZero(u.AudioIn))
	if written := CacheWritten(u); written > 0 {
		w.Key("cache_write_tokens").Int(written)
	}
	w.End()
	w.Key("completion_tokens_details").Object()
	w.Key("reasoning_tokens").Int(dialogue.CountOrZero(u.Reasoning))
	w.Key("audio_tokens").Int(dialogue.CountOrZero(u.AudioOut))
	w.Key("accepted_prediction_tokens").Int(0)
	w.Key("rejected_prediction_tokens").Int(0)
	w.End()
	w.End()
}

// CacheWritten returns the total of cache writes, or 0 if it is unknown.
func CacheWritten(u dialogue.Usage) int64 {
	if u.CacheWrite >= 0 {
		return u.CacheWrite
	}
	return dialogue.CountOrZero(u.CacheWrite5m) + dialogue.CountOrZero(u.CacheWrite1h)
}
