package dialogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stagedoor/providers/memory"
)

// Refusal returns the error that refuses a request with a status of 4xx and a code ("" for null).
// Its type follows from the status. It is for refusals that only one place of http makes. A code
// that several places use, or that a package below http uses, has a constructor of its own.
func Refusal(status int, code, message string) *Error {
	e := &Error{Status: status, Type: TypeOf(status), Message: message}
	if code != "" {
		e.Code = code
	}
	return e
}

// TypeOf returns the type of an error that is known only by its status, ours or an upstream's. The
// words come from the chat and responses shapes. The messages shape has a table of its own,
// because its vendor documents other words.
func TypeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return TypeAuthentication
	case http.StatusForbidden:
		return TypePermission
	case http.StatusNotFound:
		return TypeNotFound
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return TypeTimeout
	case http.StatusRequestEntityTooLarge:
		return TypeTooLarge
	case http.StatusTooManyRequests:
		return TypeRateLimit
	case http.StatusServiceUnavailable, 529:
		return TypeOverloaded
	}
	if status >= 500 {
		return TypeAPI
	}
	return TypeInvalidRequest
}

// About sets the field that e is about and returns e. The message must name the field already.
func (e *Error) About(param string) *Error {
	e.Param = param
	return e
}

// BadRequest returns the 400 for a rule that is not about one field.
func BadRequest(code, message string) *Error {
	return Refusal(http.StatusBadRequest, code, message)
}

// BadField returns the 400 for a field that breaks a rule which has a code of its own. Rules
// without one use Invalid.
func BadField(param, code, rule string) *Error {
	return BadRequest(code, param+": "+rule).About(param)
}

// Invalid returns the 400 for a field that breaks a rule. The message names both:
// Invalid("n", "must be between 1 and 128").
func Invalid(param, rule string) *Error {
	return BadField(param, "invalid_value", rule)
}

// Missing returns the 400 for a required field that was not given.
func Missing(param string) *Error {
	return BadField(param, "missing_required_parameter", "is required")
}

// Unsupported returns the 400 for a field that the provider of the chosen model does not
// have, where leaving it out would change the answer.
func Unsupported(param, why string) *Error {
	return BadField(param, "unsupported_parameter", why)
}

// UnsupportedContent returns the 400 for a message, or a part of it, that the provider of the chosen model cannot read.
// It is about Conversation.
func UnsupportedContent(why string) *Error { return Unsupported(Conversation, why) }

// UnknownPart returns the 400 for a content part of a type that the gateway does not know. It is returned only where
// the part would have to be translated, because an upstream of the client's shape may know it.
func UnknownPart(param string) *Error {
	return BadField(param, unknownPart, "is a content part that only a provider of this shape can read")
}

const unknownPart = "unknown_content_part"

// IsUnknownPart reports whether e is an error of UnknownPart.
func (e *Error) IsUnknownPart() bool { return e != nil && e.Code == unknownPart }

// MisspelledName returns the 400 for a member or form field whose name differs from name only in
// the case of its letters. path is where it is, as the client wrote it.
func MisspelledName(path, name string) *Error {
	return BadField(path, "misspelled_name", "must be written "+strconv.Quote(name))
}

// RepeatedName returns the 400 for a member whose name occurs twice in its object. path is where it is, as the client
// wrote it.
func RepeatedName(path string) *Error {
	return BadField(path, "duplicate_key", "must not occur twice in its object")
}

// MaxName is the most characters of a name that is kept in the ledger, in metrics or in logs.
const MaxName = 256

// CheckModel returns the error for a model name that is too long, else nil. param is the
// place of the name in the request.
func CheckModel(param, model string) *Error {
	if len(model) > MaxName && utf8.RuneCountInString(model) > MaxName {
		return Invalid(param, fmt.Sprintf("must not be longer than %d characters", MaxName))
	}
	return nil
}

// ShortName cuts a name that an upstream sent to MaxName bytes.
func ShortName(name string) string {
	if len(name) <= MaxName {
		return name
	}
	return strings.ToValidUTF8(name[:MaxName], "")
}

// InvalidJSON returns the 400 for a body that is not JSON as the gateway takes it:
// InvalidJSON("must be one JSON object").
func InvalidJSON(rule string) *Error {
	return BadRequest("invalid_json", "the request body "+rule)
}

// InvalidBody returns the 400 for a body that broke off.
func InvalidBody(cause error) *Error {
	e := BadRequest("invalid_body", "the request body could not be read to its end")
	e.Cause = cause
	return e
}

