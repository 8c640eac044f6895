package responses

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// rule checks the value v of a field, whose place in the body is path, and
// remembers in c what routing needs. null never reaches a rule: in this shape
// it means "not given" everywhere.
type rule func(c *checker, path string, v gjson.Result) *dialogue.Error

// rules maps each known field to its rule. An unknown field is accepted.
// The rules are stricter than the gateway needs in one respect only: they refuse what the vendor
// refuses, with its bounds, because a request that is refused here costs no attempt at an upstream
// and no permit of its rate limit. Where the vendor's set of words grows from one generation of
// models to the next, as for reasoning and tiers, the rule checks the type and not the word.
var rules = map[string]rule{
	"model":                  checkModel,
	"input":                  checkInput,
	"instructions":           text(0, nil),
	"previous_response_id":   text(0, func(c *checker, id string) { c.head.PreviousResponseID = id }),
	"conversation":           checkConversation,
	"context_management":     checkContextManagement,
	"max_output_tokens":      checkMaxTokens,
	"max_tool_calls":         integer(0, math.MaxInt64),
	"background":             boolean(func(c *checker, b bool) { c.head.Background = b }),
	"store":                  boolean(func(c *checker, b bool) { c.head.Store = b }),
	"stream":                 boolean(func(c *checker, b bool) { c.head.Stream = b }),
	"stream_options":         checkStreamOptions,
	"parallel_tool_calls":    boolean(func(*checker, bool) {}),
	"truncation":             checkTruncation,
	"include":                checkInclude,
	"reasoning":              checkReasoning,
	"text":                   checkText,
	"tools":                  checkTools,
	"tool_choice":            checkToolChoice,
	"prompt":                 checkPrompt,
	"metadata":               checkMetadata,
	"top_logprobs":           integer(0, 20),
	"temperature":            number(0, 2),
	"top_p":                  number(0, 1),
	"user":                   text(0, nil),
	"safety_identifier":      text(64, nil),
	"prompt_cache_key":       text(0, nil),
	"service_tier":           text(0, func(c *checker, tier string) { c.head.ServiceTier = tier }),
	"prompt_cache_retention": enum("in_memory", "in-memory", "24h"),
	"top_k":                  integer(0, math.MaxInt64),
}

// tuning has the fields that some models refuse.
var tuning = []string{"temperature", "top_p", "top_k", "reasoning", "include"}

// checker collects what Check learns while it walks over one request.
// A checker is used for one request by one goroutine. Rules write to head what routing needs, so
// that no second walk over the body is necessary.
type checker struct {
	head shapes.Head
	// input is set if the request has input that is not empty. prompt is set if it refers to a
	// stored prompt, which replaces the input.
	input         bool
	prompt        bool
	streamOptions bool
}

// Check applies the rules field by field, in the order the client wrote them.
func (shape) Check(body []byte, in shapes.Params) (shapes.Head, error) {
	root := fields.View(body)
	if !root.IsObject() {
		return shapes.Head{}, dialogue.Invalid("body", "must be a JSON object")
	}
	c := checker{head: shapes.Head{MaxTokens: -1, N: 1, Store: true}}
	var broken *dialogue.Error
	root.ForEach(func(key, v gjson.Result) bool {
		if check, ok := rules[key.Str]; ok && v.Type != gjson.Null {
			c.head.Tuned = c.head.Tuned || slices.Contains(tuning, key.Str)
			if broken = check(&c, key.Str, v); broken.IsUnknownPart() {
				c.head.Unknown, broken = broken, nil
			}
		}
		return broken == nil
	})
	if broken == nil && compacts(in) {
		broken = c.compactOnly()
	}
	if broken == nil {
		broken = c.finish(in.NoInput)
	}
	if broken != nil {
		return shapes.Head{}, broken
	}
	for _, text := range []*string{&c.head.Model, &c.head.ServiceTier, &c.head.PreviousResponseID,
		&c.head.Conversation} {
		*text = strings.Clone(*text) // they outlive the body
	}
	return c.head, nil
}

// finish applies the rules that concern several fields or require one. noInput permits a request
// without input (shapes.Params.NoInput).
// It runs after all fields were read, because the client may write them in any sequence:
// stream_options can stand before stream.
func (c *checker) finish(noInput bool) *dialogue.Error {
	switch {
	case c.head.Model == "":
		return dialogue.Missing("model")
	case c.streamOptions && !c.head.Stream:
		return dialogue.Invalid("stream_options", "is only allowed when stream is true")
	case c.head.PreviousResponseID != "" && c.head.Conversation != "":
		return dialogue.Invalid("previous_response_id", "must not be given together with conversation")
	case !c.input && !c.prompt && !noInput && c.head.PreviousResponseID == "" && c.head.Conversation == "":
		return dialogue.Missing("input")
	}
	return nil
}

