package dialogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"stagedoor/providers/jsonw"
	"stagedoor/providers/memory"
)

// Error is a failure on its way to a client: the fields of the one envelope
// (gateway.md 2.2) and what HTTP needs to say it.
type Error struct {
	Status  int    // HTTP status for the client
	Message string // safe to show: no address, key, prompt
	Type    string // "" is written as null
	Param   string // "" is written as null
	// Code is a string, an int, a json.RawMessage (an upstream's own) or nil.
	Code any
	// RetryAfter is sent as Retry-After, at most 60 s; 0: not sent.
	RetryAfter time.Duration
	// NoRetry is sent as x-should-retry: false.
	NoRetry bool
	// ModerationDetails is the extra member of that name which an image vendor's
	// refusal has (wire/images.md 5): a JSON object, or nil.
	ModerationDetails json.RawMessage
	// Cause is for logs and spans only.
	Cause error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%d %s: %s: %v", e.Status, e.Type, e.Message, e.Cause)
	}
	return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message)
}

func (e *Error) Unwrap() error { return e.Cause }

// Error types of the gateway's own errors (wire/errors.md 4).
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
)

// Invalid is a 400 for a field that breaks a rule. The message names field and
// rule: Invalid("n", "must be between 1 and 128").
func Invalid(param, rule string) *Error {
	return &Error{Status: 400, Type: TypeInvalidRequest, Param: param, Code: "invalid_value",
		Message: fmt.Sprintf("%s: %s", param, rule)}
}

// MaxName is how many characters a name may have that is kept: in the ledger, in
// metrics, in logs.
const MaxName = 256

// CheckModel returns the error for a model's name that is too long, else nil.
// model is where the name stands in the request.
func CheckModel(param, model string) *Error {
	if len(model) > MaxName && utf8.RuneCountInString(model) > MaxName {
		return Invalid(param, fmt.Sprintf("must not be longer than %d characters", MaxName))
	}
	return nil
}

// ShortName cuts a name that an upstream has sent to what may be kept.
func ShortName(name string) string {
	if len(name) <= MaxName {
		return name
	}
	return strings.ToValidUTF8(name[:MaxName], "")
}

// Missing is a 400 for a required field that was not given.
func Missing(param string) *Error {
	return &Error{Status: 400, Type: TypeInvalidRequest, Param: param, Code: "missing_required_parameter",
		Message: param + ": is required"}
}

// Unsupported is a 400 for something that the chosen model's provider cannot do
// and that cannot be left out without changing the answer.
func Unsupported(param, why string) *Error {
	return &Error{Status: 400, Type: TypeInvalidRequest, Param: param, Code: "unsupported_parameter",
		Message: fmt.Sprintf("%s: %s", param, why)}
}

// BadUpstream is a 502: the upstream answered something that is not its shape.
// detail goes to the log, not to the client.
func BadUpstream(detail string) *Error {
	return &Error{Status: 502, Type: TypeAPI, Code: "upstream_invalid_response",
		Message: "the upstream provider sent an invalid response", Cause: fmt.Errorf("%s", detail)}
}

// Those who are refused together should not come back together.
const (
	overloadWait   = time.Second
	overloadSpread = 4 * time.Second
)

// NoMemory is the refusal of a request that a memory.Budget has no room for. err is that
// of the claim.
func NoMemory(err error) *Error {
	if errors.Is(err, memory.ErrTooLarge) {
		return &Error{Status: 413, Type: TypeTooLarge, Code: "request_too_large", Cause: err,
			Message: "the request takes more memory than the gateway has for all requests: send a smaller one"}
	}
	return &Error{Status: 503, Type: TypeOverloaded, Code: "overloaded", Cause: err, RetryAfter: overloadWait + rand.N(overloadSpread),
		Message: "the gateway has no memory left for this request at the moment, try again"}
}

// Incomplete is the failure of a reply whose upstream stopped before saying
// that it was finished.
func Incomplete() *Error {
	return &Error{Status: 502, Type: TypeAPI, Code: "upstream_incomplete",
		Message: "the upstream provider ended the reply before it was finished"}
}

// AppendJSON appends the inner object of the envelope, all four keys at least, to dst.
// The third shape, which adds members, writes its own (see providers/shapes/gemini).
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
