package messages

import "stagedoor/providers/fields"

// memberNames are the members that the shape reads in requests, at any depth.
var memberNames = fields.NewNames(
	"allowed_domains", "blocked_domains", "budget_tokens", "cache_control", "citations", "compaction",
	"container", "content", "context", "context_management", "data", "description", "disable_parallel_tool_use",
	"display", "effort", "enabled", "file_id", "format", "id", "inference_geo", "input", "input_schema",
	"is_error", "max_tokens", "max_uses", "mcp_servers", "media_type", "messages", "metadata", "model", "name",
	"output_config", "output_format", "role", "schema", "service_tier", "signature", "source", "speed",
	"stop_sequences", "stream", "strict", "system", "temperature", "text", "thinking", "title", "tool_choice",
	"tool_use_id", "tools", "top_k", "top_p", "ttl", "type", "url", "user_id", "user_location",
).WithLongList("messages") // a request may have 100,000

func (shape) Names() *fields.Names { return memberNames }
