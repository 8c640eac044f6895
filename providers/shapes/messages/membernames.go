package messages

import "stagedoor/providers/fields"

// memberNames are the names in requests of this shape, at any depth: those that the gateway reads
// and those that the vendor documents. The excepted places hold schemas, arguments and labels.
// A request may have 100,000 messages.
var memberNames = fields.NewNames(
	"allowed_callers", "allowed_domains", "allowed_tools", "authorization_token", "blocked_domains",
	"budget_tokens", "cache_control", "caching", "caller", "citations", "cited_text", "city", "clear_at_least",
	"clear_tool_inputs", "compaction", "configs", "container", "content", "context", "context_management",
	"country", "data", "default_config", "defer_loading", "description", "disable_parallel_tool_use", "display",
	"display_height_px", "display_number", "display_width_px", "document_index", "document_title",
	"eager_input_streaming", "edits", "effort", "enable_zoom", "enabled", "encrypted_content", "encrypted_index",
	"encrypted_stdout", "end_block_index", "end_char_index", "end_page_number", "error_code", "error_message",
	"exclude_tools", "file_id", "file_type", "format", "id", "inference_geo", "input", "input_examples",
	"input_schema", "instructions", "is_error", "is_file_update", "keep", "lines", "max_characters",
	"max_content_tokens", "max_tokens", "max_uses", "mcp_server_name", "mcp_servers", "media_type", "messages",
	"metadata", "model", "name", "new_lines", "new_start", "num_lines", "old_lines", "old_start", "output_config",
	"output_format", "page_age", "pause_after_compaction", "region", "remaining", "retrieved_at", "return_code",
	"role", "schema", "search_result_index", "server_name", "service_tier", "signature", "skill_id", "skills",
	"source", "speed", "start_block_index", "start_char_index", "start_line", "start_page_number", "stderr",
	"stdout", "stop_sequences", "stream", "strict", "system", "task_budget", "temperature", "text", "thinking",
	"timezone", "title", "tool_choice", "tool_configuration", "tool_id", "tool_name", "tool_references",
	"tool_use_id", "tools", "top_k", "top_p", "total", "total_lines", "trigger", "ttl", "type", "url", "use_cache",
	"user_id", "user_location", "user_profile_id", "value", "version",
).WithLongList("messages").Except("messages.content.input", "output_config.format.schema", "output_format.schema",
	"tools.configs", "tools.input_examples", "tools.input_schema")
