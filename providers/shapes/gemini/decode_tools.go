package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// tool reads one element of tools. Each of its members is a tool, or a list of them.
func (d *decoder) tool(v gjson.Result) {
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "functionDeclarations":
			each(v, func(_ int, v gjson.Result) bool { d.function(v); return true })
		case "googleSearch", "googleSearchRetrieval":
			d.req.WebSearch = true
			d.req.Tools = append(d.req.Tools, serverTool(dialogue.WebSearchTool, name, v))
		default:
			d.req.Tools = append(d.req.Tools, serverTool(dialogue.OpaqueTool, name, v))
		}
		return true
	})
}

// serverTool returns a tool that the vendor runs, with its JSON for upstreams of this shape.
func serverTool(kind dialogue.ToolKind, name string, v gjson.Result) dialogue.Tool {
	var w jsonw.Writer
	w.Object().KeyOf(name).RawString(v.Raw).End()
	return dialogue.Tool{Kind: kind, Type: name, Name: name, Origin: Name, Opaque: w.Buf}
}

// function adds a function. Its parameters are in Google's OpenAPI subset, or in JSON Schema under
// another name.
func (d *decoder) function(v gjson.Result) {
	t := dialogue.Tool{Kind: dialogue.FunctionTool, Origin: Name}
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "name":
			t.Name = str(v)
		case "description":
			t.Description = str(v)
		case "parameters":
			t.Schema, t.GeminiSchema = raw(v), true
		case "parametersJsonSchema":
			t.Schema = raw(v)
		default:
			d.req.RecordIgnored("tools.functionDeclarations", name, v)
		}
		return true
	})
	d.req.Tools = append(d.req.Tools, t)
}

// toolConfig reads which functions may be called, and reports the members that the neutral form does not have.
func (d *decoder) toolConfig(v gjson.Result) {
	config := field(v, "functionCallingConfig")
	d.unread("toolConfig", v, "functionCallingConfig")
	d.unread("toolConfig.functionCallingConfig", config, "mode", "allowedFunctionNames")
	var names []string
	if allowed := field(config, "allowedFunctionNames"); allowed.Exists() {
		each(allowed, func(_ int, v gjson.Result) bool { names = append(names, str(v)); return true })
	}
	d.req.ToolChoice = choiceOf(strings.ToUpper(str(field(config, "mode"))), names)
}

// choiceOf returns the choice for a mode and the allowed names, or nil for a mode that is absent or unknown. VALIDATED
// leaves the model free to call no function, as AUTO does. That it also binds calls to their schemas is not kept.
func choiceOf(mode string, names []string) *dialogue.ToolChoice {
	switch {
	case mode == "NONE":
		return &dialogue.ToolChoice{Mode: dialogue.ToolNone}
	case mode == "ANY" && len(names) == 0:
		return &dialogue.ToolChoice{Mode: dialogue.ToolRequired}
	case mode == "ANY" && len(names) == 1:
		return &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: names}
	case mode == "ANY":
		return &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: names, Required: true}
	// The names restrict the functions in the mode VALIDATED as they do in ANY. In AUTO the vendor refuses them.
	case mode == "VALIDATED" && len(names) > 0:
		return &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: names}
	case mode == "AUTO" || mode == "VALIDATED":
		return &dialogue.ToolChoice{Mode: dialogue.ToolAuto}
	}
	return nil
}
