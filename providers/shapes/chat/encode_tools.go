package chat

import (
	"encoding/json"
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/schema"
)

// tools writes tools, tool_choice and parallel_tool_calls. The last two are refused by the vendor
// without tools, so they are left out then.
func (e *encoder) tools() error {
	if err := e.forced(); err != nil {
		return err
	}
	list := e.usable()
	if len(list) == 0 {
		return nil // no tools, no choice, no parallelism
	}
	e.Key("tools").Array()
	for _, t := range list {
		e.tool(t)
	}
	e.End()
	e.choice()
	if e.req.Parallel != nil {
		e.Key("parallel_tool_calls").Bool(*e.req.Parallel)
	}
	return nil
}

// forced returns the error for a choice that names a tool which this shape does not have. Leaving
// the choice out would change the answer.
func (e *encoder) forced() error {
	c := e.req.ToolChoice
	if c == nil {
		return nil
	}
	if len(c.Opaque) > 0 && c.Origin != Name {
		return dialogue.Unsupported("tool_choice", "names a tool that the chosen model's provider does not have")
	}
	if c.Mode != dialogue.ToolNamed || len(c.Names) == 0 {
		return nil
	}
	if slices.ContainsFunc(e.req.Tools, func(t dialogue.Tool) bool { return t.Name == c.Names[0] && !native(t) }) {
		return dialogue.Unsupported("tool_choice", "names a tool that the chosen model's provider does not have")
	}
	return nil
}

// native reports whether an upstream of this shape can be given the tool.
func native(t dialogue.Tool) bool {
	switch t.Kind {
	case dialogue.FunctionTool, dialogue.CustomTool:
		return true
	}
	return t.Origin == Name && len(t.Opaque) > 0
}

// usable leaves out tools of other providers, and reports them as losses. A web search becomes a member of the request
// if the model searches. Agents offer a search with every model, so a request for any other model goes on without it.
func (e *encoder) usable() []dialogue.Tool {
	var list []dialogue.Tool
	for _, t := range e.req.Tools {
		switch {
		case native(t):
			list = append(list, t)
		case t.Kind == dialogue.WebSearchTool:
			if e.webSearch = e.t.Caps.WebSearch; !e.webSearch {
				e.rep.Lose("tools:" + t.Type)
			}
			e.rep.LoseSearch(t.Opaque)
		default:
			e.rep.Lose("tools:" + t.Type)
		}
	}
	return list
}

// tool writes one element of tools.
func (e *encoder) tool(t dialogue.Tool) {
	switch {
	case t.Kind == dialogue.FunctionTool:
		e.function(t)
	case t.Kind == dialogue.CustomTool:
		e.Object().Key("type").String("custom").Key("custom").Object()
		e.Key("name").String(e.names.of(t.Namespace, t.Name))
		e.word("description", t.Description)
		e.raw("format", nestedFormat(t.Format))
		e.End().End()
	default:
		e.Raw(t.Opaque)
	}
}

// noParameters is sent for a function without a schema, because some servers require one.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// function writes a function. Gemini's form of a schema is converted to JSON Schema.
func (e *encoder) function(t dialogue.Tool) {
	raw := t.Schema
	switch {
	case len(raw) == 0:
		raw = noParameters
	case t.GeminiSchema:
		raw = schema.FromGemini(raw)
	}
	e.Object().Key("type").String("function").Key("function").Object()
	e.Key("name").String(e.names.of(t.Namespace, t.Name))
	e.word("description", t.Description)
	e.Key("parameters").Raw(raw)
	e.strict(t.Strict, raw, "tools:strict")
	e.End().End()
}

// choice writes tool_choice, as a word or as an object that names tools.
func (e *encoder) choice() {
	c := e.req.ToolChoice
	if c == nil {
		return
	}
	switch {
	case len(c.Opaque) > 0:
		e.Key("tool_choice").Raw(c.Opaque)
	case c.Mode == dialogue.ToolNamed && len(c.Names) > 0:
		e.Key("tool_choice")
		e.named(c.Names[0], c.Custom)
	case c.Mode == dialogue.ToolAllowed:
		e.allowed(c)
	default:
		e.Key("tool_choice").String(string(c.Mode))
	}
}

// named writes the object that names one tool, with the name that the upstream knows it by.
func (e *encoder) named(name string, custom bool) {
	kind, namespace := "function", ""
	for _, t := range e.req.Tools {
		if t.Name == name {
			namespace = t.Namespace
			custom = custom || t.Kind == dialogue.CustomTool
		}
	}
	if custom {
		kind = "custom"
	}
	e.Object().Key("type").String(kind)
	e.Key(kind).Object().Key("name").String(e.names.of(namespace, name)).End()
	e.End()
}

// allowed writes a choice among a subset of the tools.
func (e *encoder) allowed(c *dialogue.ToolChoice) {
	mode := "auto"
	if c.Required {
		mode = "required"
	}
	e.Key("tool_choice").Object().Key("type").String("allowed_tools")
	e.Key("allowed_tools").Object().Key("mode").String(mode)
	e.Key("tools").Array()
	for _, name := range c.Names {
		e.named(name, false)
	}
	e.End().End().End()
}