// text returns the rule of a string of at most most characters, or of any length if most is 0. The rule calls note, if
// that is not nil, with the string.
func text(most int, note func(*checker, string)) rule {
	return func(c *checker, path string, v gjson.Result) *dialogue.Error {
		if v.Type != gjson.String {
			return dialogue.Invalid(path, "must be a string")
		}
		if most > 0 && utf8.RuneCountInString(v.Str) > most {
			return dialogue.Invalid(path, "must have at most "+strconv.Itoa(most)+" characters")
		}
		if note != nil {
			note(c, v.Str)
		}
		return nil
	}
}

// boolean returns the rule of true or false, and calls note with the value.
func boolean(note func(*checker, bool)) rule {
	return func(c *checker, path string, v gjson.Result) *dialogue.Error {
		if !v.IsBool() {
			return dialogue.Invalid(path, "must be true or false")
		}
		note(c, v.Bool())
		return nil
	}
}

// enum returns the rule of a string that is one of the words.
func enum(words ...string) rule {
	return func(_ *checker, path string, v gjson.Result) *dialogue.Error {
		if v.Type == gjson.String && slices.Contains(words, v.Str) {
			return nil
		}
		return dialogue.Invalid(path, "must be one of "+strings.Join(words, ", "))
	}
}

// number returns the rule of a number within bounds, both included.
func number(least, most float64) rule {
	return func(_ *checker, path string, v gjson.Result) *dialogue.Error {
		if v.Type != gjson.Number || v.Num < least || v.Num > most {
			return dialogue.Invalid(path, "must be a number between "+
				strconv.FormatFloat(least, 'g', -1, 64)+" and "+strconv.FormatFloat(most, 'g', -1, 64))
		}
		return nil
	}
}

// integer returns the rule of a whole number within bounds. An upper bound of MaxInt64 is not
// mentioned in the error.
// "At least 0" is a better error than one that ends in 9223372036854775807.
func integer(least, most int64) rule {
	return func(_ *checker, path string, v gjson.Result) *dialogue.Error {
		n, ok := whole(v)
		if ok && n >= least && n <= most {
			return nil
		}
		if most == math.MaxInt64 {
			return dialogue.Invalid(path, "must be an integer of at least "+strconv.FormatInt(least, 10))
		}
		return dialogue.Invalid(path, "must be an integer between "+
			strconv.FormatInt(least, 10)+" and "+strconv.FormatInt(most, 10))
	}
}

