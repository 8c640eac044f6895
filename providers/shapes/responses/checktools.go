package responses

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// checkTools checks the tools.
// A tool that the vendor runs itself (web_search, file_search) passes unchecked, because only the
// vendor knows its members. Tools that clients run are checked, since their names and schemas are
// needed for every translation.
func checkTools(_ *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsArray() {
		return dialogue.Invalid(path, "must be an array")
	}
	return each(path, v, checkTool)
}

func checkTool(at string, tool gjson.Result) *dialogue.Error { return checkToolAt(at, tool, 0) }

// checkToolAt checks the tools that the client itself runs. The types of tools are an open set, so
// a type that has no rule here is accepted. depth is 1 for the tools inside a namespace.
func checkToolAt(at string, tool gjson.Result, depth int) *dialogue.Error {
	if !tool.IsObject() {
		return dialogue.Invalid(at, "must be an object")
	}
	kind := tool.Get("type")
	if !given(kind) {
		return dialogue.Missing(at + ".type")
	}
	switch kind.Str {
	case "function", "custom":
		return checkClientTool(at, definition(tool))
	case "namespace":
		if depth > 0 {
			return dialogue.Invalid(at+".type", "must not be a namespace inside a namespace")
		}
		return checkNamespace(at, tool, depth)
	case "":
		return dialogue.Invalid(at+".type", "must be a string")
	}
	return nil
}

// definition returns the object that holds name and parameters. Some clients nest it
// under the tool's type, as the chat shape does.
func definition(tool gjson.Result) gjson.Result {
	if inner := fields.MemberOf(tool, tool.Get("type").Str); inner.IsObject() && !tool.Get("name").Exists() {
		return inner
	}
	return tool
}

// checkClientTool checks the definition of a function or of a custom tool.
// parameters belong to a function and format to a custom tool. Both are checked for both, and
// readTool takes the one that fits.
func checkClientTool(at string, tool gjson.Result) *dialogue.Error {
	if err := nameMember(at, tool, "name"); err != nil {
		return err
	}
	if d := tool.Get("description"); given(d) && d.Type != gjson.String {
		return dialogue.Invalid(at+".description", "must be a string")
	}
	for _, name := range []string{"parameters", "format"} {
		if m := tool.Get(name); given(m) && !m.IsObject() {
			return dialogue.Invalid(at+"."+name, "must be an object")
		}
	}
	if s := tool.Get("strict"); given(s) && !s.IsBool() {
		return dialogue.Invalid(at+".strict", "must be true or false")
	}
	return nil
}

// checkNamespace checks a group of tools under one name.
func checkNamespace(at string, tool gjson.Result, depth int) *dialogue.Error {
	if err := nameMember(at, tool, "name"); err != nil {
		return err
	}
	members := tool.Get("tools")
	if !members.IsArray() {
		return dialogue.Invalid(at+".tools", "must be an array")
	}
	return each(at+".tools", members, func(at string, tool gjson.Result) *dialogue.Error {
		return checkToolAt(at, tool, depth+1)
	})
}

var checkChoiceWord = enum("none", "auto", "required")

// checkToolChoice checks the form of the choice. Whether it names one of the tools is left to the
// upstream, or to the encoder of another shape.
func checkToolChoice(c *checker, path string, v gjson.Result) *dialogue.Error {
	switch {
	case v.Type == gjson.String:
		return checkChoiceWord(c, path, v)
	case !v.IsObject():
		return dialogue.Invalid(path, "must be a string or an object")
	}
	kind := v.Get("type")
	if kind.Type != gjson.String {
		return dialogue.Missing(path + ".type")
	}
	switch kind.Str {
	case "function", "custom":
		return nameMember(path, definition(v), "name")
	case "allowed_tools":
		return checkAllowed(path, allowed(v))
	}
	return nil
}

// allowed returns the object that holds mode and tools of an allowed_tools choice.
func allowed(choice gjson.Result) gjson.Result {
	if inner := choice.Get("allowed_tools"); inner.IsObject() {
		return inner
	}
	return choice
}

// checkAllowed checks a choice among a subset of the tools.
// Whether the tools of the subset were declared is not checked here, because an item of the input
// may declare them (additionalTools).
func checkAllowed(path string, v gjson.Result) *dialogue.Error {
	if m := v.Get("mode"); given(m) && m.Str != "auto" && m.Str != "required" {
		return dialogue.Invalid(path+".mode", "must be one of auto, required")
	}
	tools := v.Get("tools")
	if !tools.IsArray() {
		return dialogue.Missing(path + ".tools")
	}
	return each(path+".tools", tools, func(at string, tool gjson.Result) *dialogue.Error {
		if tool.Get("type").Type != gjson.String {
			return dialogue.Missing(at + ".type")
		}
		return nil
	})
}
