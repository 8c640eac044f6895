package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Scope is the name of the instrumentation, of tracers and meters alike.
const Scope = "stagedoor"

// SchemaURL is the version of the conventions that the names follow. It is the
// last one with those of generative AI in a package; they have a repository of
// their own since, without a release.
const SchemaURL = semconv.SchemaURL

// Names of the spans below a request's. A call of an upstream is called by its
// operation and model: see CallName.
const (
	SpanAuth       = "auth"
	SpanHold       = "ledger.hold"
	SpanQueue      = "queue"
	SpanTranslate  = "translate"
	SpanSettle     = "ledger.settle"
	SpanBackground = "background"
)

// Names of the events on spans.
const (
	// EventFirstToken, on a call: the first piece of answer was read.
	EventFirstToken = "gen_ai.first_token"
	// EventRetry, on the request: another attempt follows.
	EventRetry = "stagedoor.retry"
)

// Operations of upstreams that make media. Those of text are in the descriptors of the shapes.
const (
	OperationImage = "image_generation"
	OperationVideo = "video_generation"
)

// Attributes of the conventions.
const (
	Operation        = semconv.GenAIOperationNameKey
	ProviderKind     = semconv.GenAIProviderNameKey
	RequestModel     = semconv.GenAIRequestModelKey
	RequestStream    = semconv.GenAIRequestStreamKey
	RequestMaxTokens = semconv.GenAIRequestMaxTokensKey
	RequestChoices   = semconv.GenAIRequestChoiceCountKey
	ResponseID       = semconv.GenAIResponseIDKey
	ResponseModel    = semconv.GenAIResponseModelKey
	FinishReasons    = semconv.GenAIResponseFinishReasonsKey
	FirstChunk       = semconv.GenAIResponseTimeToFirstChunkKey
	InputTokens      = semconv.GenAIUsageInputTokensKey
	OutputTokens     = semconv.GenAIUsageOutputTokensKey
	CacheReadTokens  = semconv.GenAIUsageCacheReadInputTokensKey
	CacheWriteTokens = semconv.GenAIUsageCacheCreationInputTokensKey
	ReasoningTokens  = semconv.GenAIUsageReasoningOutputTokensKey
	OutputType       = semconv.GenAIOutputTypeKey
	InputMessages    = semconv.GenAIInputMessagesKey
	OutputMessages   = semconv.GenAIOutputMessagesKey
	TokenType        = semconv.GenAITokenTypeKey
	ErrorType        = semconv.ErrorTypeKey
	HTTPMethod       = semconv.HTTPRequestMethodKey
	HTTPRoute        = semconv.HTTPRouteKey
	HTTPStatus       = semconv.HTTPResponseStatusCodeKey
	URLPath          = semconv.URLPathKey
	URLScheme        = semconv.URLSchemeKey
	ProtocolVersion  = semconv.NetworkProtocolVersionKey
)

// The gateway's own attributes.
const (
	// RequestID is what X-Request-Id says.
	RequestID = attribute.Key("stagedoor.request.id")
	// KeyID names a key, and is not the key.
	KeyID = attribute.Key("stagedoor.key.id")
	// Shape is the client's, UpstreamShape the provider's.
	Shape         = attribute.Key("stagedoor.shape")
	UpstreamShape = attribute.Key("stagedoor.upstream.shape")
	// Provider is a provider's name in the configuration.
	Provider = attribute.Key("stagedoor.provider")
	// Attempt counts the attempts of a request from 1.
	Attempt  = attribute.Key("stagedoor.attempt")
	Attempts = attribute.Key("stagedoor.attempts")
	// Untouched: the reply passed as its upstream wrote it.
	Untouched = attribute.Key("stagedoor.untouched")
	Degraded  = attribute.Key("stagedoor.degraded")
	Losses    = attribute.Key("stagedoor.losses")
	// QueueWait is in seconds, QueuePosition from 1.
	QueueWait     = attribute.Key("stagedoor.queue.wait")
	QueuePosition = attribute.Key("stagedoor.queue.position")
	// Cost is what a call costs, in dollars; on a settlement, what was charged.
	Cost = attribute.Key("stagedoor.cost.usd")
	// Held is in dollars, too.
	Held = attribute.Key("stagedoor.ledger.held.usd")
	// EndReason is why a request was charged as it was.
	EndReason = attribute.Key("stagedoor.end_reason")
	// FailureClass is what kind of failure an attempt met.
	FailureClass = attribute.Key("stagedoor.failure.class")
	// Loss and Reason tell losses and degradations apart in metrics.
	Loss   = attribute.Key("stagedoor.loss")
	Reason = attribute.Key("stagedoor.reason")
	// RetryWait is in seconds.
	RetryWait = attribute.Key("stagedoor.retry.wait")
	// JobID and JobStatus are a video job's.
	JobID     = attribute.Key("stagedoor.job.id")
	JobStatus = attribute.Key("stagedoor.job.status")
)
