package gemini

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// Check implements shapes.Inbound. Unknown fields are never an error, because Google's SDKs send
// fields before the reference describes them.
func (shape) Check(body []byte, in shapes.Params) (shapes.Head, error) {
	doc := fields.View(body)
	if !doc.IsObject() {
		return shapes.Head{}, dialogue.Invalid("body", "must be a JSON object")
	}
	if bad := dialogue.CheckModel("model", in.Model); bad != nil {
		return shapes.Head{}, bad
	}
	c := checker{head: shapes.Head{Model: in.Model, Stream: in.Stream, IncludeUsage: true, MaxTokens: -1, N: 1}}
	var bad *shapes.Fault
	eachMember(doc, func(name string, v gjson.Result) bool {
		if bad = c.member(name, v).In(name); bad != nil && bad.Unknown {
			c.head.Unknown, bad = bad.Refusal(), nil
		}
		return bad == nil
	})
	if bad == nil && !c.contents {
		bad = shapes.Lacking("contents")
	}
	if bad != nil {
		return c.head, bad.Refusal()
	}
	return c.head, nil
}

// checker collects what routing needs while Check walks over the body. It reads every member once. Mistakes
// are returned as a *shapes.Fault, to which each level adds its part of the path on the way up (In, At), so
// that a good request builds no path.
type checker struct {
	head     shapes.Head
	contents bool
}

// member checks one member at the top of the body. name is in lowerCamelCase.
func (c *checker) member(name string, v gjson.Result) *shapes.Fault {
	switch name {
	case "contents":
		c.contents = true
		return checkContents(v)
	case "systemInstruction":
		return checkSystem(v)
	case "generationConfig":
		return c.generation(v)
	case "tools":
		return checkTools(v)
	case "toolConfig":
		return checkToolConfig(v)
	case "safetySettings":
		return want(v.IsArray(), "must be an array")
	case "cachedContent":
		return want(v.Type == gjson.String, "must be a string")
	case "serviceTier":
		c.head.ServiceTier = strings.Clone(str(v))
		return want(v.Type == gjson.String, "must be a string")
	case "store":
		return want(v.IsBool(), "must be a boolean")
	}
	return nil
}

// want returns a fault with the rule unless ok.
func want(ok bool, rule string) *shapes.Fault {
	if ok {
		return nil
	}
	return shapes.Broken(rule)
}

// checkContents checks the conversation. A single content without the array around it is accepted,
// because SDKs send it.
func checkContents(v gjson.Result) (bad *shapes.Fault) {
	if !v.IsArray() && !v.IsObject() {
		return shapes.Broken("must be an array of contents")
	}
	n := 0
	each(v, func(i int, v gjson.Result) bool {
		n++
		return checkContent(v).At(i).Next(&bad)
	})
	if n == 0 {
		return shapes.Broken("must not be empty")
	}
	return bad
}

// checkContent checks a turn. A member that is not known is remembered and does not end the check, because a mistake
// in a known one is the better answer.
// The members are read in the client's sequence and in both spellings (eachMember).
func checkContent(v gjson.Result) (bad *shapes.Fault) {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	parts := false
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "role":
			if f := want(knownRole(v), "must be user or model"); f != nil {
				bad = f.In(name)
			}
		case "parts":
			parts = true
			bad = checkParts(v).In(name)
		}
		return bad == nil || bad.Unknown
	})
	if bad == nil && !parts {
		return shapes.Lacking("parts")
	}
	return bad
}

// knownRole reports whether a content can have this role. Old clients send function for results,
// and an empty role means user.
func knownRole(v gjson.Result) bool {
	if v.Type != gjson.String {
		return false
	}
	switch v.Str {
	case "", "user", "model", "function":
		return true
	}
	return false
}

// checkParts checks the parts of one content. The first fault that is not Unknown is returned.
func checkParts(v gjson.Result) (bad *shapes.Fault) {
	if !v.IsArray() && !v.IsObject() {
		return shapes.Broken("must be an array of parts")
	}
	n := 0
	each(v, func(i int, v gjson.Result) bool {
		n++
		return checkPart(v).At(i).Next(&bad)
	})
	if n == 0 {
		return shapes.Broken("must not be empty")
	}
	return bad
}

