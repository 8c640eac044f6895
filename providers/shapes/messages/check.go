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

// Check applies the rules to the fields in the order in which the body has them, and then the rules of whole. A block
// of an unknown type is no error here. It is reported in Head.Unknown, because the request can still pass through.
func (shape) Check(body []byte, in shapes.Params) (shapes.Head, error) {
	c := checker{
		head:     shapes.Head{IncludeUsage: true, MaxTokens: -1, N: 1},
		counting: strings.HasSuffix(in.Path, countPath),
	}
	doc := view(body)
	if !doc.IsObject() {
		return c.head, dialogue.Invalid("body", "must be an object")
	}
	var broken *shapes.Fault
	doc.ForEach(func(key, value gjson.Result) bool {
		if rule := rules[key.Str]; rule != nil {
			if broken = rule(&c, value).In(key.Str); broken != nil && broken.Unknown {
				c.head.Unknown, broken = broken.Refusal(), nil
			}
		}
		return broken == nil
	})
	if broken == nil {
		broken = c.whole()
	}
	if broken != nil {
		return c.head, broken.Refusal()
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
var rules = map[string]func(*checker, gjson.Result) *shapes.Fault{
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

// whole applies the rules that need the whole request. The required fields must be there, and the budget of thinking
// must leave room for the answer. A count_tokens request needs no max_tokens.
func (c *checker) whole() *shapes.Fault {
	switch {
	case !c.sawModel:
		return shapes.Lacking("model")
	case c.head.MaxTokens < 0 && !c.counting:
		return shapes.Lacking("max_tokens")
	case !c.sawMessages:
		return shapes.Lacking("messages")
	case c.budget > 0 && c.head.MaxTokens >= 0 && c.budget >= c.head.MaxTokens:
		return shapes.Broken("must be less than max_tokens").In("budget_tokens").In("thinking")
	}
	return nil
}

// model checks the model and keeps it for routing.
func (c *checker) model(v gjson.Result) *shapes.Fault {
	if v.Type != gjson.String || v.Str == "" {
		return shapes.Broken("must be a non-empty string")
	}
	if utf8.RuneCountInString(v.Str) > dialogue.MaxName {
		return shapes.Broken("must not be longer than " + strconv.Itoa(dialogue.MaxName) + " characters")
	}
	c.head.Model, c.sawModel = v.Str, true
	return nil
}

// maxTokens checks the bound of the reply, which this shape requires.
func (c *checker) maxTokens(v gjson.Result) *shapes.Fault {
	n, ok := integer(v)
	if !ok || n < 0 {
		return shapes.Broken("must be an integer of 0 or more")
	}
	c.head.MaxTokens = n
	return nil
}

// stream checks whether the client asks for a stream.
func (c *checker) stream(v gjson.Result) *shapes.Fault {
	if v.Type != gjson.Null && !v.IsBool() {
		return shapes.Broken("must be a boolean")
	}
	c.head.Stream = v.Bool()
	return nil
}

// serviceTier accepts every word (decisions.md, Errors), because clients know newer ones.
func (c *checker) serviceTier(v gjson.Result) *shapes.Fault {
	if f := c.text(v); f != nil {
		return f
	}
	c.head.ServiceTier = v.Str
	return nil
}

// fraction is the rule of temperature and top_p. The vendor's scale ends at 1, where OpenAI's ends
// at 2.
func (c *checker) fraction(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.Null {
		return nil
	}
	if v.Type != gjson.Number || v.Num < 0 || v.Num > 1 {
		return shapes.Broken("must be a number between 0 and 1")
	}
	return nil
}

// count is the rule of top_k.
func (c *checker) count(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.Null {
		return nil
	}
	if n, ok := integer(v); !ok || n < 0 {
		return shapes.Broken("must be an integer of 0 or more")
	}
	return nil
}

// text checks that a member is a string or null.
func (c *checker) text(v gjson.Result) *shapes.Fault {
	if v.Type != gjson.String && v.Type != gjson.Null {
		return shapes.Broken("must be a string")
	}
	return nil
}

// container checks an id, or the object with an id and skills that newer clients send.
func (c *checker) container(v gjson.Result) *shapes.Fault {
	if v.Type != gjson.String && v.Type != gjson.Null && !v.IsObject() {
		return shapes.Broken("must be a string or an object")
	}
	return nil
}

// contextManagement never refuses: the edits are a beta that changes often. It only notes whether
// the vendor may compact the conversation, because such a reply must then be remembered with its
// maker.
func (c *checker) contextManagement(v gjson.Result) *shapes.Fault {
	v.Get("edits").ForEach(func(_, edit gjson.Result) bool {
		c.head.Compacts = c.head.Compacts || strings.HasPrefix(edit.Get("type").Str, "compact_")
		return true
	})
	return nil
}

// object checks that a member is an object or null.
func (c *checker) object(v gjson.Result) *shapes.Fault {
	if !v.IsObject() && v.Type != gjson.Null {
		return shapes.Broken("must be an object")
	}
	return nil
}

// texts checks that a member is a list of strings or null.
func (c *checker) texts(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.Null {
		return nil
	}
	return each(v, func(e gjson.Result) *shapes.Fault {
		if e.Type != gjson.String {
			return shapes.Broken("must be a string")
		}
		return nil
	})
}

// thinking accepts disabled, adaptive, and enabled with a budget. The budget is kept, because whole
// compares it with max_tokens.
func (c *checker) thinking(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.Null {
		return nil
	}
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	switch v.Get("type").String() {
	case "disabled", "adaptive":
		return nil
	case "enabled":
	default:
		return shapes.Broken("must be enabled, disabled or adaptive").In("type")
	}
	budget := v.Get("budget_tokens")
	if !budget.Exists() {
		return shapes.Lacking("budget_tokens")
	}
	n, ok := integer(budget)
	if !ok || n < minBudget {
		return shapes.Broken("must be an integer of 1024 or more").In("budget_tokens")
	}
	c.budget = n
	return nil
}

// outputConfig checks effort, whose words are an open set, and the format of structured output.
func (c *checker) outputConfig(v gjson.Result) *shapes.Fault {
	if f := c.object(v); f != nil {
		return f
	}
	if effort := v.Get("effort"); effort.Exists() && c.text(effort) != nil {
		return shapes.Broken("must be a string").In("effort")
	}
	return c.format(v.Get("format")).In("format")
}

// format checks output_config.format and its predecessor output_format. It accepts json_object too,
// which the vendor does not have, because structured output degrades instead of failing
// (gateway.md).
func (c *checker) format(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.Null { // or absent
		return nil
	}
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	if t := v.Get("type").String(); t != "json_schema" && t != "json_object" {
		return shapes.Broken("must be json_schema").In("type")
	}
	if schema := v.Get("schema"); c.object(schema) != nil {
		return shapes.Broken("must be an object").In("schema")
	}
	c.head.Structured = true
	return nil
}

// toolChoice checks the choice alone. Whether it names one of the tools is left to the upstream, or
// to the encoder of another shape.
func (c *checker) toolChoice(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.Null {
		return nil
	}
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	if flag := v.Get("disable_parallel_tool_use"); flag.Exists() && flag.Type != gjson.Null && !flag.IsBool() {
		return shapes.Broken("must be a boolean").In("disable_parallel_tool_use")
	}
	switch v.Get("type").String() {
	case "auto", "any", "none":
		return nil
	case "tool":
		return required(v, "name")
	}
	return shapes.Broken("must be auto, any, tool or none").In("type")
}

// tools checks the tools.
func (c *checker) tools(v gjson.Result) *shapes.Fault {
	if v.Type == gjson.Null {
		return nil
	}
	return each(v, c.tool)
}

// tool leaves typed tools alone: their set is open, and agents send forms that
// the vendor does not document (decisions.md, Text shapes).
func (c *checker) tool(v gjson.Result) *shapes.Fault {
	if !v.IsObject() {
		return shapes.Broken("must be an object")
	}
	kind := v.Get("type")
	if f := c.text(kind); f != nil {
		return f.In("type")
	}
	if !clientTool(kind.Str) {
		return nil
	}
	if f := required(v, "name"); f != nil {
		return f
	}
	schema := v.Get("input_schema")
	if !schema.Exists() {
		return shapes.Lacking("input_schema")
	}
	if !schema.IsObject() {
		return shapes.Broken("must be an object").In("input_schema")
	}
	return nil
}

// clientTool reports whether a tool of this type has a schema of its own.
func clientTool(kind string) bool { return kind == "" || kind == "custom" }

// required checks a member that must be a non-empty string.
func required(v gjson.Result, name string) *shapes.Fault {
	m := v.Get(name)
	if !m.Exists() {
		return shapes.Lacking(name)
	}
	if m.Type != gjson.String || m.Str == "" {
		return shapes.Broken("must be a non-empty string").In(name)
	}
	return nil
}

// each applies rule to every element of an array and returns the first fault, with its index. A
// block of an unknown type is the weakest fault: it is returned only if no element has another,
// because a request with it can still pass through to an upstream of this shape.
func each(v gjson.Result, rule func(gjson.Result) *shapes.Fault) *shapes.Fault {
	if !v.IsArray() {
		return shapes.Broken("must be an array")
	}
	var found *shapes.Fault
	n := 0
	v.ForEach(func(_, e gjson.Result) bool {
		more := rule(e).At(n).Next(&found)
		n++
		return more
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
