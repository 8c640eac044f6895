package completions

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// defaultMaxTokens replaces an absent max_tokens. It is the vendor's default in this shape only,
// and clients rely on short answers, so it is sent explicitly to upstreams of other shapes.
const defaultMaxTokens = 16

// decode implements shapes.Inbound. It builds a turn of the user from the prompt. Parameters that
// only this shape has are refused, because leaving them out would change the answer.
func decode(body []byte) (*dialogue.Request, error) {
	req := &dialogue.Request{Inbound: Name, Traits: traits, Body: body}
	chunks.OnlyObject(fields.View(body)).ForEach(func(name, v gjson.Result) bool {
		if v.Type != gjson.Null {
			field(req, name.String(), v)
		}
		return true
	})
	if req.MaxTokens == nil {
		req.MaxTokens = new(int64(defaultMaxTokens))
	}
	if err := refuse(req); err != nil {
		return nil, err
	}
	text, _ := dialogue.PromptText(req.Prompts[0])
	req.Turns = []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Kind: dialogue.TextPart, Text: text}}}}
	return req, nil
}

// field reads one member at the top of the body.
func field(req *dialogue.Request, name string, v gjson.Result) {
	switch name {
	case "prompt":
		req.Prompts = prompts(v)
	case "max_tokens":
		req.MaxTokens = chunks.Integer(v)
	case "best_of":
		req.BestOf = int(v.Num)
	case "logprobs":
		req.LogProbs, req.TopLogProbs = true, chunks.Integer(v)
	case "echo":
		req.Echo = v.Bool()
	case "suffix":
		req.Suffix = v.String()
	case "user":
		req.User = v.String()
	default:
		if chunks.DecodeField(req, name, v) {
			return
		}
		req.Extra = append(req.Extra, dialogue.Field{Name: name, Value: fields.Raw(v)})
	}
}

// prompts returns the raw JSON of each prompt. A list of numbers is one prompt.
func prompts(v gjson.Result) [][]byte {
	if !v.IsArray() || v.Get("0").Type == gjson.Number {
		return [][]byte{fields.Raw(v)}
	}
	var list [][]byte
	chunks.OnlyArray(v).ForEach(func(_, p gjson.Result) bool {
		list = append(list, fields.Raw(p))
		return true
	})
	return list
}

// refuse returns the error for what upstreams of other shapes cannot do, or nil.
func refuse(req *dialogue.Request) error {
	if len(req.Prompts) == 0 {
		return dialogue.Missing("prompt")
	}
	for _, p := range req.Prompts {
		switch text, ok := dialogue.PromptText(p); {
		case !ok:
			return dialogue.BadField("prompt", "unsupported_prompt",
				"the chosen model's provider takes text, not tokens")
		case text == "":
			return dialogue.Invalid("prompt", "must not be empty for the chosen model")
		}
	}
	switch {
	case req.Suffix != "":
		return dialogue.Unsupported("suffix", "is not supported by the chosen model")
	case req.BestOf > 1:
		return dialogue.Unsupported("best_of", "is not supported by the chosen model's provider")
	case req.Echo && req.LogProbs:
		return dialogue.Unsupported("logprobs", "cannot be combined with echo for the chosen model")
	}
	return nil
}
