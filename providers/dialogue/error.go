package dialogue

import (
	"encoding/json"
	"fmt"
	"time"

	"stagedoor/providers/jsonw"
)

// Error is a failure on its way to a client. It holds the members of the error envelope
// and what HTTP needs to send it. Use a constructor of this package; each
// error code has one.
type Error struct {
	Status  int    // HTTP status for the client
	Message string // safe to show: no address, no key, no prompt
	// Foreign is set if the message has words of an upstream. They may quote the request, so no log keeps them.
	Foreign bool
	Type    string // "" is written as null
	Param   string // "" is written as null
	// Code is a string, an int, a json.RawMessage (as an upstream wrote it) or nil.
	Code any
	// RetryAfter is sent as the header Retry-After, at most 60 s, unless it is 0.
	RetryAfter time.Duration
	// NoRetry is sent as x-should-retry: false.
	NoRetry bool
	// Retry is sent as x-should-retry: true, for a status that SDKs do not retry by themselves.
	Retry bool
	// ModerationDetails is the extra member of that name in the refusal of an image vendor:
	// a JSON object, or nil.
	ModerationDetails json.RawMessage
	// Cause goes to logs and spans and never to the client.
	Cause error
}

// Error implements error. It is for the log, since it has the cause. Clients get Message.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%d %s: %s: %v", e.Status, e.Type, e.Message, e.Cause)
	}
	return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Types of the gateway's own errors.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeAuthentication = "authentication_error"
	TypePermission     = "permission_error"
	TypeNotFound       = "not_found_error"
	TypeTooLarge       = "request_too_large"
	TypeRateLimit      = "rate_limit_error"
	TypeAPI            = "api_error"
	TypeTimeout        = "timeout_error"
	TypeOverloaded     = "overloaded_error"
	TypeQuota          = "insufficient_quota"
	// TypeModeration is the image vendor's type of a request that its moderation refused.
	TypeModeration = "image_generation_user_error"
)

// AppendJSON appends the inner object of the envelope to dst. It always has message, type,
// param and code. The gemini shape has further members and writes its own object.
func (e *Error) AppendJSON(dst []byte) []byte {
	w := jsonw.Writer{Buf: dst}
	w.Object()
	w.Key("message").String(e.Message)
	w.Key("type").StringOrNull(e.Type)
	w.Key("param").StringOrNull(e.Param)
	switch code := e.Code.(type) {
	case string:
		w.Key("code").String(code)
	case int:
		w.Key("code").Int(int64(code))
	case json.RawMessage:
		w.Key("code").Raw(code)
	default:
		w.Key("code").Null()
	}
	if e.ModerationDetails != nil {
		w.Key("moderation_details").Raw(e.ModerationDetails)
	}
	w.End()
	return w.Buf
}
