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

// Invalid returns the 400 for a field that breaks a rule. The message names both:
// Invalid("n", "must be between 1 and 128").
func Invalid(param, rule string) *Error {
	return badField(param, "invalid_value", rule)
}

// Missing returns the 400 for a required field that was not given.
func Missing(param string) *Error {
	return badField(param, "missing_required_parameter", "is required")
}

// Unsupported returns the 400 for a field that the provider of the chosen model does not
// have, where leaving it out would change the answer.
func Unsupported(param, why string) *Error {
	return badField(param, "unsupported_parameter", why)
}

// MisspelledName returns the 400 for a member or form field whose name differs from name only in
// the case of its letters. path is where it is, as the client wrote it.
func MisspelledName(path, name string) *Error {
	return badField(path, "misspelled_name", "must be written "+strconv.Quote(name))
}

func badField(param, code, rule string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: TypeInvalidRequest, Param: param, Code: code,
		Message: param + ": " + rule}
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
	return badBody("invalid_json", "the request body "+rule, nil)
}

// InvalidBody returns the 400 for a body that broke off.
func InvalidBody(cause error) *Error {
	return badBody("invalid_body", "the request body could not be read to its end", cause)
}

func badBody(code, message string, cause error) *Error {
	return &Error{Status: http.StatusBadRequest, Type: TypeInvalidRequest, Code: code, Message: message, Cause: cause}
}

// BodyTimeout returns the 408 for a body that came too slowly.
func BodyTimeout(cause error) *Error {
	return &Error{Status: http.StatusRequestTimeout, Type: TypeInvalidRequest, Code: "request_timeout", Cause: cause,
		Message: "the request body did not arrive in time"}
}

// RequestTooLarge returns the 413 for a body of more than limit bytes.
func RequestTooLarge(limit int64) *Error {
	return &Error{Status: http.StatusRequestEntityTooLarge, Type: TypeTooLarge, Code: "request_too_large",
		Message: "the request body is larger than " + mebibytes(limit)}
}

// FileTooLarge returns the 413 for a file of more than limit bytes in the field param.
func FileTooLarge(param string, limit int64) *Error {
	return fileTooLarge(param, "must not be larger than "+mebibytes(limit))
}

// FilesTooLarge returns the 413 for files that together have more than limit bytes.
func FilesTooLarge(param string, limit int64) *Error {
	return fileTooLarge(param, "all files together must not be larger than "+mebibytes(limit))
}

func fileTooLarge(param, rule string) *Error {
	return &Error{Status: http.StatusRequestEntityTooLarge, Type: TypeTooLarge, Param: param, Code: "file_too_large",
		Message: param + ": " + rule}
}

func mebibytes(limit int64) string { return strconv.FormatInt(limit>>20, 10) + " MiB" }

// UnsupportedMediaType returns the 415 for a body of another type:
// UnsupportedMediaType("application/json").
func UnsupportedMediaType(want string) *Error {
	return &Error{Status: http.StatusUnsupportedMediaType, Type: TypeInvalidRequest, Code: "unsupported_media_type",
		Message: "the request body must be " + want}
}

// NotFound returns the 404 for something that param names and that does not exist, or not
// for this client: NotFound("response_id", "stored response with this id").
func NotFound(param, thing string) *Error {
	return &Error{Status: http.StatusNotFound, Type: TypeNotFound, Param: param, Code: "not_found",
		Message: "there is no " + thing}
}

// VideoNotFound returns the 404 for a video job that does not exist or belongs to another
// client. id is cut, because it comes from the client.
func VideoNotFound(id string) *Error {
	const most = 64
	e := NotFound("video_id", "video "+strconv.QuoteToASCII(id[:min(len(id), most)]))
	e.Code = "video_not_found"
	return e
}

// IdempotencyKeyReused returns the 409 for a key that a client used for another request.
func IdempotencyKeyReused() *Error {
	return &Error{Status: http.StatusConflict, Type: TypeInvalidRequest, Param: "Idempotency-Key",
		Code: "idempotency_key_reused", NoRetry: true, Message: "Idempotency-Key: was used for another request"}
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

// ModerationBlocked returns the 400 for a request that a provider's moderation refused.
// details is an object for the client, or nil.
func ModerationBlocked(details json.RawMessage) *Error {
	return &Error{Status: http.StatusBadRequest, Type: TypeModeration, Code: "moderation_blocked",
		ModerationDetails: details, Message: "the request was rejected by the provider's safety system"}
}

// StatusClientClosed is the status in logs of a request whose client left. No client sees it.
const StatusClientClosed = 499

// ClientClosed returns the error for logs of a request whose client left.
func ClientClosed(cause error) *Error {
	return &Error{Status: StatusClientClosed, Type: TypeAPI, Code: "client_closed_request", Cause: cause,
		Message: "the client closed the request"}
}

// Internal returns the 500 for a defect of the gateway. cause goes to the log only.
func Internal(cause error) *Error {
	return &Error{Status: http.StatusInternalServerError, Type: TypeAPI, Code: "internal_error", Cause: cause,
		Message: "the gateway met an internal error"}
}

// BadUpstream returns the 502 for a reply that is not of the upstream's shape. detail goes to
// the log only.
func BadUpstream(detail string) *Error {
	return &Error{Status: http.StatusBadGateway, Type: TypeAPI, Code: "upstream_invalid_response",
		Message: "the upstream provider sent an invalid response", Cause: errors.New(detail)}
}

// Incomplete returns the 502 for a reply that ended before the upstream said that it was
// finished.
func Incomplete() *Error {
	return &Error{Status: http.StatusBadGateway, Type: TypeAPI, Code: "upstream_incomplete",
		Message: "the upstream provider ended the reply before it was finished"}
}

// UpstreamTimeout returns the 504 for an upstream that took too long.
func UpstreamTimeout(cause error) *Error {
	return &Error{Status: http.StatusGatewayTimeout, Type: TypeTimeout, Code: "upstream_timeout", Cause: cause,
		Message: "the upstream provider took too long"}
}

// NoRoute returns the 503 for a model whose providers are all unavailable.
func NoRoute(retryAfter time.Duration, cause error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: TypeAPI, Code: "no_route", Cause: cause,
		RetryAfter: max(retryAfter, time.Second),
		Message:    "no provider is available for this model at the moment, try again later"}
}

// StorageUnavailable returns the 503 for a change that the journal does not take at the
// moment. action is a verb with its object: StorageUnavailable("store videos", err).
func StorageUnavailable(action string, cause error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: TypeAPI, Code: "storage_unavailable", Cause: cause,
		RetryAfter: 5 * time.Second, Message: "the gateway cannot " + action + " at the moment, try again later"}
}

// ShuttingDown returns the 503 for a request that arrived, or was cut off, while the gateway
// was draining.
func ShuttingDown(cause error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: TypeOverloaded, Code: "shutting_down", Cause: cause,
		RetryAfter: time.Second, Message: "the gateway is shutting down, try again"}
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

// NoMemory returns the error for a request for which a memory.Claim did not grow: 413 if it can
// never fit, 429 if the owner's share is used up, else 503. err is the error of the claim.
func NoMemory(err error) *Error {
	if errors.Is(err, memory.ErrTooLarge) {
		return &Error{
			Status:  http.StatusRequestEntityTooLarge,
			Type:    TypeTooLarge,
			Code:    "request_too_large",
			Cause:   err,
			Message: "the request takes more memory than one user or key may have at a time: send a smaller one",
		}
	}
	var refusal memory.Refusal
	e := PoolRefused("memory", "memory for requests", errors.As(err, &refusal) && refusal.OfShare())
	e.Cause = err
	return e
}
