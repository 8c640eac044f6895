package dialogue

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// searchFrame are the members of a web search that are no limits of it.
var searchFrame = []string{"type", "name", "cache_control"}

// LoseSearch records the members of options that an encoder does not keep: each
// bounds the search, or says what comes back of it. options are a provider-run
// web search as its client wrote it: a tool, or chat's web_search_options; they
// may be empty.
func (r *Report) LoseSearch(options json.RawMessage, kept ...string) {
	r.loseSearch(options, kept, 0)
}

func (r *Report) loseSearch(options json.RawMessage, kept []string, depth int) {
	if len(options) == 0 {
		return
	}
	gjson.ParseBytes(options).ForEach(func(name, v gjson.Result) bool {
		switch {
		case depth == 0 && strings.HasPrefix(name.Str, "googleSearch") && v.IsObject():
			r.loseSearch(json.RawMessage(v.Raw), kept, depth+1) // a tool is the one member of its object
		case slices.Contains(searchFrame, name.Str), slices.Contains(kept, name.Str):
		case name.Str == "external_web_access":
			// The one switch that is on where it is not given.
			if v.Type == gjson.False {
				r.Lose("web_search:" + name.Str)
			}
		case !silent(v):
			r.Lose("web_search:" + name.Str)
		}
		return true
	})
}
