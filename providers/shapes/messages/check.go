package messages

import (
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// Limits of a request. maxTurns is the vendor's limit of messages, and a hostile request of more
// costs no more than counting. minBudget is the vendor's smallest thinking.budget_tokens.
const (
	maxTurns  = 100_000
	minBudget = 1024
)

// Check applies the rules to the fields in the order in which the body has them, and then names a
// required field that is missing.
func (shape) Check(body []byte, in shapes.Params) (shapes.Head, error) {
	c := checker{
		head:     shapes.Head{IncludeUsage: true, MaxTokens: -1, N: 1},
		counting: strings.HasSuffix(in.Path, countPath),
	}
	doc := view(body)
	if !doc.IsObject() {
		return c.head, dialogue.Invalid("body", "must be an object")
	}
	var broken *fault
	doc.ForEach(func(key, value gjson.Result) bool {
		if rule := rules[key.Str]; rule != nil {
			if broken = rule(&c, value).in(key.Str); broken != nil && broken.unknown {
				c.head.Unknown, broken = broken.error(), nil
			}
		}
		return broken == nil
	})
	if broken == nil {
		broken = c.whole()
	}
	if broken != nil {
		return c.head, broken.error()
	}
	c.head.Model = strings.Clone(c.head.Model)
	c.head.ServiceTier = strings.Clone(c.head.ServiceTier)
	return c.head, nil
}

// view parses body without the copy that gjson.ParseBytes makes. The result and its strings share
// memory with body, so they must not outlive the call: Check clones the few that it returns.
func view(body []byte) gjson.Result {
	return gjson.Parse(unsafe.String(unsafe.SliceData(body), len(body)))
}

// checker collects what Check learns while it walks over one request.
type checker struct {
	head        shapes.Head
	counting    bool // count_tokens: no max_tokens
	sawModel    bool
	sawMessages bool
	budget      int64 // thinking.budget_tokens, 0: not given
}

// rules are the fields that have any; every other field is forwarded unseen.
var rules = map[string]func(*checker, gjson.Result) *fault{
	"model":          (*checker).model,
	"messages":       (*checker).messages,
	"max_tokens":     (*checker).maxTokens,
	"system":         (*checker).system,
	"stream":         (*checker).stream,
	"thinking":       (*checker).thinking,
	"output_config":  (*checker).outputConfig,
	"output_format":  (*checker).format,
	"service_tier":   (*checker).serviceTier,
	"tools":          (*checker).tools,
	"tool_choice":    (*checker).toolChoice,
	"temperature":    (*checker).fraction,
	"top_p":          (*checker).fraction,
	"top_k":          (*checker).count,
	"stop_sequences": (*checker).texts,
	"metadata":       (*checker).object,
	"cache_control":  (*checker).object,
	"inference_geo":  (*checker).text,
	"container":      (*checker).container,

	contextManagement: (*checker).contextManagement,
}

// whole applies the rules that need more than one field: the required fields, and a budget of
// thinking that leaves room for the answer. A count_tokens request needs no max_tokens.
func (c *checker) whole() *fault {
	switch {
	case !c.sawModel:
		return missing("model")
	case c.head.MaxTokens < 0 && !c.counting:
		return missing("max_tokens")
	case !c.sawMessages:
		return missing("messages")
	case c.budget > 0 && c.head.MaxTokens >= 0 && c.budget >= c.head.MaxTokens:
		return broken("must be less than max_tokens").in("budget_tokens").in("thinking")
	}
	return nil
}

// model checks the model and keeps it for routing.
func (c *checker) model(v gjson.Result) *fault {
	if v.Type != gjson.String || v.Str == "" {
		return broken("must be a non-empty string")
	}
	if utf8.RuneCountInString(v.Str) > dialogue.MaxName {
		return broken("must not be longer than " + strconv.Itoa(dialogue.MaxName) + " characters")
	}
	c.head.Model, c.sawModel = v.Str, true
	return nil
}

// maxTokens checks the bound of the reply, which this shape requires.
func (c *checker) maxTokens(v gjson.Result) *fault {
	n, ok := integer(v)
	if !ok || n < 0 {
		return broken("must be an integer of 0 or more")
	}
	c.head.MaxTokens = n
	return nil
}

// stream checks whether the client asks for a stream.
func (c *checker) stream(v gjson.Result) *fault {
	if v.Type != gjson.Null && !v.IsBool() {
		return broken("must be a boolean")
	}
	c.head.Stream = v.Bool()
	return nil
}

// serviceTier accepts every word (decisions.md, Errors), because clients know newer ones.
func (c *checker) serviceTier(v gjson.Result) *fault {
	if f := c.text(v); f != nil {
		return f
	}
	c.head.ServiceTier = v.Str
	return nil
}

// fraction is the rule of temperature and top_p. The vendor's scale ends at 1, where OpenAI's ends
// at 2.
func (c *checker) fraction(v gjson.Result) *fault {
	if v.Type == gjson.Null {
		return nil
	}
	if v.Type != gjson.Number || v.Num < 0 || v.Num > 1 {
		return broken("must be a number between 0 and 1")
	}
	return nil
}

// count is the rule of top_k.
func (c *checker) count(v gjson.Result) *fault {
	if v.Type == gjson.Null {
		return nil
	}
	if n, ok := integer(v); !ok || n < 0 {
		return broken("must be an integer of 0 or more")
	}
	return nil
}

// text checks that a member is a string or null.
func (c *checker) text(v gjson.Result) *fault {
	if v.Type != gjson.String && v.Type != gjson.Null {
		return broken("must be a string")
	}
	return nil
}

// container checks an id, or the object with an id and skills that newer clients send.
func (c *checker) container(v gjson.Result) *fault {
	if v.Type != gjson.String && v.Type != gjson.Null && !v.IsObject() {
		return broken("must be a string or an object")
	}
	return nil
}

// contextManagement never refuses: the edits are a beta that changes often. It only notes whether
// the vendor may compact the conversation, because such a reply must then be remembered with its
// maker.
func (c *checker) contextManagement(v gjson.Result) *fault {
	v.Get("edits").ForEach(func(_, edit gjson.Result) bool {
		c.head.Compacts = c.head.Compacts || strings.HasPrefix(edit.Get("type").Str, "compact_")
		return true
	})
	return nil
}

// object checks that a member is an object or null.
func (c *checker) object(v gjson.Result) *fault {
	if !v.IsObject() && v.Type != gjson.Null {
		return broken("must be an object")
	}
	return nil
}

// texts checks that a member is a list of strings or null.
func (c *checker) texts(v gjson.Result) *fault {
	if v.Type == gjson.Null {
		return nil
	}
	return each(v, func(e gjson.Result) *fault {
		if e.Type != gjson.String {
			return broken("must be a string")
		}
		return nil
	})
}

// thinking accepts disabled, adaptive, and enabled with a budget. The budget is kept, because whole
// compares it with max_tokens.
func (c *checker) thinking(v gjson.Result) *fault {
	if v.Type == gjson.Null {
		return nil
	}
	if !v.IsObject() {
		return broken("must be an object")
	}
	switch v.Get("type").String() {
	case "disabled", "adaptive":
		return nil
	case "enabled":
	default:
		return broken("must be enabled, disabled or adaptive").in("type")
	}
	budget := v.Get("budget_tokens")
	if !budget.Exists() {
		return missing("budget_tokens")
	}
	n, ok := integer(budget)
	if !ok || n < minBudget {
		return broken("must be an integer of 1024 or more").in("budget_tokens")
	}
	c.budget = n
	return nil
}

// outputConfig checks effort, whose words are an open set, and the format of structured output.
func (c *checker) outputConfig(v gjson.Result) *fault {
	if f := c.object(v); f != nil {
		return f
	}
	if effort := v.Get("effort"); effort.Exists() && c.text(effort) != nil {
		return broken("must be a string").in("effort")
	}
	return c.format(v.Get("format")).in("format")
}

// format checks output_config.format and its predecessor output_format. It accepts json_object too,
// which the vendor does not have, because structured output degrades instead of failing
// (gateway.md).
func (c *checker) format(v gjson.Result) *fault {
	if v.Type == gjson.Null { // or absent
		return nil
	}
	if !v.IsObject() {
		return broken("must be an object")
	}
	if t := v.Get("type").String(); t != "json_schema" && t != "json_object" {
		return broken("must be json_schema").in("type")
	}
	if schema := v.Get("schema"); c.object(schema) != nil {
		return broken("must be an object").in("schema")
	}
	c.head.Structured = true
	return nil
}

// toolChoice checks the choice alone. Whether it names one of the tools is left to the upstream, or
// to the encoder of another shape.
func (c *checker) toolChoice(v gjson.Result) *fault {
	if v.Type == gjson.Null {
		return nil
	}
	if !v.IsObject() {
		return broken("must be an object")
	}
	if flag := v.Get("disable_parallel_tool_use"); flag.Exists() && flag.Type != gjson.Null && !flag.IsBool() {
		return broken("must be a boolean").in("disable_parallel_tool_use")
	}
	switch v.Get("type").String() {
	case "auto", "any", "none":
		return nil
	case "tool":
		return required(v, "name")
	}
	return broken("must be auto, any, tool or none").in("type")
}

// tools checks the tools.
func (c *checker) tools(v gjson.Result) *fault {
	if v.Type == gjson.Null {
		return nil
	}
	return each(v, c.tool)
}

// tool leaves typed tools alone: their set is open, and agents send forms that
// the vendor does not document (decisions.md, Text shapes).
func (c *checker) tool(v gjson.Result) *fault {
	if !v.IsObject() {
		return broken("must be an object")
	}
	kind := v.Get("type")
	if f := c.text(kind); f != nil {
		return f.in("type")
	}
	if !clientTool(kind.Str) {
		return nil
	}
	if f := required(v, "name"); f != nil {
		return f
	}
	schema := v.Get("input_schema")
	if !schema.Exists() {
		return missing("input_schema")
	}
	if !schema.IsObject() {
		return broken("must be an object").in("input_schema")
	}
	return nil
}

// clientTool reports whether a tool of this type has a schema of its own.
func clientTool(kind string) bool { return kind == "" || kind == "custom" }

// required checks a member that must be a non-empty string.
func required(v gjson.Result, name string) *fault {
	m := v.Get(name)
	if !m.Exists() {
		return missing(name)
	}
	if m.Type != gjson.String || m.Str == "" {
		return broken("must be a non-empty string").in(name)
	}
	return nil
}

// each applies rule to every element of an array and returns the first fault, with its index. A
// block of an unknown type is the weakest fault: it is returned only if no element has another,
// because a request with it can still pass through to an upstream of this shape.
func each(v gjson.Result, rule func(gjson.Result) *fault) *fault {
	if !v.IsArray() {
		return broken("must be an array")
	}
	var found *fault
	n := 0
	v.ForEach(func(_, e gjson.Result) bool {
		if bad := rule(e).at(n); found == nil || bad != nil && !bad.unknown {
			found = bad
		}
		n++
		return found == nil || found.unknown // which is reported only if nothing else is wrong
	})
	return found
}

// integer returns a whole number that is written without fraction or exponent and fits an int64. ok
// is false for 1.0 and 1e3.
func integer(v gjson.Result) (int64, bool) {
	if v.Type != gjson.Number || strings.ContainsAny(v.Raw, ".eE") || v.Num >= 1<<63 || v.Num < -1<<63 {
		return 0, false
	}
	return v.Int(), true
}
