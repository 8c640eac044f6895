package responses

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
)

// checkInput checks the field input, which is a string or an array of items.
func checkInput(c *checker, path string, v gjson.Result) *dialogue.Error {
	switch {
	case v.Type == gjson.String:
		c.input = v.Str != ""
		return nil
	case !v.IsArray():
		return dialogue.Invalid(path, "must be a string or an array")
	}
	if bad := c.checkCompaction(path, v); bad != nil {
		return bad
	}
	return each(path, v, func(at string, item gjson.Result) *dialogue.Error {
		c.input = true
		return checkItem(at, item)
	})
}

// itemRules are the rules of the item types whose form the gateway relies on. Items of other types pass unchecked,
// because clients may use types that are newer than this gateway.
var itemRules = map[string]func(at string, item gjson.Result) *dialogue.Error{
	"message":                 checkMessage,
	"function_call":           checkFunctionCall,
	"custom_tool_call":        checkCustomCall,
	"function_call_output":    checkOutput,
	"custom_tool_call_output": checkOutput,
	"reasoning":               checkReasoningItem,
	"item_reference":          checkReference,
	additionalTools: func(at string, item gjson.Result) *dialogue.Error {
		return checkTools(nil, at+".tools", item.Get("tools"))
	},
}

// checkItem checks one item of the input. An item of a type without a rule is accepted.
func checkItem(at string, item gjson.Result) *dialogue.Error {
	if !item.IsObject() {
		return dialogue.Invalid(at, "must be an object")
	}
	if t := item.Get("type"); given(t) && t.Type != gjson.String {
		return dialogue.Invalid(at+".type", "must be a string")
	}
	kind := itemType(item)
	if kind == "" {
		return dialogue.Missing(at + ".type")
	}
	if check, ok := itemRules[kind]; ok {
		return check(at, item)
	}
	return nil
}

// itemType returns the type of an input item. It may be left out of messages, which
// have a role, and of references, which have nothing but an id.
func itemType(item gjson.Result) string {
	switch {
	case item.Get("type").Str != "":
		return item.Get("type").Str
	case item.Get("role").Exists():
		return "message"
	case item.Get("id").Type == gjson.String:
		return "item_reference"
	}
	return ""
}

// checkMessage checks a message of the input.
// The role is checked against a closed set, because it decides on which side of the conversation a
// target of another shape gets the text. An empty string is content, and only null counts as
// missing.
func checkMessage(at string, item gjson.Result) *dialogue.Error {
	switch role := item.Get("role"); role.Str {
	case "user", "assistant", "system", "developer":
	default:
		if !given(role) {
			return dialogue.Missing(at + ".role")
		}
		return dialogue.Invalid(at+".role", "must be one of user, assistant, system, developer")
	}
	content := item.Get("content")
	switch {
	case !given(content):
		return dialogue.Missing(at + ".content")
	case content.Type == gjson.String:
		return nil
	case !content.IsArray():
		return dialogue.Invalid(at+".content", "must be a string or an array")
	}
	return each(at+".content", content, checkPart)
}

// checkPart refuses unknown types with UnknownPart, because a part that vanishes on the way changes the question.
func checkPart(at string, part gjson.Result) *dialogue.Error {
	if !part.IsObject() {
		return dialogue.Invalid(at, "must be an object")
	}
	switch kind := part.Get("type"); kind.Str {
	case "input_text", "output_text", "text":
		return stringMember(at, part, "text")
	case "refusal":
		return stringMember(at, part, "refusal")
	case "input_image":
		return oneOf(at, part, "image_url", "file_id")
	case "input_file":
		return oneOf(at, part, "file_data", "file_url", "file_id")
	case "input_audio":
		return checkAudio(at, part)
	default:
		if !given(kind) {
			return dialogue.Missing(at + ".type")
		}
		if kind.Type != gjson.String {
			return dialogue.Invalid(at+".type", "must be a string")
		}
		return dialogue.UnknownPart(at)
	}
}

