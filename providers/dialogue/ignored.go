package dialogue

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// RecordIgnored records a member that its decoder does not read, under the path of its
// object. Null, false and empty values are not recorded: they mean the same as a missing
// member, and SDKs write them when they send an answer back as history.
func (r *Request) RecordIgnored(path, name string, v gjson.Result) {
	if len(r.Ignored) >= maxLosses || isEmpty(v) {
		return
	}
	if len(name) > maxLossName {
		name = name[:maxLossName+1] // Lose replaces it by another word
	}
	if name = path + "." + name; !slices.Contains(r.Ignored, name) {
		r.Ignored = append(r.Ignored, name)
	}
}

// RecordIgnoredExcept calls RecordIgnored for the members of object whose names are not in known. It does nothing if
// object is not a JSON object.
func (r *Request) RecordIgnoredExcept(path string, object gjson.Result, known ...string) {
	if !object.IsObject() {
		return
	}
	eachMember(object.Raw, func(name, text string) {
		if !slices.Contains(known, name) {
			r.RecordIgnored(path, name, gjson.Parse(text))
		}
	})
}

// isEmpty reports whether a value means the same as a missing one: a blank one, an array without elements, or an object
// whose members are all blank, as {"enabled":false}. It does not look deeper than that.
func isEmpty(v gjson.Result) bool {
	if v.Type != gjson.JSON {
		return isBlank(v)
	}
	found := false
	v.ForEach(func(_, member gjson.Result) bool {
		found = v.IsArray() || !isBlank(member)
		return !found
	})
	return !found
}

// isBlank reports whether v is null, false or "". Zero, arrays and objects are not blank, even if they are empty.
func isBlank(v gjson.Result) bool {
	return v.Type == gjson.Null || v.Type == gjson.False || v.Type == gjson.String && v.Str == ""
}

// LoseField records a field that is not sent, unless its value is empty.
func (r *Report) LoseField(name string, value json.RawMessage) {
	if len(value) > 0 && !isEmpty(view(value)) {
		r.Lose(name)
	}
}

// NonZero reports whether a penalty was given and is not zero, which is its default. A number too large for a float
// is not zero.
func NonZero(n json.Number) bool {
	f, err := n.Float64()
	return n != "" && (err != nil || f != 0)
}

// LoseUntranslated records the members of req that an upstream does not get. to is the shape of
// the upstream and has are its traits.
func (r *Report) LoseUntranslated(req *Request, to Shape, has Traits) {
	native := to == req.Inbound
	if !native || !has.ReplaysParts {
		for _, name := range req.Ignored {
			r.Lose(name)
		}
	}
	if !native && !req.Traits.StoresReplies && req.Store != nil && *req.Store {
		r.Lose("store") // upstreams of another shape store nothing that the client could use
	}
	for _, item := range req.Include {
		r.LoseIf(!native && item != IncludeEncrypted && item != IncludeLogProbs, "include:"+item)
	}
	r.LoseIf(!has.CacheHints && hasCacheHint(req), "cache_control")
}

// hasCacheHint reports whether the client marked any tool or part for caching, in the system prompt, in a turn, or in
// the result of a tool.
func hasCacheHint(req *Request) bool {
	marked := func(p Part) bool {
		return len(p.CacheHint) > 0 ||
			p.Result != nil && slices.ContainsFunc(p.Result.Parts, func(p Part) bool { return len(p.CacheHint) > 0 })
	}
	return slices.ContainsFunc(req.System, marked) ||
		slices.ContainsFunc(req.Tools, func(t Tool) bool { return len(t.CacheHint) > 0 }) ||
		slices.ContainsFunc(req.Turns, func(t Turn) bool { return slices.ContainsFunc(t.Parts, marked) })
}

// LoseFileName records that a file is sent without its name or title.
func (r *Report) LoseFileName(m *Media) {
	r.LoseIf(m.Name != "", "file:name")
}
