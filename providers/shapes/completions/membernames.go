package completions

import "stagedoor/providers/fields"

// memberNames are the members that the shape reads in requests, at any depth.
var memberNames = fields.NewNames(
	"best_of", "echo", "frequency_penalty", "include_obfuscation", "include_usage", "logit_bias", "logprobs",
	"max_tokens", "model", "n", "presence_penalty", "prompt", "seed", "stop", "stream", "stream_options",
	"suffix", "temperature", "top_p", "user",
)

func (shape) Names() *fields.Names { return memberNames }