// checkAudio checks audio, which is always given by value.
// The format is any string, since new ones appear and an encoder that does not know one refuses it
// with a better reason.
func checkAudio(at string, part gjson.Result) *dialogue.Error {
	audio := part.Get("input_audio")
	if !audio.IsObject() {
		return dialogue.Missing(at + ".input_audio")
	}
	if err := stringMember(at+".input_audio", audio, "data"); err != nil {
		return err
	}
	return stringMember(at+".input_audio", audio, "format")
}

// stringMember returns an error unless the member is a string. It may be empty.
func stringMember(at string, v gjson.Result, name string) *dialogue.Error {
	switch m := v.Get(name); {
	case !given(m):
		return dialogue.Missing(at + "." + name)
	case m.Type != gjson.String:
		return dialogue.Invalid(at+"."+name, "must be a string")
	}
	return nil
}

// nameMember returns an error unless the member is a string that is not empty.
func nameMember(at string, v gjson.Result, name string) *dialogue.Error {
	if err := stringMember(at, v, name); err != nil {
		return err
	}
	if v.Get(name).Str == "" {
		return dialogue.Invalid(at+"."+name, "must not be empty")
	}
	return nil
}

// oneOf returns an error unless at least one of the members is a string. It names the first if none
// is given.
func oneOf(at string, v gjson.Result, names ...string) *dialogue.Error {
	found := false
	for _, name := range names {
		m := v.Get(name)
		if !given(m) {
			continue
		}
		if m.Type != gjson.String {
			return dialogue.Invalid(at+"."+name, "must be a string")
		}
		found = true
	}
	if !found {
		return dialogue.Missing(at + "." + names[0])
	}
	return nil
}

// checkFunctionCall checks a call in the history. The JSON inside its arguments is not checked: a
// reply that was cut off leaves broken JSON there.
func checkFunctionCall(at string, item gjson.Result) *dialogue.Error {
	if err := nameMember(at, item, "call_id"); err != nil {
		return err
	}
	if err := nameMember(at, item, "name"); err != nil {
		return err
	}
	if args := item.Get("arguments"); given(args) && args.Type != gjson.String {
		return dialogue.Invalid(at+".arguments", "must be a string")
	}
	return nil
}

// checkCustomCall checks a call of a tool with free text as input.
func checkCustomCall(at string, item gjson.Result) *dialogue.Error {
	if err := nameMember(at, item, "call_id"); err != nil {
		return err
	}
	if err := nameMember(at, item, "name"); err != nil {
		return err
	}
	return stringMember(at, item, "input")
}

// checkOutput checks the result of a call: a string or content parts.
func checkOutput(at string, item gjson.Result) *dialogue.Error {
	if err := nameMember(at, item, "call_id"); err != nil {
		return err
	}
	switch out := item.Get("output"); {
	case !given(out):
		return dialogue.Missing(at + ".output")
	case out.Type == gjson.String:
		return nil
	case !out.IsArray():
		return dialogue.Invalid(at+".output", "must be a string or an array")
	default:
		return each(at+".output", out, checkPart)
	}
}

// checkReasoningItem checks reasoning that comes back with the history.
// What encrypted_content holds is not checked. It may be the vendor's own, a seal of this gateway,
// or a seal whose key has been replaced since, which the decoder then treats as plain text.
func checkReasoningItem(at string, item gjson.Result) *dialogue.Error {
	for _, name := range []string{"summary", "content"} {
		if m := item.Get(name); given(m) && !m.IsArray() {
			return dialogue.Invalid(at+"."+name, "must be an array")
		}
	}
	if m := item.Get("encrypted_content"); given(m) && m.Type != gjson.String {
		return dialogue.Invalid(at+".encrypted_content", "must be a string")
	}
	return nil
}

// checkReference checks an item that only names a stored one.
func checkReference(at string, item gjson.Result) *dialogue.Error {
	return nameMember(at, item, "id")
}
