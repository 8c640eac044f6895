package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
)

// tools reads the member of that name.
func (d *decoder) tools(v gjson.Result) {
	v.ForEach(func(_, tool gjson.Result) bool {
		d.tool(tool, "", 0)
		return true
	})
}

// additionalTools is the type of an item of the input that declares tools. Agents declare tools
// there because a change of the member tools, which stands before the conversation, would make the
// vendor's prompt cache of the whole conversation useless. Other shapes have tools in one place
// only, so these join the others.
const additionalTools = "additional_tools"

// additional adds the tools of such an item. One that has the name of an earlier tool replaces it, because
// vendors refuse two tools of one name.
func (d *decoder) additional(v gjson.Result) {
	if d.declared == nil {
		d.declared = map[string]int{}
		for i := range d.req.Tools {
			d.declared[d.req.Tools[i].Name] = i
		}
	}
	known := len(d.req.Tools)
	v.ForEach(func(_, tool gjson.Result) bool {
		d.tool(tool, "", 0)
		return true
	})
	added := d.req.Tools[known:]
	d.req.Tools = d.req.Tools[:known]
	for _, t := range added {
		if i, ok := d.declared[t.Name]; ok && t.Name != "" {
			d.req.Tools[i] = t
			continue
		}
		d.declared[t.Name] = len(d.req.Tools)
		d.req.Tools = append(d.req.Tools, t)
	}
}

// tool adds a tool to the request. A namespace becomes its members under qualified names
// ("crm__lookup"), because no other shape has namespaces and two of them may have members of one
// name. The emitter finds the namespace of a called tool in the request's body (unqualified).
func (d *decoder) tool(tool gjson.Result, namespace string, depth int) {
	kind := tool.Get("type").Str
	switch {
	case kind == "namespace" && depth == 0: // there are no namespaces in namespaces
		d.req.RecordIgnoredExcept("tools", tool, "type", "name", "tools")
		name := tool.Get("name").Str
		tool.Get("tools").ForEach(func(_, member gjson.Result) bool {
			d.tool(member, name, depth+1)
			return true
		})
		return
	case kind == "function" || kind == "custom":
		d.req.RecordIgnoredExcept("tools", tool, "type", "name", "description", "parameters", "strict", "format",
			"function", "custom")
		d.req.Tools = append(d.req.Tools, readTool(tool, namespace))
		return
	}
	t := dialogue.Tool{Kind: dialogue.OpaqueTool, Type: kind, Name: tool.Get("name").Str,
		Origin: Name, Opaque: raw(tool)}
	if strings.HasPrefix(kind, webSearch) {
		t.Kind, t.Name, d.req.WebSearch = dialogue.WebSearchTool, webSearch, true
	}
	d.req.Tools = append(d.req.Tools, t)
}

// webSearch begins the type of every variant of the search tool, also dated
// ones and previews.
const webSearch = "web_search"

// readTool returns a function or a custom tool.
func readTool(tool gjson.Result, namespace string) dialogue.Tool {
	def := definition(tool)
	t := dialogue.Tool{
		Kind:        dialogue.FunctionTool,
		Name:        dialogue.QualifiedName(namespace, def.Get("name").Str),
		Description: def.Get("description").Str,
		Schema:      raw(def.Get("parameters")),
		Strict:      flag(def.Get("strict")),
	}
	if tool.Get("type").Str == "custom" {
		t.Kind, t.Format, t.Schema = dialogue.CustomTool, raw(def.Get("format")), nil
	}
	return t
}

// unqualified finds the namespace and the name that make a qualified name, in the tools of the body that
// declared them, or in the tools of its input.
func unqualified(body []byte, full string) (namespace, name string) {
	if !strings.Contains(full, dialogue.NamespaceSeparator) {
		return "", full
	}
	name = full
	search := func(_, tool gjson.Result) bool {
		if tool.Get("type").Str != "namespace" {
			return true
		}
		space := tool.Get("name").Str
		tool.Get("tools").ForEach(func(_, member gjson.Result) bool {
			inner := definition(member).Get("name").Str
			if dialogue.QualifiedName(space, inner) == full {
				namespace, name = space, inner
			}
			return namespace == ""
		})
		return namespace == ""
	}
	gjson.GetBytes(body, "tools").ForEach(search)
	if namespace != "" {
		return namespace, name
	}
	gjson.GetBytes(body, "input").ForEach(func(_, item gjson.Result) bool {
		if item.Get("type").Str == additionalTools {
			item.Get("tools").ForEach(search)
		}
		return namespace == ""
	})
	return namespace, name
}

// toolChoice reads which tools may be called.
func (d *decoder) toolChoice(v gjson.Result) {
	d.req.ToolChoice = readChoice(v)
	if len(d.req.ToolChoice.Opaque) == 0 {
		d.req.RecordIgnoredExcept("tool_choice", v, "type", "name", "namespace", "function", "custom",
			"allowed_tools", "mode", "tools")
	}
}

// choiceWords are the choices that are a word and not an object.
var choiceWords = map[string]dialogue.ChoiceMode{
	"auto": dialogue.ToolAuto, "none": dialogue.ToolNone, "required": dialogue.ToolRequired,
}

// readChoice returns the choice in tool_choice, which is never nil.
func readChoice(v gjson.Result) *dialogue.ToolChoice {
	if v.Type == gjson.String {
		return &dialogue.ToolChoice{Mode: choiceWords[v.Str]}
	}
	switch kind := v.Get("type").Str; kind {
	case "function", "custom":
		return &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{choiceName(v)}, Custom: kind == "custom"}
	case "allowed_tools":
		return readAllowed(allowed(v))
	}
	// A tool that the provider runs must be called; only this shape knows how
	// to say so.
	return &dialogue.ToolChoice{Mode: dialogue.ToolRequired, Origin: Name, Opaque: raw(v)}
}

// choiceName returns the qualified name of the tool that v refers to.
func choiceName(v gjson.Result) string {
	return dialogue.QualifiedName(v.Get("namespace").Str, definition(v).Get("name").Str)
}

// readAllowed returns a choice among a subset of the tools.
func readAllowed(v gjson.Result) *dialogue.ToolChoice {
	c := &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Required: v.Get("mode").Str == "required"}
	v.Get("tools").ForEach(func(_, tool gjson.Result) bool {
		name := choiceName(tool)
		if name == "" && strings.HasPrefix(tool.Get("type").Str, webSearch) {
			name = webSearch
		}
		if name != "" {
			c.Names = append(c.Names, name)
		}
		return true
	})
	return c
}

// completeChoice replaces bare names in the choice by the qualified names of tools in namespaces. A
// bare name that two namespaces have stays as it is, and then names no tool.
func (d *decoder) completeChoice() {
	if d.req.ToolChoice == nil {
		return
	}
	for i, name := range d.req.ToolChoice.Names {
		exact, inNamespace := 0, []string{}
		for _, tool := range d.req.Tools {
			switch {
			case tool.Name == name:
				exact++
			case strings.HasSuffix(tool.Name, dialogue.NamespaceSeparator+name):
				inNamespace = append(inNamespace, tool.Name)
			}
		}
		if exact == 0 && len(inNamespace) == 1 {
			d.req.ToolChoice.Names[i] = inNamespace[0]
		}
	}
}
