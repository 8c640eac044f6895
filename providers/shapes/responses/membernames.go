package responses

import "stagedoor/providers/fields"

// memberNames are the names in requests of this shape, at any depth: those that the gateway reads
// and those that the vendor documents. The excepted places hold schemas, arguments and labels.
var memberNames = fields.NewNames("acknowledged_safety_checks", "action", "actions", "allowed_callers",
	"allowed_domains", "allowed_tools", "always", "annotations", "approval_request_id", "approve", "arguments",
	"attributes", "authorization", "background", "button", "bytes", "call_id", "caller", "caller_id", "city", "code",
	"command", "commands", "compact_threshold", "connector_id", "container", "container_id", "content", "context",
	"context_management", "conversation", "country", "custom", "data", "defer_loading", "definition", "description",
	"detail", "diff", "display_height", "display_width", "domain", "domain_secrets", "effort", "embedding_weight",
	"encrypted_content", "end_index", "env", "environment", "error", "execution", "exit_code", "external_web_access",
	"file_data", "file_id", "file_ids", "file_url", "filename", "filters", "fingerprint", "format", "function",
	"generate_summary", "grammar", "headers", "hybrid_search", "id", "image_url", "include", "include_obfuscation",
	"index", "input", "input_audio", "input_fidelity", "input_image_mask", "input_schema", "items", "instructions",
	"key", "keys", "logprob", "logprobs", "logs", "max_num_results", "max_output_length", "max_output_tokens",
	"max_tool_calls", "media_type", "memory_limit", "message", "metadata", "mode", "model", "moderation", "name",
	"namespace", "network_policy", "never", "operation", "outcome", "output", "output_compression", "output_format",
	"output_schema", "outputs", "parallel_tool_calls", "parameters", "partial_images", "path", "pattern",
	"pending_safety_checks", "phase", "policy", "previous_response_id", "prompt", "prompt_cache_breakpoint",
	"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "quality", "queries", "query", "ranker",
	"ranking_options", "read_only", "reason", "reasoning", "refusal", "region", "require_approval", "result", "results",
	"role", "safety_identifier", "schema", "score", "score_threshold", "scroll_x", "scroll_y", "search_content_types",
	"search_context_size", "server_description", "server_label", "server_url", "service_tier", "size", "skill_id",
	"skills", "source", "sources", "start_index", "status", "stderr", "stdout", "store", "stream", "stream_options",
	"strict", "summary", "syntax", "system", "temperature", "text", "text_weight", "timeout_ms", "timezone", "title",
	"token", "tool_choice", "tool_names", "tools", "top_k", "top_logprobs", "top_p", "truncation", "ttl", "tunnel_id",
	"type", "url", "user", "user_location", "value", "variables", "vector_store_ids", "verbosity", "version",
	"working_directory", "x",
	"y").Except("input.action.env", "input.arguments", "input.results.attributes", "input.tools.annotations",
	"input.tools.input_schema", "input.tools.output_schema", "input.tools.parameters",
	"input.tools.tools.output_schema", "input.tools.tools.parameters", "metadata", "prompt.variables",
	"text.format.schema", "tools.function.parameters", "tools.headers", "tools.output_schema", "tools.parameters",
	"tools.tools.function.parameters", "tools.tools.output_schema", "tools.tools.parameters")
