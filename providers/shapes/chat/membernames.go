package chat

import "stagedoor/providers/fields"

// memberNames are the members that the shape reads in requests, at any depth.
var memberNames = fields.NewNames(
	"allowed_tools", "arguments", "audio", "cache_control", "content", "custom", "data", "definition",
	"description", "detail", "encrypted_content", "extra_content", "file", "file_data", "file_id", "filename",
	"format", "frequency_penalty", "function", "function_call", "functions", "google", "grammar", "id",
	"image_url", "include_obfuscation", "include_usage", "index", "input", "input_audio", "json_schema",
	"logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities",
	"mode", "model", "n", "name", "parallel_tool_calls", "parameters", "prediction", "presence_penalty",
	"prompt_cache_key", "prompt_cache_retention", "reasoning", "reasoning_content", "reasoning_details",
	"reasoning_effort", "refusal", "response_format", "role", "safety_identifier", "schema", "seed",
	"service_tier", "signature", "stop", "store", "stream", "stream_options", "strict", "summary", "syntax",
	"temperature", "text", "thought_signature", "tool_call_id", "tool_calls", "tool_choice", "tools", "top_k",
	"top_logprobs", "top_p", "type", "url", "user", "verbosity", "web_search_options",
)

func (shape) Names() *fields.Names { return memberNames }