// BodyTimeout returns the 408 for a body that came too slowly.
func BodyTimeout(cause error) *Error {
	e := Refusal(http.StatusRequestTimeout, "request_timeout", "the request body did not arrive in time")
	e.Type = TypeInvalidRequest // the client was slow, and no upstream
	e.Cause = cause
	return e
}

// RequestTooLarge returns the 413 for a body of more than limit bytes.
func RequestTooLarge(limit int64) *Error {
	return Refusal(http.StatusRequestEntityTooLarge, "request_too_large",
		"the request body is larger than "+mebibytes(limit))
}

// FileTooLarge returns the 413 for a file of more than limit bytes in the field param.
func FileTooLarge(param string, limit int64) *Error {
	return fileTooLarge(param, "must not be larger than "+mebibytes(limit))
}

// FilesTooLarge returns the 413 for files that together have more than limit bytes.
func FilesTooLarge(param string, limit int64) *Error {
	return fileTooLarge(param, "all files together must not be larger than "+mebibytes(limit))
}

// fileTooLarge returns the error for a file above a limit.
func fileTooLarge(param, rule string) *Error {
	return Refusal(http.StatusRequestEntityTooLarge, "file_too_large", param+": "+rule).About(param)
}

func mebibytes(limit int64) string { return strconv.FormatInt(limit>>20, 10) + " MiB" }

// UnsupportedMedia returns the 415 for a body of a type or encoding that is not accepted.
func UnsupportedMedia(message string) *Error {
	return Refusal(http.StatusUnsupportedMediaType, "unsupported_media_type", message)
}

// NotFound returns the 404 for something that param names and that does not exist, or not
// for this client: NotFound("response_id", "stored response with this id").
func NotFound(param, thing string) *Error {
	return Refusal(http.StatusNotFound, "not_found", "there is no "+thing).About(param)
}

// NotStored returns the 404 for a stored object to which a field refers and that does not exist.
func NotStored(param, code, rule string) *Error {
	return Refusal(http.StatusNotFound, code, param+": "+rule).About(param)
}

// ConversationLocked returns the 400 for a conversation that a response is using, with the vendor's code and text. It
// asks SDKs to retry, because they do not retry a 400 by themselves.
func ConversationLocked() *Error {
	e := Refusal(http.StatusBadRequest, "conversation_locked", "Another process is currently operating on this "+
		"conversation. Please retry in a few seconds.").About("conversation")
	e.RetryAfter, e.Retry = 2*time.Second, true
	return e
}

// VideoNotFound returns the 404 for a video job that does not exist or belongs to another
// client. id is cut, because it comes from the client.
func VideoNotFound(id string) *Error {
	const most = 64
	e := NotFound("video_id", "video "+strconv.QuoteToASCII(strings.ToValidUTF8(id[:min(len(id), most)], "")))
	e.Code = "video_not_found"
	return e
}

// VideoExpired returns the 404 for a finished video whose content is no longer kept.
func VideoExpired() *Error {
	return Refusal(http.StatusNotFound, "video_expired", "the content of the video has expired")
}

// FailedJob returns the 502 for a video job that failed after it was accepted, with the job's own
// code and message.
func FailedJob(code, message string) *Error {
	e := upstreamFault(code, message, nil)
	e.Foreign = true
	return e
}

// SubmissionUnknown returns the 502 for a video job whose submission broke off, so that the
// gateway does not know whether the provider makes the video. A retry could make it twice.
func SubmissionUnknown(code string, cause error) *Error {
	e := upstreamFault(code, "the connection to the upstream provider broke while the video was submitted: "+
		"it is unknown whether the video is being made", cause)
	e.NoRetry = true
	return e
}

// IdempotencyKeyReused returns the 409 for a key that a client cannot use again. rule says why:
// IdempotencyKeyReused("was used for another request").
func IdempotencyKeyReused(rule string) *Error {
	e := Refusal(http.StatusConflict, "idempotency_key_reused", "Idempotency-Key: "+rule).About("Idempotency-Key")
	e.NoRetry = true
	return e
}

// InsufficientQuota returns the 429 for a balance or budget that does not cover a request.
func InsufficientQuota(message string, cause error) *Error {
	return &Error{Status: http.StatusTooManyRequests, Type: TypeQuota, Code: "insufficient_quota", NoRetry: true,
		Cause: cause, Message: message}
}

// RateLimited returns the 429 for a limit that time lifts. limited says what has reached its
// limit: RateLimited("the API key is at its limit of requests per minute", wait, nil).
func RateLimited(limited string, retryAfter time.Duration, cause error) *Error {
	return &Error{Status: http.StatusTooManyRequests, Type: TypeRateLimit, Code: "rate_limit_exceeded", Cause: cause,
		RetryAfter: max(retryAfter, time.Second), Message: limited + ", try again later"}
}

