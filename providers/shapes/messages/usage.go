package messages

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// usage holds the vendor's counts, field by field. A negative number means that the
// count is absent. Its input excludes tokens read from or written to the cache.
type usage struct {
	input, read, write, write5m, write1h, output, thinking, searches int64
}

// unknownUsage is the usage of a reply that has reported nothing yet.
var unknownUsage = usage{-1, -1, -1, -1, -1, -1, -1, -1}

// maxCount is more than any reply holds; a greater number is noise.
const maxCount = 1 << 50

// merge takes the counts in v over those known. The vendor's counts are cumulative, so a later one
// replaces an earlier one and nothing is added up.
func (u *usage) merge(v gjson.Result) {
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "input_tokens":
			take(&u.input, value)
		case "cache_read_input_tokens":
			take(&u.read, value)
		case "cache_creation_input_tokens":
			take(&u.write, value)
		case "cache_creation":
			take(&u.write5m, value.Get("ephemeral_5m_input_tokens"))
			take(&u.write1h, value.Get("ephemeral_1h_input_tokens"))
		case "output_tokens":
			take(&u.output, value)
		case "output_tokens_details":
			take(&u.thinking, value.Get("thinking_tokens"))
		case "server_tool_use":
			take(&u.searches, value.Get("web_search_requests"))
		}
		return true
	})
}

// take replaces a count by one that was reported. A negative one is noted only if no proper one is
// known, so that the charge is reported as doubtful instead of becoming negative.
func take(have *int64, reported gjson.Result) {
	switch {
	case reported.Type != gjson.Number || reported.Num >= maxCount:
	case reported.Num >= 0:
		*have = reported.Int()
	case *have < 0:
		*have = dialogue.NegativeCount
	}
}

// neutral returns the counts with totals that include everything, as the neutral form has them:
//
//	input_tokens 10, cache_read_input_tokens 90, cache_creation_input_tokens 5  ->  InputTotal 105
func (u *usage) neutral() dialogue.Usage {
	n := dialogue.NoUsage
	n.CacheRead, n.CacheWrite5m, n.CacheWrite1h, n.CacheWrite = u.read, u.write5m, u.write1h, u.write
	n.OutputTotal, n.Reasoning, n.WebSearches = u.output, u.thinking, u.searches
	if n.CacheWrite < 0 && (u.write5m >= 0 || u.write1h >= 0) {
		n.CacheWrite = dialogue.CountOrZero(u.write5m) + dialogue.CountOrZero(u.write1h)
	}
	switch {
	case u.input >= 0 || u.read >= 0 || n.CacheWrite >= 0:
		n.InputTotal = dialogue.CountOrZero(u.input) + dialogue.CountOrZero(u.read) + dialogue.CountOrZero(n.CacheWrite)
	case u.input == dialogue.NegativeCount:
		n.InputTotal = dialogue.NegativeCount
	}
	return n
}

// writeUsage writes the usage object of a reply with all members that the vendor's SDKs declare.
// Unknown counts are written as 0, because the SDKs do not take null. Cache writes of unknown
// lifetime count as those of five minutes, which is the vendor's default.
func writeUsage(w *jsonw.Writer, u *dialogue.Usage) {
	write5m, write1h := dialogue.CountOrZero(u.CacheWrite5m), dialogue.CountOrZero(u.CacheWrite1h)
	write, read := u.CacheWrite, dialogue.CountOrZero(u.CacheRead)
	if write < 0 {
		write = write5m + write1h
	}
	if write5m+write1h == 0 {
		write5m = write // the default lifetime
	}
	w.Object()
	w.Key("input_tokens").Int(max(dialogue.CountOrZero(u.InputTotal)-read-write, 0))
	w.Key("cache_creation_input_tokens").Int(write)
	w.Key("cache_read_input_tokens").Int(read)
	w.Key("cache_creation").Object()
	w.Key("ephemeral_5m_input_tokens").Int(write5m)
	w.Key("ephemeral_1h_input_tokens").Int(write1h)
	w.End()
	// Never zero, not even for an empty reply.
	w.Key("output_tokens").Int(max(u.OutputTotal, 1))
	w.Key("output_tokens_details").Object()
	w.Key("thinking_tokens").Int(dialogue.CountOrZero(u.Reasoning))
	w.End()
	w.Key("server_tool_use")
	if searches := u.WebSearches; searches > 0 {
		w.Object()
		w.Key("web_search_requests").Int(searches)
		w.Key("web_fetch_requests").Int(0)
		w.End()
	} else {
		w.Null()
	}
	w.Key("inference_geo").Null()
	w.End()
}
