package openapi

// operation is a row of the table that connects routes with the types of their bodies.
//
// in and out list alternatives, divided by spaces: "Response events:ResponseEvent" is a document or a stream
// of events. The prefixes are
//
//	form:        a multipart form with the members of the type
//	urlencoded:  a form in the body
//	events:      server-sent events, each with the type as its data
//	socket:      messages of a WebSocket
//	bytes:       content of a media type
type operation struct {
	route string // the method and the path as docs/routes.md has them
	id    string
	// in and out are the bodies: names of types, with "form:", "urlencoded:", "events:", "socket:" or
	// "bytes:" before those that are not JSON.
	in, out  string
	params   string   // names of parameters besides those in the path
	auth     []string // names of security schemes of which one is needed; nil stands for the API key
	errors   []string // statuses of errors that only few operations have
	optional bool     // the body may be left out
	// replies are further responses by status, for an operation whose errors are no JSON.
	replies object
}

// Parameters that many operations share.
const (
	generate = "X-Dry-Run Idempotency-Key X-On-Disconnect"
	items    = "items_limit items_order after include"
	resumed  = "Last-Event-ID"
)

// moderated has the status of the image vendor's routes for a prompt or a picture that moderation refused.
var moderated = []string{"422"}

// Security schemes of the API key, and of operations without one.
var (
	keySchemes    = []string{"bearer", "xApiKey", "apiKey", "googApiKey"}
	geminiSchemes = append([]string{"queryKey"}, keySchemes...)
	noScheme      = []string{}
	clientSchemes = []string{"client", "clientInForm"}
)

var securitySchemes = object{
	"bearer":         object{"type": "http", "scheme": "bearer", "description": "An API key of the gateway"},
	"xApiKey":        object{"type": "apiKey", "in": "header", "name": "x-api-key"},
	"apiKey":         object{"type": "apiKey", "in": "header", "name": "Api-Key"},
	"googApiKey":     object{"type": "apiKey", "in": "header", "name": "x-goog-api-key"},
	"queryKey":       object{"type": "apiKey", "in": "query", "name": "key"},
	"developerToken": object{"type": "http", "scheme": "bearer", "description": "A developer token of a user"},
	"accessToken":    object{"type": "http", "scheme": "bearer", "description": "An access token of /api/oauth2/token"},
	"client":         object{"type": "http", "scheme": "basic", "description": "client_id and client_secret"},
	"clientInForm": object{"type": "apiKey", "in": "query", "name": "client_secret",
		"description": "client_id and client_secret in the form and not in the query; OpenAPI has no word for that"},
}