// TooManyFailures returns the 429 for a client that guesses keys or tokens. It asks SDKs not to
// retry, because a retry would be refused too.
func TooManyFailures(code, message string, retryAfter time.Duration) *Error {
	e := Refusal(http.StatusTooManyRequests, code, message)
	e.RetryAfter, e.NoRetry = max(retryAfter, time.Second), true
	return e
}

// ModerationBlocked returns the 400 for a request that a provider's moderation refused.
// details is an object for the client, or nil.
func ModerationBlocked(details json.RawMessage) *Error {
	return &Error{Status: http.StatusBadRequest, Type: TypeModeration, Code: "moderation_blocked",
		ModerationDetails: details, Message: "the request was rejected by the provider's safety system"}
}

// ImageWithheld returns the error of a request whose image was made and then found unsafe.
func ImageWithheld() *Error {
	return ModerationBlocked(json.RawMessage(`{"moderation_stage":"output","categories":[]}`))
}

// StatusClientClosed is the status in logs of a request whose client left. No client sees it.
const StatusClientClosed = 499

// ClientClosed returns the error for logs of a request whose client left.
func ClientClosed(cause error) *Error {
	return &Error{Status: StatusClientClosed, Type: TypeAPI, Code: "client_closed_request", Cause: cause,
		Message: "the client closed the request"}
}

// Stopped returns the error for logs of a reply that the gateway ended early on purpose.
func Stopped() *Error {
	return &Error{Status: StatusClientClosed, Type: TypeAPI, Code: "stopped", Message: "the reply was ended early"}
}

// Internal returns the 500 for a defect of the gateway. cause goes to the log only.
func Internal(cause error) *Error {
	return internal("internal_error", "the gateway met an internal error", cause)
}

// ServerError returns the 500 of a background response that the gateway could not finish. Its code
// is the one that the vendor's clients know for a failed response.
func ServerError(message string, cause error) *Error {
	return internal("server_error", message, cause)
}

// internal returns the error for a fault of the gateway itself.
func internal(code, message string, cause error) *Error {
	return &Error{Status: http.StatusInternalServerError, Type: TypeAPI, Code: code, Cause: cause, Message: message}
}

// ResponseTooLarge returns the 502 of a background response that is larger than may be stored.
func ResponseTooLarge() *Error {
	return upstreamFault("server_error", "the response grew larger than the gateway can keep", nil)
}

// BadUpstream returns the 502 for a reply that is not of the upstream's shape. detail goes to
// the log only.
func BadUpstream(detail string) *Error { return InvalidReply(errors.New(detail)) }

// InvalidReply returns the 502 for a reply that is not of the upstream's shape. cause goes to
// the log only.
func InvalidReply(cause error) *Error {
	return upstreamFault("upstream_invalid_response", "the upstream provider sent an invalid response", cause)
}

// UpstreamReset returns the 502 for a connection that broke.
func UpstreamReset(cause error) *Error {
	return upstreamFault("upstream_reset", "the connection to the upstream provider broke", cause)
}

// UpstreamUnreachable returns the 502 for a connection that could not be made, or the 504 if that
// took too long.
func UpstreamUnreachable(cause error, timedOut bool) *Error {
	e := upstreamFault("upstream_unreachable", "the upstream provider cannot be reached", cause)
	if timedOut {
		e.Status, e.Type = http.StatusGatewayTimeout, TypeTimeout
	}
	return e
}

// UpstreamAuth returns the 502 for a provider that refused the gateway's key. The client cannot
// change that, so it does not get the provider's own status, and a retry does not help.
func UpstreamAuth(cause error) *Error {
	e := upstreamFault("upstream_auth_error", "the upstream provider refused the gateway's credentials", cause)
	e.NoRetry = true
	return e
}

// upstreamFault returns the error for a reply of an upstream that cannot be used.
func upstreamFault(code, message string, cause error) *Error {
	return &Error{Status: http.StatusBadGateway, Type: TypeAPI, Code: code, Message: message, Cause: cause}
}

// Reported returns an error as an upstream reported it. errorType and code may be "" for null.
// Decoders of shapes use it and set further members themselves; upstream.Refused then removes what
// a client may not see. The simulator uses it for the errors of the vendors that it plays.
func Reported(status int, errorType, code, message string) *Error {
	e := &Error{Status: status, Type: errorType, Message: message}
	if code != "" {
		e.Code = code
	}
	return e
}

