package messages

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
)

const (
	// customInput is the one property of the function that stands for a tool
	// with free-form input.
	customInput = "input"

	// webSearchName and webSearchType are the name and the type of the vendor's own search, in the
	// version that every model with search has.
	webSearchName = "web_search"
	webSearchType = "web_search_20250305"
)

// toolSet is the tools of a request as they are sent, each as JSON, and the choice between them.
type toolSet struct {
	tools    [][]byte
	choice   string // "" or a type of tool_choice
	name     string // of choice "tool"
	parallel *bool
}

// forced reports whether a tool must be called.
func (t *toolSet) forced() bool { return t.choice == "any" || t.choice == "tool" }

// write writes tools and tool_choice. The wish for at most one call at a time is a member of the
// choice here, so it needs a choice even where the client made none.
func (t *toolSet) write(w *jsonw.Writer) {
	if len(t.tools) == 0 {
		return // a choice between no tools is refused upstream
	}
	w.Key("tools").Array()
	for _, tool := range t.tools {
		w.Raw(tool)
	}
	w.End()
	choice, single := t.choice, t.parallel != nil && !*t.parallel
	if choice == "" && single {
		choice = "auto" // the flag has no other place
	}
	if choice == "" {
		return
	}
	w.Key("tool_choice").Object()
	w.Key("type").String(choice)
	if choice == "tool" {
		w.Key("name").String(t.name)
	}
	if single && choice != "none" {
		w.Key("disable_parallel_tool_use").Bool(true)
	}
	w.End()
}

// tools returns what the upstream gets of the client's tools. Two tools that end up with the same
// name are refused by the vendor, so the second is lost. A wish for a web search that came as a
// parameter, as in chat, becomes a tool. The only error is a choice that cannot be kept.
func (e *encoder) tools() (toolSet, error) {
	box := toolSet{parallel: e.req.Parallel}
	sent := map[string]bool{}
	for i := range e.req.Tools {
		t := &e.req.Tools[i]
		if !e.allowed(t) {
			continue
		}
		name, body := e.tool(t)
		if body == nil {
			continue
		}
		if sent[name] {
			e.rep.Lose("tools:duplicate")
			continue
		}
		sent[name] = true
		box.tools = append(box.tools, body)
	}
	if e.req.WebSearch && !slices.ContainsFunc(e.req.Tools, isWebSearch) && !sent[webSearchName] {
		box.tools = append(box.tools, e.webSearch(e.req.SearchOptions))
		sent[webSearchName] = true
	}
	err := e.choose(&box, sent)
	return box, err
}

func isWebSearch(t dialogue.Tool) bool { return t.Kind == dialogue.WebSearchTool }

// allowed reports whether the choice leaves this tool in. A choice of a subset (allowed_tools of
// responses) has no equivalent here, so the other tools are not sent. That changes the prompt's
// cached beginning, but keeps the promise.
func (e *encoder) allowed(t *dialogue.Tool) bool {
	c := e.req.ToolChoice
	return c == nil || c.Mode != dialogue.ToolAllowed || slices.Contains(c.Names, t.Name) ||
		slices.Contains(c.Names, dialogue.QualifiedName(t.Namespace, t.Name))
}

// tool returns a tool's name and JSON as they are sent. body is nil if the shape has no such tool.
// A tool that came in this shape is sent as it came, unless its name had to change.
func (e *encoder) tool(t *dialogue.Tool) (name string, body []byte) {
	native := t.Origin == Name && len(t.Opaque) > 0
	switch t.Kind {
	case dialogue.WebSearchTool:
		if native && t.Name != "" {
			return t.Name, t.Opaque
		}
		return webSearchName, e.webSearch(t.Opaque)
	case dialogue.OpaqueTool:
		if native {
			return t.Name, t.Opaque
		}
		e.rep.Lose("tools:" + t.Type)
		return "", nil
	}
	name = e.names.tool(t.Namespace, t.Name)
	if native && name == t.Name {
		return name, t.Opaque
	}
	w := &jsonw.Writer{}
	w.Object()
	w.Key("name").String(name)
	if d := t.DescriptionAsFunction(customInput); d != "" {
		w.Key("description").String(d)
	}
	if t.Kind == dialogue.CustomTool {
		w.Key("input_schema").RawString(`{"type":"object","properties":{"` + customInput +
			`":{"type":"string"}},"required":["` + customInput + `"],"additionalProperties":false}`)
	} else {
		e.function(w, t)
	}
	writeHint(w, t.CacheHint)
	return name, w.End().Buf
}

