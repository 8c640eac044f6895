package chat

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// readToolMember reads one of the request's members tools, functions, tool_choice and function_call
// into the request. It also records the members of a definition or a tool_choice that the gateway
// ignores.
func (d *decoder) readToolMember(name string, v gjson.Result) {
	switch name {
	case "tools":
		chunks.OnlyArray(v).ForEach(func(_, t gjson.Result) bool {
			if kind := t.Get("type").Str; kind == "function" || kind == "custom" {
				d.req.RecordIgnoredExcept("tools", t, "type", kind, "cache_control")
				d.req.RecordIgnoredExcept("tools."+kind, t.Get(kind), definitionFields...)
			}
			d.req.Tools = append(d.req.Tools, readTool(t))
			return true
		})
	case "functions":
		d.req.LegacyFunctions = true
		chunks.OnlyArray(v).ForEach(func(_, f gjson.Result) bool {
			d.req.RecordIgnoredExcept("functions", f, definitionFields...)
			d.req.Tools = append(d.req.Tools, functionTool(f))
			return true
		})
	case "tool_choice":
		d.req.RecordIgnoredExcept(name, v, "type", "name", "function", "custom", "allowed_tools")
		d.req.ToolChoice = readChoice(v)
	case "function_call":
		d.req.ToolChoice = readFunctionCall(v)
	}
}

// definitionFields are the members of a definition that are read.
var definitionFields = []string{"name", "description", "parameters", "strict", "format"}

// readTool returns an element of the request's tools: a function, a custom tool, or a tool of any
// other type, which keeps its JSON for upstreams of this shape. A type that begins with web_search
// makes a WebSearchTool, which other shapes can express too.
func readTool(v gjson.Result) dialogue.Tool {
	var t dialogue.Tool
	switch kind := v.Get("type").String(); kind {
	case "function":
		t = functionTool(v.Get("function"))
	case "custom":
		c := v.Get("custom")
		t = dialogue.Tool{Kind: dialogue.CustomTool, Name: c.Get("name").String(),
			Description: c.Get("description").String(), Format: flatFormat(c.Get("format"))}
	default:
		t = dialogue.Tool{Kind: dialogue.OpaqueTool, Type: kind, Name: v.Get("name").String(),
			Origin: Name, Opaque: fields.Raw(v)}
		if strings.HasPrefix(kind, "web_search") {
			t.Kind = dialogue.WebSearchTool
		}
	}
	t.CacheHint = fields.Raw(v.Get("cache_control"))
	return t
}

// functionTool returns a function from its definition. Parameters that are missing leave Schema
// nil.
func functionTool(f gjson.Result) dialogue.Tool {
	t := dialogue.Tool{Kind: dialogue.FunctionTool, Name: f.Get("name").String(),
		Description: f.Get("description").String()}
	if schema := f.Get("parameters"); schema.IsObject() {
		t.Schema = fields.Raw(schema)
	}
	if strict := f.Get("strict"); strict.IsBool() {
		t.Strict = boolean(strict)
	}
	return t
}

// flatFormat brings a custom tool's format to the form of the responses shape,
// where a grammar's members stand beside its type; that form is the neutral one.
func flatFormat(v gjson.Result) json.RawMessage {
	if !v.IsObject() {
		return nil
	}
	grammar := v.Get("grammar")
	if !grammar.IsObject() {
		return fields.Raw(v)
	}
	w := jsonw.Writer{}
	w.Object().Key("type").String(v.Get("type").String())
	w.Key("syntax").String(grammar.Get("syntax").String())
	w.Key("definition").String(grammar.Get("definition").String())
	w.End()
	return w.Buf
}

// nestedFormat does the reverse of flatFormat.
func nestedFormat(format json.RawMessage) json.RawMessage {
	v := fields.View(format)
	if !v.Get("syntax").Exists() {
		return format
	}
	w := jsonw.Writer{}
	w.Object().Key("type").String(v.Get("type").String())
	w.Key("grammar").Object().Key("syntax").String(v.Get("syntax").String())
	w.Key("definition").String(v.Get("definition").String())
	w.End().End()
	return w.Buf
}

// readChoice returns the choice in tool_choice, which is never nil. A string is the mode. An object
// of a type that is not known here keeps its JSON for upstreams of this shape.
func readChoice(v gjson.Result) *dialogue.ToolChoice {
	if v.Type == gjson.String {
		return &dialogue.ToolChoice{Mode: dialogue.ChoiceMode(v.Str)}
	}
	switch kind := v.Get("type").String(); kind {
	case "function", "custom":
		return &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Custom: kind == "custom",
			Names: []string{v.Get(kind).Get("name").String()}}
	case "allowed_tools":
		allowed := v.Get("allowed_tools")
		c := &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Required: allowed.Get("mode").String() == "required"}
		chunks.OnlyArray(allowed.Get("tools")).ForEach(func(_, t gjson.Result) bool {
			c.Names = append(c.Names, fields.MemberOf(t, t.Get("type").String()).Get("name").String())
			return true
		})
		return c
	}
	return &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Origin: Name, Opaque: fields.Raw(v),
		Names: []string{v.Get("name").String()}}
}

// readFunctionCall returns the choice in the deprecated function_call.
func readFunctionCall(v gjson.Result) *dialogue.ToolChoice {
	if v.Type == gjson.String {
		return &dialogue.ToolChoice{Mode: dialogue.ChoiceMode(v.Str)}
	}
	return &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{v.Get("name").String()}}
}
