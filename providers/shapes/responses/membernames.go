package responses

import "stagedoor/providers/fields"

// memberNames are the members that the shape reads in requests, at any depth.
var memberNames = fields.NewNames(
	"allowed_domains", "allowed_tools", "annotations", "arguments", "background", "call_id", "content",
	"context_management", "conversation", "custom", "data", "definition", "description", "detail", "effort",
	"encrypted_content", "file_data", "file_id", "file_url", "filename", "filters", "format", "function",
	"generate_summary", "grammar", "id", "image_url", "include", "include_obfuscation", "input", "input_audio",
	"instructions", "max_output_tokens", "max_tool_calls", "metadata", "mode", "model", "name", "namespace",
	"output", "parallel_tool_calls", "parameters", "previous_response_id", "prompt", "prompt_cache_key",
	"prompt_cache_retention", "reasoning", "refusal", "role", "safety_identifier", "schema",
	"search_context_size", "service_tier", "status", "store", "stream", "stream_options", "strict", "summary",
	"syntax", "system", "temperature", "text", "tool_choice", "tools", "top_k", "top_logprobs", "top_p",
	"truncation", "type", "user", "user_location", "verbosity",
)

func (shape) Names() *fields.Names { return memberNames }
