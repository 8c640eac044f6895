package completions

import "stagedoor/providers/fields"

// memberNames are the names in requests of this shape, at any depth: those that the gateway reads
// and those that the vendor documents. The excepted places hold schemas, arguments and labels.
var memberNames = fields.NewNames("best_of", "echo", "frequency_penalty", "include_obfuscation", "include_usage",
	"logit_bias", "logprobs", "max_tokens", "model", "n", "presence_penalty", "prompt", "seed", "stop", "stream",
	"stream_options", "suffix", "temperature", "top_p", "user").Except("logit_bias")
