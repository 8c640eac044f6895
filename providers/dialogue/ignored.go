package dialogue

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// RecordIgnored records a member of a request that its decoder has no use for, under
// the path of the object it stands in. Members that say nothing are not told:
// null, false and what is empty are what a client gets that leaves them out, and
// SDKs write them when they send an answer back as history.
func (r *Request) RecordIgnored(path, name string, v gjson.Result) {
	if len(r.Ignored) >= maxLosses || silent(v) {
		return
	}
	if name = path + "." + name; !slices.Contains(r.Ignored, name) {
		r.Ignored = append(r.Ignored, name)
	}
}

// RecordIgnoredExcept records the members of object that are not among those known.
func (r *Request) RecordIgnoredExcept(path string, object gjson.Result, known ...string) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(name, v gjson.Result) bool {
		if !slices.Contains(known, name.Str) {
			r.RecordIgnored(path, name.Str, v)
		}
		return true
	})
}

// silent reports whether a value is the same as none: so is an object of which
// every member is, as {"enabled":false}.
func silent(v gjson.Result) bool {
	if v.Type != gjson.JSON {
		return blank(v)
	}
	speaks := false
	v.ForEach(func(_, member gjson.Result) bool {
		speaks = v.IsArray() || !blank(member)
		return !speaks
	})
	return !speaks
}

func blank(v gjson.Result) bool {
	return v.Type == gjson.Null || v.Type == gjson.False || v.Type == gjson.String && v.Str == ""
}

// LoseField records a field that is not sent, unless it says nothing.
func (r *Report) LoseField(name string, value json.RawMessage) {
	if len(value) > 0 && !silent(gjson.ParseBytes(value)) {
		r.Lose(name)
	}
}

// NonZero reports whether a penalty is given and not zero, its default.
func NonZero(n json.Number) bool {
	f, err := n.Float64()
	return n != "" && (err != nil || f != 0)
}

// LoseUntranslated records what a decoder found and the form does not hold, for an
// upstream of shape to. Messages and gemini play what is their own back as their
// client wrote it; the others write it anew, also for their own.
func (r *Report) LoseUntranslated(req *Request, to Shape) {
	native := to == req.Inbound
	if !native || to != Messages && to != Gemini {
		for _, name := range req.Ignored {
			r.Lose(name)
		}
	}
	if !native && req.Inbound != Responses && req.Store != nil && *req.Store {
		r.Lose("store") // what responses clients want kept is kept here
	}
	for _, item := range req.Include {
		if !native && item != IncludeEncrypted && item != IncludeLogProbs {
			r.Lose("include:" + item)
		}
	}
	if to != Messages && hinted(req) {
		r.Lose("cache_control")
	}
}

// hinted reports whether a client has marked anything for caching.
func hinted(req *Request) bool {
	marked := func(p Part) bool {
		return len(p.CacheHint) > 0 || p.Result != nil && slices.ContainsFunc(p.Result.Parts, func(p Part) bool { return len(p.CacheHint) > 0 })
	}
	return slices.ContainsFunc(req.System, marked) ||
		slices.ContainsFunc(req.Tools, func(t Tool) bool { return len(t.CacheHint) > 0 }) ||
		slices.ContainsFunc(req.Turns, func(t Turn) bool { return slices.ContainsFunc(t.Parts, marked) })
}

// LoseFileName records the name or title of a file that is sent without it.
func (r *Report) LoseFileName(m *Media) {
	if m.Name != "" {
		r.Lose("file:name")
	}
}
