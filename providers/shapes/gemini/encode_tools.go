package gemini

import (
	"cmp"
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/schema"
)

// reserve claims the names of all declared tools before any other name is used, first those that
// need no change, so that a changed name never takes the name of another tool.
func (e *encoder) reserve() {
	for _, legal := range []bool{true, false} {
		for _, t := range e.req.Tools {
			if declared(t) && (t.Namespace == "" && legalName(t.Name) == t.Name) == legal {
				e.names.upstreamName(t.Namespace, t.Name)
			}
		}
	}
}

// declared reports whether a tool becomes a function declaration.
func declared(t dialogue.Tool) bool {
	return t.Kind == dialogue.FunctionTool || t.Kind == dialogue.CustomTool
}

// tools writes tools and toolConfig.
func (e *encoder) tools() error {
	functions, servers := e.available()
	if len(functions)+len(servers) > 0 {
		e.w.Key("tools").Array()
		if len(functions) > 0 {
			e.w.Object().Key("functionDeclarations").Array()
			for _, t := range functions {
				e.declare(t)
			}
			e.w.End().End()
		}
		for _, s := range servers {
			e.w.Raw(s)
		}
		e.w.End()
	}
	return e.choice(functions, len(servers) > 0)
}

// available returns the functions and the vendor's own tools that are sent. The shape cannot allow
// a subset without forcing a call, so the other functions are left out for such a choice. The vendor refuses two
// functions of one name, so the second is lost.
func (e *encoder) available() (functions []dialogue.Tool, servers [][]byte) {
	search, sent := e.req.WebSearch, map[string]bool{}
	e.rep.LoseSearch(e.req.SearchOptions)
	for _, t := range e.req.Tools {
		switch {
		case declared(t):
			name := e.names.upstreamName(t.Namespace, t.Name)
			if sent[name] {
				e.rep.Lose("tools:duplicate")
				continue
			}
			sent[name] = true
			functions = append(functions, t)
		case t.Origin == Name && len(t.Opaque) > 0:
			servers = append(servers, t.Opaque)
			search = search && t.Kind != dialogue.WebSearchTool
		case t.Kind == dialogue.WebSearchTool:
			search = true
			e.rep.LoseSearch(t.Opaque)
		default:
			e.rep.Lose("tools:" + t.Type)
		}
	}
	if search {
		servers = append(servers, []byte(`{"googleSearch":{}}`))
	}
	// allowedFunctionNames has an effect only in the mode ANY, which forces a call. Leaving the other functions out
	// changes the prompt, so that its cache does not match, but it keeps the client's restriction.
	if c := e.req.ToolChoice; c != nil && c.Mode == dialogue.ToolAllowed && !c.Required {
		functions = slices.DeleteFunc(functions,
			func(t dialogue.Tool) bool { return !slices.Contains(c.Names, t.Name) })
	}
	return functions, servers
}

// customSchema describes the parameters of a free-form tool that is sent as a function. customInput is its only one.
const (
	customInput  = "input"
	customSchema = `{"type":"object","properties":{"` + customInput + `":{"type":"string"}},` +
		`"required":["` + customInput + `"]}`
)

// declare writes a function declaration. A custom tool becomes a function with one string.
func (e *encoder) declare(t dialogue.Tool) {
	w := &e.w
	w.Object().Key("name").String(e.names.upstreamName(t.Namespace, t.Name))
	if description := t.DescriptionAsFunction(customInput); description != "" {
		w.Key("description").String(description)
	}
	if t.Kind == dialogue.CustomTool {
		e.rep.LoseIf(len(t.Format) > 0, "tools:format")
		t.Schema, t.GeminiSchema = []byte(customSchema), false
	}
	e.parameters(w, t)
	w.End()
}

// parameters writes the schema in the form that the model takes: JSON Schema for newer models,
// Google's OpenAPI subset for older ones. Keywords that cannot be expressed are lost.
func (e *encoder) parameters(w *jsonw.Writer, t dialogue.Tool) {
	name, out, lossy := "parameters", t.Schema, false
	switch {
	case len(t.Schema) == 0:
		return
	case t.GeminiSchema: // as the client wrote it
	case e.target.Caps.JSONSchema:
		name = "parametersJsonSchema"
		out, lossy = schema.ToolForGeminiJSON(t.Schema)
	default:
		out, lossy = schema.ToolForGemini(t.Schema)
	}
	e.rep.LoseIf(lossy, "tools:schema")
	if len(out) > 0 {
		w.Key(name).Raw(out)
	}
}

// choice writes functionCallingConfig, which binds functions only. A strict tool asks for
// VALIDATED, with which calls keep to their schemas. It fails for a choice of a tool that is not a
// function.
func (e *encoder) choice(functions []dialogue.Tool, servers bool) error {
	c := e.req.ToolChoice
	if c != nil && (len(c.Opaque) > 0 && c.Origin != Name || e.namesServerTool(c)) {
		return dialogue.Unsupported("tool_choice", "names a tool that this model's provider does not have")
	}
	if len(functions) == 0 {
		if c != nil && (c.Required || c.Mode == dialogue.ToolRequired || c.Mode == dialogue.ToolNone && servers) {
			e.rep.Lose("tool_choice") // it binds functions only
		}
		return nil
	}
	mode, names := "", []string(nil)
	if slices.ContainsFunc(functions, func(t dialogue.Tool) bool { return t.Strict != nil && *t.Strict }) {
		mode = "VALIDATED"
	}
	if c != nil {
		switch c.Mode {
		case dialogue.ToolNone:
			mode = "NONE"
		case dialogue.ToolRequired:
			mode = "ANY"
		case dialogue.ToolNamed:
			mode, names = "ANY", c.Names[:min(1, len(c.Names))]
		case dialogue.ToolAllowed:
			if c.Required {
				mode, names = "ANY", c.Names
			}
		}
		mode = cmp.Or(mode, "AUTO")
	}
	if mode == "" {
		return nil
	}
	e.w.Key("toolConfig").Object().Key("functionCallingConfig").Object().Key("mode").String(mode)
	if len(names) > 0 {
		e.w.Key("allowedFunctionNames").Array()
		for _, name := range names {
			e.w.String(e.allowed(functions, name))
		}
		e.w.End()
	}
	e.w.End().End()
	return nil
}

// namesServerTool reports whether the one tool that must be called is not a
// function: this shape can force nothing else.
func (e *encoder) namesServerTool(c *dialogue.ToolChoice) bool {
	return c.Mode == dialogue.ToolNamed && len(c.Names) > 0 &&
		slices.ContainsFunc(e.req.Tools, func(t dialogue.Tool) bool { return t.Name == c.Names[0] && !declared(t) })
}

// allowed returns the name under which a tool of the choice is sent.
func (e *encoder) allowed(functions []dialogue.Tool, name string) string {
	for _, t := range functions {
		if t.Name == name {
			return e.names.upstreamName(t.Namespace, name)
		}
	}
	return e.names.upstreamName("", name)
}