// operations has every operation of the public API, in the order of docs/routes.md.
var operations = []operation{
	{route: "POST /v1/chat/completions", id: "createChatCompletion", in: "ChatRequest",
		out: "ChatCompletion events:ChatChunk", params: generate},
	{route: "POST /v1/responses", id: "createResponse", in: "ResponsesRequest", out: "Response events:ResponseEvent",
		params: generate},
	{route: "GET /v1/responses", id: "connectResponses", in: "socket:ResponseCreate", out: "socket:ResponseEvent",
		params: "X-On-Disconnect", errors: []string{"426"}},
	{route: "GET /v1/responses/{id}", id: "getResponse", out: "Response events:ResponseEvent",
		params: "stream starting_after"},
	{route: "DELETE /v1/responses/{id}", id: "deleteResponse", out: "Deleted"},
	{route: "POST /v1/responses/{id}/cancel", id: "cancelResponse", out: "Response"},
	{route: "GET /v1/responses/{id}/input_items", id: "listInputItems", out: "ItemList", params: items},
	{route: "POST /v1/responses/compact", id: "compactConversation", in: "CompactionRequest", out: "Compaction",
		params: generate},
	{route: "POST /v1/responses/input_tokens", id: "countInputTokens", in: "ResponsesRequest", out: "InputTokens"},
	{route: "POST /v1/conversations", id: "createConversation", in: "ConversationRequest", out: "Conversation",
		optional: true},
	{route: "GET /v1/conversations/{id}", id: "getConversation", out: "Conversation"},
	{route: "POST /v1/conversations/{id}", id: "updateConversation", in: "ConversationMetadata", out: "Conversation"},
	{route: "DELETE /v1/conversations/{id}", id: "deleteConversation", out: "Deleted"},
	{route: "GET /v1/conversations/{id}/items", id: "listConversationItems", out: "ItemList", params: items},
	{route: "POST /v1/conversations/{id}/items", id: "addConversationItems", in: "ItemsRequest", out: "ItemList",
		params: "include"},
	{route: "GET /v1/conversations/{id}/items/{item_id}", id: "getConversationItem", out: "OutputItem",
		params: "include"},
	{route: "DELETE /v1/conversations/{id}/items/{item_id}", id: "deleteConversationItem", out: "Conversation"},
	{route: "POST /v1/messages", id: "createMessage", in: "MessagesRequest", out: "MessageReply events:MessageEvent",
		params: generate + " anthropic-version"},
	{route: "POST /v1/messages/count_tokens", id: "countMessageTokens", in: "MessagesRequest", out: "MessageCount",
		params: "anthropic-version"},
	{route: "POST /v1/completions", id: "createCompletion", in: "CompletionRequest",
		out:    "Completion events:Completion",
		params: generate},
	{route: "POST /v1beta/models/{model}:generateContent", id: "generateContent", in: "GenerateRequest",
		out: "GenerateReply", params: generate, auth: geminiSchemes},
	{route: "POST /v1beta/models/{model}:streamGenerateContent", id: "streamGenerateContent", in: "GenerateRequest",
		out: "GenerateReplies events:GenerateReply", params: generate + " alt", auth: geminiSchemes},
	{route: "POST /v1beta/models/{model}:countTokens", id: "countTokens", in: "CountRequest", out: "CountReply",
		auth: geminiSchemes},
	{route: "POST /v1/translate", id: "translate", in: "AnyRequest", out: "DryRun", params: "from to model stream"},
	{route: "POST /v1/embeddings", id: "createEmbeddings", in: "EmbeddingsRequest", out: "Embeddings",
		params: generate},
	{route: "POST /v1beta/models/{model}:embedContent", id: "embedContent", in: "EmbedContentRequest",
		out: "EmbedContentReply", params: generate, auth: geminiSchemes},
	{route: "POST /v1beta/models/{model}:batchEmbedContents", id: "batchEmbedContents", in: "BatchEmbedRequest",
		out: "BatchEmbedReply", params: generate, auth: geminiSchemes},
	{route: "GET /v1/models", id: "listModels", out: "ModelList",
		params: "anthropic-version models_limit after_id before_id"},
	{route: "GET /v1/models/{model}", id: "getModel", out: "Model", params: "anthropic-version"},
	{route: "GET /v1beta/models", id: "listGeminiModels", out: "GeminiModelList", params: "pageSize pageToken",
		auth: geminiSchemes},
	{route: "GET /v1beta/models/{model}", id: "getGeminiModel", out: "GeminiModel", auth: geminiSchemes},
	{route: "GET /v1/requests/{id}/events", id: "resumeRequest", out: "AnyReply events:AnyReply", params: resumed,
		errors: []string{"410"}},
	{route: "GET /v1/receipts/{request_id}", id: "getReceipt", out: "Receipt"},

	{route: "POST /v1/images/generations", id: "createImage", in: "ImageRequest", out: "Images events:ImageEvent",
		params: generate},
	{route: "POST /v1/images/edits", id: "editImage", in: "ImageEdit form:ImageEditForm",
		out:    "Images events:ImageEvent",
		params: generate},
	{route: "GET /v1/images/content/{name}", id: "getContent", out: "bytes:image/*", params: "expires signature Range",
		auth: noScheme, errors: []string{"416"}},
	{route: "POST /imagegen/generate", id: "imagegenGenerate", in: "ImagegenRequest", out: "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /imagegen/edit", id: "imagegenEdit", in: "form:ImagegenForm", out: "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /imagegen/remix", id: "imagegenRemix", in: "form:ImagegenForm", out: "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /imagegen/reframe", id: "imagegenReframe", in: "form:ImagegenForm", out: "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /imagegen/describe", id: "imagegenDescribe", in: "form:ImagegenForm", out: "Descriptions",
		params: generate, errors: moderated},
	{route: "POST /imagegen/upscale", id: "imagegenUpscale", in: "form:ImagegenForm", out: "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /imagegen/v1/imagegen-v3/generate", id: "imagegenV3Generate", in: "ImagegenV3 form:ImagegenV3",
		out: "ImagegenReply", params: generate, errors: moderated},
	{route: "POST /imagegen/v1/imagegen-v3/remix", id: "imagegenV3Remix", in: "form:ImagegenV3", out: "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /imagegen/v1/imagegen-v3/edit", id: "imagegenV3Edit", in: "form:ImagegenV3", out: "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /imagegen/v1/imagegen-v3/replace-background", id: "imagegenV3ReplaceBackground",
		in:  "form:ImagegenV3",
		out: "ImagegenReply", params: generate, errors: moderated},
	{route: "POST /imagegen/v1/imagegen-v3/reframe", id: "imagegenV3Reframe", in: "form:ImagegenV3",
		out:    "ImagegenReply",
		params: generate, errors: moderated},
	{route: "POST /v1/videos", id: "CreateVideo", in: "VideoRequest form:VideoRequest", out: "Video",
		params: "Idempotency-Key"},
	{route: "GET /v1/videos", id: "ListVideos", out: "VideoList", params: "videos_limit items_order after"},
	{route: "GET /v1/videos/{id}", id: "GetVideo", out: "Video", params: "wait"},
	{route: "DELETE /v1/videos/{id}", id: "DeleteVideo", out: "Deleted"},
	{route: "POST /v1/videos/{id}/remix", id: "CreateVideoRemix", in: "VideoRemix form:VideoRemix", out: "Video",
		params: "Idempotency-Key"},
	{route: "POST /v1/videos/edits", id: "CreateVideoEdit", in: "VideoEdit form:VideoEdit", out: "Video",
		params: "Idempotency-Key"},
	{route: "POST /v1/videos/extensions", id: "CreateVideoExtension", in: "VideoExtension form:VideoExtension",
		out: "Video", params: "Idempotency-Key"},
	{route: "GET /v1/videos/{id}/content", id: "GetVideoContent", out: "bytes:video/mp4 bytes:image/*",
		params: "variant Range", errors: []string{"416"}},
	{route: "GET /v1/videos/{id}/events", id: "WatchVideo", out: "events:Video", params: resumed},
	{route: "GET /v1/videos/events", id: "WatchVideos", out: "events:Video", params: resumed},
	{route: "GET /v1/videos/live", id: "ConnectVideos", in: "socket:VideoSubscribe", out: "socket:VideoMessage",
		errors: []string{"426"}},

	{route: "POST /api/oauth_apps", id: "registerApp", in: "NewApp", out: "AppCreated",
		auth: []string{"developerToken"}},
	{route: "GET /api/oauth2/authorize", id: "authorize", out: "bytes:text/html", auth: noScheme,
		params: "client_id redirect_uri response_type scope state auto_authorize code_challenge code_challenge_method",
		replies: object{
			"302": object{"description": "Back to the application with code or with error and error_description, " +
				"and with state and iss"},
			"400": object{"description": "A page that says what is wrong with the request",
				"content": object{"text/html": object{}}},
			"503": object{"description": "A page that asks the user to try again",
				"content": object{"text/html": object{}}},
		}},
	{route: "POST /api/oauth2/token", id: "createToken", in: "urlencoded:TokenForm", out: "TokenReply",
		auth: clientSchemes},
	{route: "POST /api/oauth2/revoke", id: "revokeToken", in: "urlencoded:TokenQuestion", auth: clientSchemes},
	{route: "POST /api/oauth2/introspect", id: "introspectToken", in: "urlencoded:TokenQuestion", out: "Introspection",
		auth: clientSchemes},
	{route: "GET /api/oauth2/userinfo", id: "getUserInfo", out: "UserInfo", auth: []string{"accessToken"}},
	{route: "GET /api/oauth2/topup", id: "getTopUp", out: "TopUp", auth: []string{"accessToken"}},
	{route: "GET /.well-known/oauth-authorization-server", id: "getAuthorizationServer", out: "AuthorizationServer",
		auth: noScheme},

	{route: "GET /healthz", id: "getHealth", out: "Alive", auth: noScheme},
	{route: "GET /readyz", id: "getReadiness", out: "Ready", auth: noScheme},
	{route: "GET /metrics", id: "getMetrics", out: "bytes:text/plain", auth: noScheme},
	{route: "GET /openapi.json", id: "getDescription", out: "AnyReply", auth: noScheme},
}

