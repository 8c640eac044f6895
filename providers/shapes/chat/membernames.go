package chat

import "stagedoor/providers/fields"

// memberNames are the names in requests of this shape, at any depth: those that the gateway reads
// and those that the vendor documents. The excepted places hold schemas, arguments and labels.
var memberNames = fields.NewNames("allowed_tools", "approximate", "arguments", "audio", "cache_control", "city",
	"content", "country", "custom", "data", "definition", "description", "detail", "encrypted_content", "extra_content",
	"file", "file_data", "file_id", "filename", "format", "frequency_penalty", "function", "function_call", "functions",
	"google", "grammar", "id", "image_url", "images", "include_obfuscation", "include_usage", "index", "input",
	"input_audio", "json_schema", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages",
	"metadata", "modalities", "mode", "model", "moderation", "n", "name", "output", "parallel_tool_calls", "parameters",
	"policy", "prediction", "presence_penalty", "prompt_cache_breakpoint", "prompt_cache_key", "prompt_cache_options",
	"prompt_cache_retention", "reasoning", "reasoning_content", "reasoning_details", "reasoning_effort", "refusal",
	"region", "response_format", "role", "safety_identifier", "schema", "search_context_size", "seed", "service_tier",
	"signature", "stop", "store", "stream", "stream_options", "strict", "summary", "syntax", "temperature", "text",
	"thought_signature", "timezone", "tool_call_id", "tool_calls", "tool_choice", "tools", "top_k", "top_logprobs",
	"top_p", "ttl", "type", "url", "user", "user_location", "verbosity", "voice",
	"web_search_options").Except("functions.parameters", "logit_bias", "metadata", "response_format.json_schema.schema",
	"tools.function.parameters")
