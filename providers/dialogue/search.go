package dialogue

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// searchLimits are the members that bound a provider-run web search, in the
// words of all shapes.
var searchLimits = []string{"search_context_size", "user_location", "filters", "allowed_domains", "blocked_domains", "max_uses"}

// LoseSearch records the limits in options that an encoder does not keep.
// options are a web search as its client wrote it: a tool, or chat's
// web_search_options; they may be empty.
func (r *Report) LoseSearch(options json.RawMessage, kept ...string) {
	if len(options) == 0 {
		return
	}
	all := gjson.ParseBytes(options)
	for _, name := range searchLimits {
		if v := all.Get(name); v.Exists() && v.Type != gjson.Null && !slices.Contains(kept, name) {
			r.Lose("web_search:" + name)
		}
	}
}