// parameters are those that operations name. A name before the place tells parameters with the same name
// apart. Each is a place, a name, a type in the notation of bodies.txt, and a description behind #.
var parameters = []string{
	"header X-Dry-Run \"1\" # answer with the request that the provider would get; nothing is sent",
	"header Idempotency-Key string 1..255 # a repeat with the same key gets the reply of the first request",
	`header X-On-Disconnect "cancel" | "finish" | "detach" # what becomes of the request when its client leaves`,
	"header Last-Event-ID string # the last event that arrived",
	"header anthropic-version string # any value; asks for the form of messages where a route has several",
	"header Range string # a part of the content",
	`query stream "true" | "false" # events in place of a whole reply`,
	"query starting_after integer 0.. # the sequence number after which a stream goes on",
	"items_limit query limit integer 1..100 # the length of the page",
	"videos_limit query limit integer 0..100 # the length of the page",
	"models_limit query limit integer 1..1000 # the length of the page, with anthropic-version",
	`items_order query order "asc" | "desc" # newest first unless it is asc`,
	"query after string # the id of the last element of the page before",
	"query after_id string # the id of the last model of the page before",
	"query before_id string # the id of the first model of the page after",
	"query include [string] # members of items that are left out otherwise",
	`query alt "sse" # events in place of a JSON array`,
	`query from "chat" | "responses" | "completions" | "messages" | "gemini" # the shape of the body`,
	"query to string # the shape to translate to; without it, that of the provider",
	"query model string # for from=gemini",
	"query pageSize integer # the length of the page",
	"query pageToken string # of the page before",
	"query expires string # part of the signed address",
	"query signature string # part of the signed address",
	"query wait string # how long to wait for a change, such as 30s",
	`query variant "video" | "thumbnail" | "spritesheet" # which file of the job`,
	"query client_id string # of the app",
	"query redirect_uri string # exactly as the app was registered",
	`query response_type "code" # always code`,
	"query scope string # profile and balance, divided by a space",
	"query state string # comes back with the code",
	`query auto_authorize "true" # take the sign-in for the consent, where the operator allows it`,
	"query code_challenge string # PKCE",
	`query code_challenge_method "S256" # PKCE`,
}