// partDetails are the members of a part that are objects and yet not its data.
var partDetails = []string{"videoMetadata", "partMetadata", "mediaResolution"}

// checkPart checks that a part has exactly one data field. A part whose only object is unknown
// gives a fault with unknown set, which forbids only translation.
// Two data fields in one part would be two meanings, of which a translation could keep one.
// A part with nothing but a thought or a signature has an empty text: Google's SDK for Go leaves an
// empty text out when it sends its history back.
func checkPart(v gjson.Result) (bad *shapes.Fault) {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	data, other, thought := 0, false, false
	eachMember(v, func(name string, v gjson.Result) bool {
		other = other || v.IsObject() && !slices.Contains(partDetails, name)
		switch name {
		case "thought":
			thought = thought || boolean(v)
			return true
		case "thoughtSignature":
			thought = true
			bad = want(v.Type == gjson.String, "must be a string").In(name)
			return bad == nil
		}
		known, f := checkData(name, v)
		if known {
			data++
		}
		bad = f.In(name)
		return bad == nil
	})
	if bad == nil && data == 0 && other {
		return shapes.UnknownPart()
	}
	if bad == nil && data != 1 && (data > 0 || !thought) {
		return shapes.Broken("must have exactly one data field, such as text, inlineData or functionCall")
	}
	return bad
}

// checkData checks a member of a part. known is true for a data field.
func checkData(name string, v gjson.Result) (known bool, bad *shapes.Fault) {
	switch name {
	case "text":
		return true, want(v.Type == gjson.String, "must be a string")
	case "inlineData":
		return true, checkStrings(v, "mimeType", "data")
	case "fileData":
		return true, checkStrings(v, "fileUri")
	case "functionCall":
		return true, checkCall(v)
	case "functionResponse":
		return true, checkResponse(v)
	case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
		return true, want(v.IsObject(), "must be an object")
	}
	return false, nil
}

// checkStrings returns a fault unless v is an object in which the named members are strings that are
// not empty.
func checkStrings(v gjson.Result, names ...string) *shapes.Fault {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	for _, name := range names {
		switch f := field(v, name); {
		case !f.Exists():
			return shapes.Lacking(name)
		case f.Type != gjson.String || f.Str == "":
			return shapes.Broken("must be a string that is not empty").In(name)
		}
	}
	return nil
}

// checkCall checks a function call of the history.
func checkCall(v gjson.Result) *shapes.Fault {
	if bad := checkStrings(v, "name"); bad != nil {
		return bad
	}
	args := field(v, "args")
	return want(!args.Exists() || args.IsObject(), "must be an object").In("args")
}

// checkResponse checks the result of a call.
// The response may be left out, because a function without a result is legal. If it is given, it
// must be an object: the vendor's protocol has no other form.
func checkResponse(v gjson.Result) *shapes.Fault {
	if bad := checkStrings(v, "name"); bad != nil {
		return bad
	}
	if r := field(v, "response"); r.Exists() && !r.IsObject() {
		return shapes.Broken("must be an object").In("response")
	}
	var bad *shapes.Fault
	if parts := field(v, "parts"); parts.Exists() {
		each(parts, func(i int, v gjson.Result) bool {
			bad = want(v.IsObject(), "must be an object").At(i).In("parts")
			return bad == nil
		})
	}
	return bad
}

// checkSystem accepts a content, a content whose parts are one object, and a plain string, because
// clients send all three.
func checkSystem(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.String {
		return nil
	}
	if !v.IsObject() {
		return shapes.Broken("must be an object with parts")
	}
	parts := field(v, "parts")
	if !parts.Exists() {
		return nil
	}
	var bad *shapes.Fault
	each(parts, func(i int, v gjson.Result) bool {
		bad = want(v.IsObject(), "must be an object").At(i).In("parts")
		if text := field(v, "text"); bad == nil && text.Type != gjson.String {
			bad = shapes.Broken("must be a string: only text is possible here").In("text").At(i).In("parts")
		}
		return bad == nil
	})
	return bad
}