// whole returns a whole number, also one that is written as 20.0 or 2e1, which some SDKs send for
// floats.
// Numbers beyond 2^53 are accepted only as integers, because a float64 of that size may already be
// another number.
func whole(v gjson.Result) (int64, bool) {
	if v.Type != gjson.Number {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil {
		return n, true
	}
	if v.Num != math.Trunc(v.Num) || math.Abs(v.Num) > 1<<53 {
		return 0, false
	}
	return int64(v.Num), true
}

// checkModel checks the model and keeps it for routing.
func checkModel(c *checker, path string, v gjson.Result) *dialogue.Error {
	if v.Type != gjson.String {
		return dialogue.Invalid(path, "must be a string")
	}
	if bad := dialogue.CheckModel(path, v.Str); bad != nil {
		return bad
	}
	c.head.Model = v.Str
	return nil
}

// checkContextManagement notes whether the vendor may compact the conversation while it answers.
// The vendor refuses an empty list.
func checkContextManagement(c *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsArray() {
		return dialogue.Invalid(path, "must be an array")
	}
	empty := true
	broken := each(path, v, func(at string, edit gjson.Result) *dialogue.Error {
		empty = false
		if !edit.IsObject() {
			return dialogue.Invalid(at, "must be an object")
		}
		c.head.Compacts = c.head.Compacts || isCompaction(edit.Get("type").Str)
		return nil
	})
	if empty {
		return dialogue.Invalid(path, "must have at least 1 item")
	}
	return broken
}

// checkMaxTokens applies the vendor's minimum of 16 tokens.
func checkMaxTokens(c *checker, path string, v gjson.Result) *dialogue.Error {
	n, ok := whole(v)
	if !ok || n < minOutputTokens {
		return dialogue.Invalid(path, "must be an integer of at least 16")
	}
	c.head.MaxTokens = n
	return nil
}

// checkTruncation checks how a conversation that is too long is handled.
// "auto" lets a target leave out the oldest turns. Routing then need not avoid targets for which
// the prompt is too long.
func checkTruncation(c *checker, path string, v gjson.Result) *dialogue.Error {
	c.head.Truncate = v.Str == "auto"
	return enum("auto", "disabled")(c, path, v)
}

// checkStreamOptions checks only that the options of streams are an object, because none of them changes what the
// gateway does. It notes that they are there, so that finish can refuse them in a request without a stream.
func checkStreamOptions(c *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsObject() {
		return dialogue.Invalid(path, "must be an object")
	}
	c.streamOptions = true
	return nil
}

// checkInclude checks the list of further output.
func checkInclude(_ *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsArray() {
		return dialogue.Invalid(path, "must be an array")
	}
	return each(path, v, func(at string, item gjson.Result) *dialogue.Error {
		if item.Type != gjson.String {
			return dialogue.Invalid(at, "must be a string")
		}
		return nil
	})
}

// checkReasoning checks only that words are strings: new words appear with every generation of
// models.
func checkReasoning(c *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsObject() {
		return dialogue.Invalid(path, "must be an object")
	}
	for _, name := range []string{"effort", "summary", "generate_summary"} {
		if m := v.Get(name); m.Exists() && m.Type != gjson.Null && m.Type != gjson.String {
			return dialogue.Invalid(path+"."+name, "must be a string")
		}
	}
	return nil
}

// checkVerbosity and checkFormatType check the words of text.verbosity and text.format.type.
var (
	checkVerbosity  = enum("low", "medium", "high")
	checkFormatType = enum("text", "json_object", "json_schema")
)

// checkText checks the format of the reply.
func checkText(c *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsObject() {
		return dialogue.Invalid(path, "must be an object")
	}
	var broken *dialogue.Error
	v.ForEach(func(key, m gjson.Result) bool {
		switch {
		case m.Type == gjson.Null:
		case key.Str == "verbosity":
			broken = checkVerbosity(c, path+".verbosity", m)
		case key.Str == "format":
			broken = checkFormat(c, path+".format", m)
		}
		return broken == nil
	})
	return broken
}

// checkFormat checks text.format. A json_schema without a schema is accepted, because structured
// output degrades instead of failing.
func checkFormat(c *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsObject() {
		return dialogue.Invalid(path, "must be an object")
	}
	kind := v.Get("type")
	if !kind.Exists() {
		return dialogue.Missing(path + ".type")
	}
	if err := checkFormatType(c, path+".type", kind); err != nil {
		return err
	}
	c.head.Structured = kind.Str != "text"
	if name := v.Get("name"); given(name) && name.Type != gjson.String {
		return dialogue.Invalid(path+".name", "must be a string")
	}
	if strict := v.Get("strict"); given(strict) && !strict.IsBool() {
		return dialogue.Invalid(path+".strict", "must be true or false")
	}
	if schema := v.Get("schema"); given(schema) && !schema.IsObject() {
		return dialogue.Invalid(path+".schema", "must be an object")
	}
	return nil
}

// checkPrompt checks a reference to a prompt that is stored at the vendor.
// The gateway cannot read such a prompt. It lets the request pass to an upstream that has it, and
// Decode refuses it for all others.
func checkPrompt(c *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsObject() {
		return dialogue.Invalid(path, "must be an object")
	}
	if v.Get("id").Type != gjson.String {
		return dialogue.Missing(path + ".id")
	}
	c.prompt = true
	return nil
}

// Limits of metadata, which are the vendor's. Lengths are in characters.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

// checkMetadata checks the labels that a client attaches to a response or a conversation.
func checkMetadata(_ *checker, path string, v gjson.Result) *dialogue.Error {
	if !v.IsObject() {
		return dialogue.Invalid(path, "must be an object")
	}
	var broken *dialogue.Error
	pairs := 0
	v.ForEach(func(key, m gjson.Result) bool {
		pairs++
		switch {
		case pairs > maxMetadata:
			broken = dialogue.Invalid(path, "must have at most 16 pairs")
		case utf8.RuneCountInString(key.Str) > maxMetadataKey:
			broken = dialogue.Invalid(path, "keys must have at most 64 characters")
		case m.Type != gjson.String:
			broken = dialogue.Invalid(path, "values must be strings")
		case utf8.RuneCountInString(m.Str) > maxMetadataValue:
			broken = dialogue.Invalid(path, "values must have at most 512 characters")
		}
		return broken == nil
	})
	return broken
}

// given reports whether v is there and not null.
func given(v gjson.Result) bool { return v.Exists() && v.Type != gjson.Null }

// each checks every element of an array and returns the first error. An element is checked under an
// empty path first, which builds no string. Only a broken one is checked again with its path, so
// that a long history without mistakes costs no allocation. An unknown content part counts only if
// nothing else is wrong, because such a request can still pass through.
func each(path string, v gjson.Result, check func(at string, item gjson.Result) *dialogue.Error) *dialogue.Error {
	var broken *dialogue.Error
	i := 0
	v.ForEach(func(_, item gjson.Result) bool {
		if bad := check("", item); bad != nil && (broken == nil || !bad.IsUnknownPart()) {
			broken = check(path+"["+strconv.Itoa(i)+"]", item)
		}
		i++
		return broken == nil || broken.IsUnknownPart() // which is reported only if nothing else is wrong
	})
	return broken
}
