package responses

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
)

// tools writes tools, the choice among them and parallel_tool_calls. The last two are refused
// without tools.
func (e *encoder) tools() *dialogue.Error {
	var w jsonw.Writer
	w.Array()
	n := 0
	for i := range e.req.Tools {
		if e.tool(&w, &e.req.Tools[i]) {
			n++
		}
	}
	if e.req.WebSearch && !e.has(dialogue.WebSearchTool) {
		e.search(&w, e.req.SearchOptions)
		n++
	}
	w.End()
	if n > 0 {
		e.w.Key("tools").Raw(w.Buf)
	}
	return e.toolChoice(n > 0)
}

// has reports whether the request has a tool of this kind.
func (e *encoder) has(kind dialogue.ToolKind) bool {
	return slices.ContainsFunc(e.req.Tools, func(t dialogue.Tool) bool { return t.Kind == kind })
}

// tool writes one tool and reports whether the shape has it.
func (e *encoder) tool(w *jsonw.Writer, t *dialogue.Tool) bool {
	if t.Origin == Name && len(t.Opaque) > 0 {
		w.Raw(t.Opaque)
		return true
	}
	switch t.Kind {
	case dialogue.FunctionTool:
		e.function(w, t)
	case dialogue.CustomTool:
		e.customTool(w, t)
	case dialogue.WebSearchTool:
		e.search(w, t.Opaque)
	default:
		e.rep.Lose("tools:" + t.Type)
		return false
	}
	return true
}

// function writes a function. strict is always written: if it is left out it means true here, and
// false in the shapes that the request may come from.
func (e *encoder) function(w *jsonw.Writer, t *dialogue.Tool) {
	w.Object().Key("type").String("function")
	w.Key("name").String(e.names.of(t.Name))
	if t.Description != "" {
		w.Key("description").String(t.Description)
	}
	parameters := schema.ToolForMessages(t.Schema, t.GeminiSchema)
	w.Key("parameters").Raw(parameters)
	w.Key("strict").Bool(t.Strict != nil && *t.Strict && e.keepsStrict(parameters))
	w.End()
}

// keepsStrict reports whether a strict tool may stay strict. Clients of a shape in which strict
// means less may call a schema strict that would be refused as such here.
func (e *encoder) keepsStrict(parameters json.RawMessage) bool {
	if e.req.Traits.StrictIsNative || schema.SupportsStrict(parameters) {
		return true
	}
	e.rep.Lose("tools:strict")
	return false
}

// customTool writes a tool with free text as input.
func (e *encoder) customTool(w *jsonw.Writer, t *dialogue.Tool) {
	w.Object().Key("type").String("custom")
	w.Key("name").String(e.names.of(t.Name))
	if t.Description != "" {
		w.Key("description").String(t.Description)
	}
	if len(t.Format) > 0 {
		w.Key("format").Raw(flatFormat(t.Format))
	}
	w.End()
}

// flatFormat takes syntax and definition of a grammar out of the object that
// the chat shape puts around them.
func flatFormat(format json.RawMessage) json.RawMessage {
	grammar := fields.View(format).Get("grammar")
	if !grammar.IsObject() {
		return format
	}
	var w jsonw.Writer
	w.Object().Key("type").String("grammar")
	w.Key("syntax").RawString(grammar.Get("syntax").Raw)
	w.Key("definition").RawString(grammar.Get("definition").Raw)
	return w.End().Buf
}

// toolChoice writes the choice. tools says whether any tool was written. It fails for a choice of a
// tool that only another vendor runs.
func (e *encoder) toolChoice(tools bool) *dialogue.Error {
	c := e.req.ToolChoice
	if c != nil && (len(c.Opaque) > 0 && c.Origin != Name || e.namesForeignTool(c)) {
		return dialogue.Unsupported("tool_choice", "names a tool that this model's provider does not run")
	}
	if !tools {
		return nil
	}
	if e.req.Parallel != nil {
		e.w.Key("parallel_tool_calls").Bool(*e.req.Parallel)
	}
	if c == nil {
		return nil
	}
	e.w.Key("tool_choice")
	switch {
	case len(c.Opaque) > 0:
		e.w.Raw(c.Opaque)
	case c.Mode == dialogue.ToolNamed && len(c.Names) > 0:
		e.named(c.Names[0])
	case c.Mode == dialogue.ToolAllowed:
		e.allowed(c)
	case c.Mode == dialogue.ToolNone, c.Mode == dialogue.ToolRequired:
		e.w.String(string(c.Mode))
	default:
		e.w.String(string(dialogue.ToolAuto))
	}
	return nil
}

// search writes a web search with the limits that foreign has too: a tool of the messages shape, or
// the options of the chat shape. Other limits are lost.
func (e *encoder) search(w *jsonw.Writer, foreign json.RawMessage) {
	options := fields.View(foreign)
	w.Object().Key("type").String(webSearch)
	if domains := options.Get("allowed_domains"); domains.IsArray() {
		w.Key("filters").Object().Key("allowed_domains").RawString(domains.Raw).End()
	}
	if size := options.Get("search_context_size"); size.Type == gjson.String {
		w.Key("search_context_size").RawString(size.Raw)
	}
	writePlace(w, options.Get("user_location"))
	w.End()
	e.rep.LoseSearch(foreign, "allowed_domains", "search_context_size", "user_location")
}

// writePlace writes where a search is made from. The chat shape puts the place
// into an object named after its type.
func writePlace(w *jsonw.Writer, place gjson.Result) {
	inner := place.Get("approximate")
	switch {
	case !inner.IsObject() && place.Get("type").Str == "approximate":
		w.Key("user_location").RawString(place.Raw)
	case inner.IsObject():
		w.Key("user_location").Object().Key("type").String("approximate")
		for _, name := range []string{"city", "country", "region", "timezone"} {
			if v := inner.Get(name); v.Type == gjson.String {
				w.Key(name).RawString(v.Raw)
			}
		}
		w.End()
	}
}

// namesForeignTool reports whether the one tool that must be called is run by another vendor.
// Leaving it out would change the answer.
func (e *encoder) namesForeignTool(c *dialogue.ToolChoice) bool {
	return c.Mode == dialogue.ToolNamed && len(c.Names) > 0 &&
		slices.ContainsFunc(e.req.Tools, func(t dialogue.Tool) bool {
			return t.Name == c.Names[0] && t.Kind == dialogue.OpaqueTool && t.Origin != Name
		})
}

// named writes a reference to a tool, as a choice or as an element of allowed_tools.
func (e *encoder) named(name string) {
	kind := dialogue.FunctionTool
	for i := range e.req.Tools {
		if e.req.Tools[i].Name == name {
			kind = e.req.Tools[i].Kind
		}
	}
	e.w.Object()
	switch kind {
	case dialogue.WebSearchTool:
		e.w.Key("type").String(webSearch)
	case dialogue.CustomTool:
		e.w.Key("type").String("custom").Key("name").String(e.names.of(name))
	default:
		e.w.Key("type").String("function").Key("name").String(e.names.of(name))
	}
	e.w.End()
}

// allowed writes a choice among a subset of the tools.
func (e *encoder) allowed(c *dialogue.ToolChoice) {
	mode := dialogue.ToolAuto
	if c.Required {
		mode = dialogue.ToolRequired
	}
	e.w.Object().Key("type").String("allowed_tools")
	e.w.Key("mode").String(string(mode))
	e.w.Key("tools").Array()
	for _, name := range c.Names {
		e.named(name)
	}
	e.w.End().End()
}