// checkBoolean accepts the words in a string as well, as the decoder does.
func checkBoolean(v gjson.Result) *shapes.Fault {
	return want(v.IsBool() || v.Str == "true" || v.Str == "false", "must be a boolean")
}

// bounds is the range of a number.
type bounds struct {
	low, high float64
	whole     bool
}

// ranges are the vendor's bounds of the numbers in generationConfig. A value beyond them is refused before an
// upstream is asked, with the name of the parameter. They are those of the reference, "GenerationConfig" and
// "ThinkingConfig".
var ranges = map[string]bounds{
	"temperature":      {0, 2, false},
	"topP":             {0, 1, false},
	"topK":             {0, math.MaxInt32, true},
	"candidateCount":   {1, maxChoices, true},
	"maxOutputTokens":  {1, math.Inf(1), true},
	"seed":             {math.MinInt32, math.MaxInt32, true},
	"presencePenalty":  {-2, 2, false},
	"frequencyPenalty": {-2, 2, false},
	"logprobs":         {0, 20, true},
	"thinkingBudget":   {-1, math.MaxInt32, true},
}

// check returns a fault unless v is a number within the bounds.
func (b bounds) check(v gjson.Result) *shapes.Fault {
	n, ok := number(v)
	f, err := n.Float64()
	if ok = ok && err == nil && f >= b.low && f <= b.high; ok && b.whole {
		_, ok = integer(v)
	}
	return want(ok, b.rule())
}

// rule says which numbers are allowed, for an error.
func (b bounds) rule() string {
	noun := "must be a number"
	if b.whole {
		noun = "must be an integer"
	}
	low, high := strconv.FormatFloat(b.low, 'f', -1, 64), strconv.FormatFloat(b.high, 'f', -1, 64)
	if math.IsInf(b.high, 1) {
		return noun + " of at least " + low
	}
	return noun + " between " + low + " and " + high
}

// maxStops is the vendor's limit of stop sequences.
const maxStops = 5

// generation checks generationConfig, and at last how its three members about the form of the
// answer go together.
// The three members may come in any order, so they are noted first and compared at the end.
func (c *checker) generation(v gjson.Result) (bad *shapes.Fault) {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	var mime string
	var schema, jsonSchema bool
	eachMember(v, func(name string, v gjson.Result) bool {
		if b, ok := ranges[name]; ok {
			bad = b.check(v).In(name)
		}
		switch name {
		case "candidateCount":
			n, _ := integer(v)
			c.head.N = int(n)
		case "maxOutputTokens":
			c.head.MaxTokens, _ = integer(v)
		case "stopSequences":
			bad = checkStops(v).In(name)
		case "responseMimeType":
			mime = str(v)
			bad = want(v.Type == gjson.String, "must be a string").In(name)
		case "responseSchema":
			schema = true
			bad = want(v.IsObject(), "must be an object").In(name)
		case "responseJsonSchema":
			jsonSchema = true
			bad = want(v.IsObject() || v.IsBool(), "must be a JSON Schema").In(name)
		case "responseLogprobs":
			bad = checkBoolean(v).In(name)
		case "thinkingConfig":
			bad = checkThinking(v).In(name)
		}
		return bad == nil
	})
	c.head.Structured = schema || jsonSchema || mime == mimeJSON
	switch {
	case bad != nil:
		return bad
	case schema && jsonSchema:
		return shapes.Broken("cannot be combined with responseSchema").In("responseJsonSchema")
	case jsonSchema && mime != mimeJSON:
		return shapes.Broken("must be application/json when responseJsonSchema is given").In("responseMimeType")
	case schema && mime != mimeJSON && mime != mimeEnum:
		return shapes.Broken("must be application/json when responseSchema is given").In("responseMimeType")
	}
	return nil
}

// The media types of answers that are not plain text.
const (
	mimeJSON = "application/json"
	mimeEnum = "text/x.enum"
)

// checkStops checks the stop sequences and their number.
func checkStops(v gjson.Result) *shapes.Fault {
	if !v.IsArray() {
		return shapes.Broken("must be an array of strings")
	}
	n := 0
	var bad *shapes.Fault
	each(v, func(i int, v gjson.Result) bool {
		n++
		bad = want(v.Type == gjson.String, "must be a string").At(i)
		return bad == nil
	})
	if bad == nil && n > maxStops {
		return shapes.Broken("must have at most " + strconv.Itoa(maxStops) + " items")
	}
	return bad
}