// function writes a function's schema, and strict where the client asked for it, the model can do
// it and the vendor takes the schema without changes. Otherwise strict is lost: a schema that was
// weakened must not claim to be binding.
func (e *encoder) function(w *jsonw.Writer, t *dialogue.Tool) {
	input := schema.ToolForMessages(t.Schema, t.GeminiSchema)
	w.Key("input_schema").Raw(input)
	if t.Strict == nil || !*t.Strict {
		return
	}
	strict, stripped, ok := schema.ForMessages(input)
	if !ok || stripped || !e.target.Caps.StructuredOutputs || !same(strict, input) {
		e.rep.Lose("strict")
		return
	}
	w.Key("strict").Bool(true)
}

// same reports whether two JSON texts differ in white space only.
func same(a, b json.RawMessage) bool {
	var left, right bytes.Buffer
	return json.Compact(&left, a) == nil && json.Compact(&right, b) == nil && bytes.Equal(left.Bytes(), right.Bytes())
}

// webSearch returns the vendor's search tool with the limits that foreign, a search of another
// shape, has: domains and the place of the user. Other limits are recorded as lost.
func (e *encoder) webSearch(foreign json.RawMessage) []byte {
	e.rep.LoseSearch(foreign, "filters", "user_location")
	options := fields.View(foreign)
	w := &jsonw.Writer{}
	w.Object()
	w.Key("type").String(webSearchType)
	w.Key("name").String(webSearchName)
	e.domains(w, options.Get("filters"))
	place := options.Get("user_location")
	if inner := place.Get("approximate"); inner.IsObject() {
		place = inner
	}
	writePlace(w, place)
	return w.End().Buf
}

// domains writes the domains that a search is limited to, or else those that it must not use. The
// vendor refuses both together, so the second is lost.
func (e *encoder) domains(w *jsonw.Writer, filters gjson.Result) {
	bounded := false
	for _, name := range []string{"allowed_domains", "blocked_domains"} {
		list := filters.Get(name)
		switch {
		case !list.IsArray() || list.Get("#").Int() == 0:
		case bounded:
			e.rep.Lose("web_search:" + name)
		default:
			w.Key(name).RawString(list.Raw)
			bounded = true
		}
	}
}

// writePlace writes where the user is, if any member of it is known.
func writePlace(w *jsonw.Writer, place gjson.Result) {
	fields := []string{"city", "region", "country", "timezone"}
	if !slices.ContainsFunc(fields, func(f string) bool { return place.Get(f).String() != "" }) {
		return
	}
	w.Key("user_location").Object()
	w.Key("type").String("approximate")
	for _, f := range fields {
		if v := place.Get(f).String(); v != "" {
			w.Key(f).String(v)
		}
	}
	w.End()
}

// choose sets the choice of tools in box. sent has the names of all tools that are sent. It fails
// if the client forces a tool that is not among them, because the answer would then be another one.
func (e *encoder) choose(box *toolSet, sent map[string]bool) error {
	c := e.req.ToolChoice
	if c == nil {
		return nil
	}
	if len(c.Opaque) > 0 && c.Origin != Name {
		return e.hosted(box, c, sent)
	}
	switch c.Mode {
	case dialogue.ToolAuto:
		box.choice = "auto"
	case dialogue.ToolNone:
		box.choice = "none"
	case dialogue.ToolRequired:
		box.choice = "any"
	case dialogue.ToolAllowed:
		box.choice = "auto"
		if c.Required {
			box.choice = "any"
		}
	case dialogue.ToolNamed:
		return e.named(box, c, sent)
	}
	if box.forced() && len(box.tools) == 0 {
		return dialogue.Unsupported("tool_choice", "none of the tools can be used with this model")
	}
	return nil
}

// named chooses the one tool that the client names, with or without its namespace.
func (e *encoder) named(box *toolSet, c *dialogue.ToolChoice, sent map[string]bool) error {
	for i := range e.req.Tools {
		t := &e.req.Tools[i]
		full := dialogue.QualifiedName(t.Namespace, t.Name)
		if len(c.Names) == 0 || c.Names[0] != t.Name && c.Names[0] != full {
			continue
		}
		name := t.Name
		if t.Kind == dialogue.FunctionTool || t.Kind == dialogue.CustomTool {
			name = e.names.tool(t.Namespace, t.Name)
		}
		if sent[name] {
			box.choice, box.name = "tool", name
			return nil
		}
	}
	return dialogue.Invalid("tool_choice", "must name one of the tools")
}

// hosted writes the choice of a tool that another shape's provider runs into box. That is possible for a search of the
// web, if the request has one. The error refuses any other tool, because without it the answer would be another one.
func (e *encoder) hosted(box *toolSet, c *dialogue.ToolChoice, sent map[string]bool) error {
	if kind := gjson.GetBytes(c.Opaque, "type").String(); strings.HasPrefix(kind, webSearchName) &&
		sent[webSearchName] {
		box.choice, box.name = "tool", webSearchName
		return nil
	}
	return dialogue.Unsupported("tool_choice", "the model's provider does not have this tool")
}
