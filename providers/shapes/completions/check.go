package completions

import (
	"math"
	"strconv"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// rules of the fields that routing does not care about.
var rules = map[string]fields.Rule{
	"echo":              fields.Of(fields.Bool),
	"frequency_penalty": fields.Between(-2, 2),
	"presence_penalty":  fields.Between(-2, 2),
	"logit_bias":        fields.LogitBias,
	"logprobs":          fields.Whole(0, 5),
	"seed":              fields.Whole(math.MinInt64, math.MaxInt64),
	"stop":              fields.Stop,
	"suffix":            fields.Of(fields.String),
	"temperature":       fields.Between(0, 2),
	"top_p":             fields.Between(0, 1),
	"user":              fields.Of(fields.String),
}

// checker collects what Check learns while it reads a request once.
type checker struct {
	chunks.Checker
	bestOf int64 // -1: not given
}

// check implements shapes.Inbound. Head.Answers counts the answers that the provider makes, best_of
// included, because each is paid for although the client sees fewer.
func check(body []byte) (shapes.Head, error) {
	k := &checker{Checker: chunks.NewChecker(body, memberNames), bestOf: -1}
	defer k.Free()
	if err := k.Walk(k.field); err != nil {
		return shapes.Head{}, err
	}
	if err := k.together(); err != nil {
		return shapes.Head{}, err
	}
	if answers := max(k.Head.Prompts, 1) * max(k.Head.N, int(k.bestOf)); answers > k.Head.N {
		k.Head.Answers = answers
	}
	k.Head.Plain = !k.UsageSaid || k.Head.IncludeUsage
	return k.Head, nil
}

// together applies the rules that concern several fields. A missing prompt is left to the upstream,
// which may have a default.
func (k *checker) together() error {
	switch {
	case k.Options && !k.Head.Stream:
		return dialogue.Invalid("stream_options", "is only allowed when stream is true")
	case k.bestOf >= 0 && k.bestOf <= int64(k.Head.N) && (k.bestOf != 1 || k.Head.N != 1):
		return dialogue.Invalid("best_of", "must be greater than n")
	case k.bestOf > 1 && k.Head.Stream:
		return dialogue.Invalid("best_of", "cannot be streamed")
	case !k.HasModel:
		return dialogue.Missing("model")
	}
	return nil
}

// field checks one member at the top of the body. null counts as absent, except for the required
// model.
func (k *checker) field(name []byte) error {
	k.UsageSaid = k.UsageSaid || string(name) == "stream_options"
	if string(name) != "model" && k.Null() {
		return nil
	}
	switch string(name) {
	case "model":
		return k.Model()
	case "stream":
		return k.Switch(&k.Head.Stream)
	case "n":
		return k.Choices()
	case "max_tokens":
		return k.Count(0, math.MaxInt64, func(n int64) { k.Head.MaxTokens = n })
	case "best_of":
		return k.Count(0, 20, func(n int64) {
			if n > 0 { // 0 counts as absent (decisions.md)
				k.bestOf = n
			}
		})
	case "stream_options":
		return k.StreamOptions()
	case "prompt":
		return k.prompt()
	}
	if rule, ok := rules[string(name)]; ok {
		return rule(k.Reader)
	}
	return nil
}

// maxPrompts bounds the prompts of one request. Each is answered, so that a few bytes of request
// cost a whole answer.
const maxPrompts = 2048

// prompt checks the four forms of a prompt: a string, a list of strings, a list of tokens, and a
// list of such lists. Two of them have several prompts.
func (k *checker) prompt() error {
	r := k.Reader
	if r.Peek() == fields.String {
		r.Skip()
		return nil
	}
	if r.Peek() != fields.Array {
		return r.Broken("must be a string, an array of strings or tokens, or an array of token arrays")
	}
	kind, n := fields.Invalid, 0
	err := r.Array(func(i int) error {
		n = i + 1
		if n > maxPrompts && kind != fields.Number {
			return dialogue.Invalid("prompt", "must not hold more than "+strconv.Itoa(maxPrompts)+" prompts")
		}
		if i == 0 {
			kind = r.Peek()
		} else if r.Peek() != kind {
			return r.Broken("must be of the same type as the elements before it")
		}
		switch kind {
		case fields.String:
			r.Skip()
			return nil
		case fields.Number:
			return token(r)
		case fields.Array:
			return fields.Each(token)(r)
		}
		return r.Broken("must be a string, a token or an array of tokens")
	})
	if err == nil && n == 0 {
		return r.Broken("must not be empty")
	}
	if kind != fields.Number {
		k.Head.Prompts = n
	}
	return err
}

// token is the rule of a token id.
var token = fields.Whole(0, math.MaxInt64)