// checkThinking checks thinkingConfig. A budget, of older models, and a level, of newer ones,
// exclude each other.
// The unspecified level counts as no level, so that a client whose SDK writes it may give a budget.
func checkThinking(v gjson.Result) (bad *shapes.Fault) {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	var budget, level bool
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "includeThoughts":
			bad = checkBoolean(v).In(name)
		case "thinkingBudget":
			budget = true
			bad = ranges[name].check(v).In(name)
		case "thinkingLevel":
			level = str(v) != unspecifiedLevel
			bad = want(knownLevel(str(v)), "must be MINIMAL, LOW, MEDIUM or HIGH").In(name)
		}
		return bad == nil
	})
	if bad == nil && budget && level {
		return shapes.Broken("cannot be combined with thinkingBudget").In("thinkingLevel")
	}
	return bad
}

// unspecifiedLevel is the zero value of the enumeration. Some SDKs write it for "not given".
const unspecifiedLevel = "THINKING_LEVEL_UNSPECIFIED"

// knownLevel reports whether word is a thinking level. The vendor ignores its case.
func knownLevel(word string) bool {
	switch strings.ToUpper(word) {
	case "MINIMAL", "LOW", "MEDIUM", "HIGH", unspecifiedLevel:
		return true
	}
	return false
}

// checkTools checks the tools. One tool may stand without a list.
func checkTools(v gjson.Result) (bad *shapes.Fault) {
	if !v.IsArray() && !v.IsObject() {
		return shapes.Broken("must be an array of tools")
	}
	each(v, func(i int, v gjson.Result) bool {
		bad = want(v.IsObject(), "must be an object").At(i)
		if declared := field(v, "functionDeclarations"); bad == nil && declared.Exists() {
			bad = checkDeclarations(declared).In("functionDeclarations").At(i)
		}
		return bad == nil
	})
	return bad
}

// checkDeclarations checks the functions of a tool.
func checkDeclarations(v gjson.Result) (bad *shapes.Fault) {
	each(v, func(i int, v gjson.Result) bool {
		bad = checkDeclaration(v).At(i)
		return bad == nil
	})
	return bad
}

// checkDeclaration checks one function, which may have its parameters in one of two forms.
// Which of the two forms it was decides later which dialect of JSON Schema the tool's schema is in.
func checkDeclaration(v gjson.Result) *shapes.Fault {
	if bad := checkStrings(v, "name"); bad != nil {
		return bad
	}
	parameters, schema := field(v, "parameters"), field(v, "parametersJsonSchema")
	switch {
	case parameters.Exists() && !parameters.IsObject():
		return shapes.Broken("must be an object").In("parameters")
	case parameters.Exists() && schema.Exists():
		return shapes.Broken("cannot be combined with parameters").In("parametersJsonSchema")
	}
	return nil
}

// checkToolConfig checks the choice of functions.
func checkToolConfig(v gjson.Result) *shapes.Fault {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	config := field(v, "functionCallingConfig")
	if !config.Exists() {
		return nil
	}
	if !config.IsObject() {
		return shapes.Broken("must be an object").In("functionCallingConfig")
	}
	if mode := field(config, "mode"); mode.Exists() && !knownMode(str(mode)) {
		return shapes.Broken("must be AUTO, ANY, NONE or VALIDATED").In("mode").In("functionCallingConfig")
	}
	var bad *shapes.Fault
	if names := field(config, "allowedFunctionNames"); names.Exists() {
		each(names, func(i int, v gjson.Result) bool {
			bad = want(v.Type == gjson.String,
				"must be a string").At(i).In("allowedFunctionNames").In("functionCallingConfig")
			return bad == nil
		})
	}
	return bad
}

// knownMode reports whether word is a function-calling mode.
// VALIDATED is AUTO whose calls the vendor checks against their schemas. Other shapes have no such
// mode, and get AUTO.
func knownMode(word string) bool {
	switch strings.ToUpper(word) {
	case "AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED":
		return true
	}
	return false
}