// Incomplete returns the 502 for a reply that ended before the upstream said that it was
// finished.
func Incomplete() *Error {
	return upstreamFault("upstream_incomplete", "the upstream provider ended the reply before it was finished", nil)
}

// UpstreamTimeout returns the 504 for an upstream that took too long.
func UpstreamTimeout(cause error) *Error {
	return &Error{Status: http.StatusGatewayTimeout, Type: TypeTimeout, Code: "upstream_timeout", Cause: cause,
		Message: "the upstream provider took too long"}
}

// NoRoute returns the 503 for a model whose providers are all unavailable.
func NoRoute(retryAfter time.Duration, cause error) *Error {
	return NoProvider("no provider is available for this model at the moment, try again later", retryAfter, cause)
}

// NoProvider returns the 503 for the one provider that could serve a request and is unavailable.
func NoProvider(message string, retryAfter time.Duration, cause error) *Error {
	return Unavailable("no_route", message, max(retryAfter, time.Second), cause)
}

// Unavailable returns the 503 for a part of the gateway that does not work at the moment.
func Unavailable(code, message string, retryAfter time.Duration, cause error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: TypeAPI, Code: code, Cause: cause,
		RetryAfter: retryAfter, Message: message}
}

// CancelledByOperator returns the 503 for a request that an administrator ended. Clients are asked
// not to repeat it by themselves.
func CancelledByOperator() *Error {
	e := Unavailable("cancelled_by_operator", "the request was ended by an operator of the gateway", 0, nil)
	e.NoRetry = true
	return e
}

// StorageUnavailable returns the 503 for a change that the journal does not take at the
// moment. action is a verb with its object: StorageUnavailable("store videos", err).
func StorageUnavailable(action string, cause error) *Error {
	return Unavailable("storage_unavailable", "the gateway cannot "+action+" at the moment, try again later",
		5*time.Second, cause)
}

// ShuttingDown returns the 503 for a request that arrived, or was cut off, while the gateway
// was draining.
func ShuttingDown(cause error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: TypeOverloaded, Code: "shutting_down", Cause: cause,
		RetryAfter: time.Second, Message: "the gateway is shutting down, try again"}
}

// StandingBy returns the 503 of a gateway that waits for another one to end.
func StandingBy() *Error {
	return Unavailable("standby", "the gateway is a stand-by and does not serve yet; another one does",
		time.Second, nil)
}

// Stale returns the 503 of a gateway that cannot reach the database which another gateway may have changed since.
func Stale() *Error {
	return Unavailable("storage_unavailable",
		"the gateway cannot reach its database, and another one may have taken over: try again", time.Second, nil)
}

// Clients that are refused together get different times, so that they do not return together.
const (
	overloadWait   = time.Second
	overloadSpread = 4 * time.Second
)

// PoolRefused returns the error for a request that a bounded pool refuses: 429 with a code that
// names the pool if the share of the request's owner is used up, else 503. units says what the
// pool is of, such as "request bodies".
func PoolRefused(pool, units string, ofShare bool) *Error {
	e := &Error{
		Status:     http.StatusServiceUnavailable,
		Type:       TypeOverloaded,
		Code:       "overloaded",
		Message:    "the gateway has no room for more " + units + ", try again",
		RetryAfter: overloadWait + rand.N(overloadSpread),
	}
	if ofShare {
		e.Status, e.Type, e.Code = http.StatusTooManyRequests, TypeRateLimit, pool+"_share_exceeded"
		e.Message = "the user or key has as much of the gateway's " + units + " as it may have at a time: " +
			"try again when some of it has ended"
	}
	return e
}

// StorageQuota returns the 403 of an owner that keeps as much as it may. It is no 429, because SDKs would retry that
// although waiting does not help.
func StorageQuota(message string) *Error {
	e := Refusal(http.StatusForbidden, "storage_quota_exceeded", message)
	e.NoRetry = true
	return e
}

// NoMemory returns the error for a request for which a memory.Claim did not grow: 413 if it can
// never fit, 429 if the owner's share is used up, else 503. err is the error of the claim.
func NoMemory(err error) *Error {
	if errors.Is(err, memory.ErrTooLarge) {
		e := Refusal(http.StatusRequestEntityTooLarge, "request_too_large",
			"the request takes more memory than one user or key may have at a time: send a smaller one")
		e.Cause = err
		return e
	}
	var refusal memory.Refusal
	e := PoolRefused("memory", "memory for requests", errors.As(err, &refusal) && refusal.OfShare())
	e.Cause = err
	return e
}
