package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Scope is the name of the instrumentation of tracers and meters.
const Scope = "stagedoor"

// SchemaURL is the version of the conventions that the names follow. It is the last one in which a package has those of
// generative AI. They have moved to a repository without a release.
const SchemaURL = semconv.SchemaURL

// Names of the spans below a request's. CallName returns the name of a call.
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
	// EventFirstToken is on a call when the first piece of the reply was read.
	EventFirstToken = "gen_ai.first_token"
	// EventRetry is on the request before a further attempt.
	EventRetry = "stagedoor.retry"
	// EventHedge is on the request when a further target starts because the first one is slow.
	EventHedge = "stagedoor.hedge"
	// EventSkipped is on the request for each target that cannot serve it.
	EventSkipped = "stagedoor.target_skipped"
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
	// RequestID has the value of X-Request-Id.
	RequestID = attribute.Key("stagedoor.request.id")
	// KeyID has the id of a key, which is not secret.
	KeyID = attribute.Key("stagedoor.key.id")
	// Shape is the client's shape, and UpstreamShape the provider's.
	Shape         = attribute.Key("stagedoor.shape")
	UpstreamShape = attribute.Key("stagedoor.upstream.shape")
	// Provider is a provider's name in the configuration.
	Provider = attribute.Key("stagedoor.provider")
	// Attempt counts the attempts of a request from 1.
	Attempt  = attribute.Key("stagedoor.attempt")
	Attempts = attribute.Key("stagedoor.attempts")
	// Untouched is set if the reply passed as its upstream wrote it.
	Untouched = attribute.Key("stagedoor.untouched")
	Degraded  = attribute.Key("stagedoor.degraded")
	Losses    = attribute.Key("stagedoor.losses")
	// QueueWait is in seconds, QueuePosition from 1.
	QueueWait     = attribute.Key("stagedoor.queue.wait")
	QueuePosition = attribute.Key("stagedoor.queue.position")
	// Cost is the cost of a call in dollars, or on a settlement the amount charged.
	Cost = attribute.Key("stagedoor.cost.usd")
	// Held is the amount of a hold in dollars.
	Held = attribute.Key("stagedoor.ledger.held.usd")
	// EndReason is the reason for which a request was charged as it was.
	EndReason = attribute.Key("stagedoor.end_reason")
	// FailureClass is the class of an attempt's failure.
	FailureClass = attribute.Key("stagedoor.failure.class")
	// Loss and Reason are the labels of losses and degradations in metrics.
	Loss   = attribute.Key("stagedoor.loss")
	Reason = attribute.Key("stagedoor.reason")
	// RetryWait is in seconds.
	RetryWait = attribute.Key("stagedoor.retry.wait")
	// JobID and JobStatus describe a video job.
	JobID     = attribute.Key("stagedoor.job.id")
	JobStatus = attribute.Key("stagedoor.job.status")
)
