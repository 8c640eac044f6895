package dialogue

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// searchFrame lists the members of a web search tool that do not limit the search.
var searchFrame = []string{"type", "name", "cache_control"}

// LoseSearch records the members of options that are not in kept. Each of them limits the
// search or its results. options is a web search of the provider as the client wrote it: a
// tool, or web_search_options of chat. It may be empty.
func (r *Report) LoseSearch(options json.RawMessage, kept ...string) {
	r.loseSearch(options, kept, 0)
}

// loseSearch reports the options of a web search that the target does not take. kept names those that it takes. depth
// is 0, and 1 inside the member googleSearch, which is all that some tools consist of.
func (r *Report) loseSearch(options json.RawMessage, kept []string, depth int) {
	if len(options) == 0 {
		return
	}
	gjson.ParseBytes(options).ForEach(func(name, v gjson.Result) bool {
		switch {
		case depth == 0 && strings.HasPrefix(name.Str, "googleSearch") && v.IsObject():
			r.loseSearch(json.RawMessage(v.Raw), kept, depth+1) // the tool is the only member of its object
		case slices.Contains(searchFrame, name.Str), slices.Contains(kept, name.Str):
		case name.Str == "external_web_access":
			// This switch is on by default, so false is the value that matters.
			r.LoseIf(v.Type == gjson.False, "web_search:"+name.Str)
		case !isEmpty(v):
			r.Lose("web_search:" + name.Str)
		}
		return true
	})
}
