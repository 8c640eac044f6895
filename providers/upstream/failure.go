package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
)

// Class says what a failed call means for the next attempt (faults.md 4).
type Class uint8

// Failure classes.
const (
	// OK: no failure.
	OK Class = iota
	// NotSent: the request never reached the upstream; any route may be tried.
	NotSent
	// MaybeSent: it may have reached it; text may be tried once more.
	MaybeSent
	// RateLimited: another key or route, or later.
	RateLimited
	// Overloaded: the upstream sheds load.
	Overloaded
	// Transient: a server error that may not come again.
	Transient
	// CallerFault: the request is at fault; no other attempt will help.
	CallerFault
	// Credential: the gateway's own key was refused.
	Credential
	// Cancelled: the client left or the gateway stopped the request.
	Cancelled
	// TimedOut: the upstream was too slow.
	TimedOut
)

// Failure is why a call did not succeed. It wraps what the client will see.
type Failure struct {
	Class Class
	Err   *dialogue.Error
	// RetryAfter is what the upstream asked for, 0 if nothing.
	RetryAfter time.Duration
	// Schema: the upstream refused the schema of a structured output, so the
	// request may be tried again without it.
	Schema bool
	// TooLarge: the request is larger than the provider's rate limit ever allows, so
	// waiting does not help, and the failure says nothing about other requests.
	TooLarge bool
	// Answered: the upstream answered with an error status.
	Answered bool
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Causes with which a call's context may be cancelled.
var (
	ErrFirstByte = errors.New("no first byte in time")
	ErrIdle      = errors.New("upstream went silent")
	ErrTotal     = errors.New("call took too long in all")
	ErrClient    = errors.New("client left")
	ErrDraining  = errors.New("gateway is shutting down")
)

// failed classifies an error of the transport or of reading a body. sent says
// that response headers had been read.
func failed(ctx context.Context, err error, sent bool) *Failure {
	if cause := context.Cause(ctx); cause != nil {
		return CancelledBy(cause)
	}
	f := &Failure{Class: MaybeSent, Err: &dialogue.Error{Status: 502, Type: dialogue.TypeAPI, Cause: err}}
	switch {
	case sent && (errors.Is(err, ErrEventTooLarge) || errors.Is(err, ErrBody)):
		f.Err.Message, f.Err.Code = "the upstream provider sent an invalid response", "upstream_invalid_response"
	case !sent && notConnected(err):
		f.Class = NotSent
		f.Err.Message, f.Err.Code = "the upstream provider cannot be reached", "upstream_unreachable"
		if timedOut(err) {
			f.Err.Status, f.Err.Type = 504, dialogue.TypeTimeout
		}
	case !sent && (errors.Is(err, errManyFields) || errors.Is(err, errSwitched) || strings.Contains(err.Error(), "malformed HTTP")):
		f.Err.Message, f.Err.Code = "the upstream provider sent an invalid response", "upstream_invalid_response"
	default:
		f.Err.Message, f.Err.Code = "the connection to the upstream provider broke", "upstream_reset"
	}
	return f
}

// CancelledBy is the failure of a call whose context ended with cause.
// A cause that says itself what the client is to be told is a *dialogue.Error.
func CancelledBy(cause error) *Failure {
	var told *dialogue.Error
	switch {
	case errors.As(cause, &told):
		return &Failure{Class: Cancelled, Err: told}
	case errors.Is(cause, ErrFirstByte), errors.Is(cause, ErrIdle), errors.Is(cause, ErrTotal), errors.Is(cause, context.DeadlineExceeded):
		return &Failure{Class: TimedOut, Err: &dialogue.Error{Status: 504, Type: dialogue.TypeTimeout,
			Code: "upstream_timeout", Message: "the upstream provider took too long", Cause: cause}}
	case errors.Is(cause, ErrDraining):
		return &Failure{Class: Cancelled, Err: &dialogue.Error{Status: 503, Type: dialogue.TypeOverloaded,
			Code: "shutting_down", Message: "the gateway is shutting down, try again", RetryAfter: time.Second, Cause: cause}}
	default:
		return &Failure{Class: Cancelled, Err: &dialogue.Error{Status: StatusClientLeft, Type: dialogue.TypeAPI,
			Code: "client_closed_request", Message: "the client closed the request", Cause: cause}}
	}
}

// Broken is the failure of a reply that was cut off, with err as its cause.
func Broken(err error) *Failure { return failed(context.Background(), err, true) }

// Refused classifies a reply with an error status. decoded is what the shape read from its body.
// The Err of the result is what the client may see, without the provider's addresses and without
// the secrets, which are its keys. client are the traits of the client's shape.
func Refused(client dialogue.Traits, status int, h http.Header, decoded *dialogue.Error, secrets ...string) *Failure {
	e := scrubbed(decoded, secrets)
	e.Status = status
	f := &Failure{Class: CallerFault, Err: &e, RetryAfter: RetryAfter(h, time.Now()), Answered: true}
	if f.RetryAfter == 0 {
		f.RetryAfter = clampRetry(decoded.RetryAfter.Seconds()) // some say it in the body (google.rpc.RetryInfo)
	}
	e.RetryAfter = min(f.RetryAfter, MaxClientRetryAfter)
	switch {
	case status == 401, status == 402, status == 403, decoded.Status == 401:
		f.Class = Credential
		told := e // for the log, which no key may get into either
		*f.Err = dialogue.Error{Status: 502, Type: dialogue.TypeAPI, Code: "upstream_auth_error",
			Message: "the upstream provider refused the gateway's credentials", Cause: &told}
	case status == 429:
		f.Class = RateLimited
		f.TooLarge = f.RetryAfter == 0 && neverFits(decoded.Message)
		e.NoRetry = e.NoRetry || f.TooLarge
	case status == 529:
		f.Class = Overloaded
		if !client.Overloaded529 {
			e.Status = 503
		}
	case status == 503:
		f.Class = Overloaded
	case status == 408, status == 409, status == 425:
		f.Class = Transient
		e.Status = 503
	case status == StatusClientLeft: // some proxies say so of the gateway
		f.Class = Transient
		e.Status = 502
	case status >= 500:
		f.Class = Transient
	case status < 400:
		return &Failure{Class: Transient, Err: dialogue.BadUpstream(fmt.Sprintf("status %d", status))}
	case status == 400 || status == 422:
		f.Schema = aboutSchema(decoded)
	}
	return f
}

// InStream classifies an error event that arrived inside a 200 reply.
func InStream(client dialogue.Traits, e *dialogue.Error, secrets ...string) *Failure {
	f := Refused(client, max(e.Status, 400), nil, e, secrets...)
	f.Answered = false
	return f
}

// limitAndRequested finds the numbers in "Limit 30,000, Requested 41,000", in lower case
// and without commas.
var limitAndRequested = regexp.MustCompile(`\blimit:? ?([0-9]{1,12})\b[^.]{0,80}?\brequested:? ?([0-9]{1,12})\b`)

// neverFits guesses from the message of a 429 that names no time whether it is about the
// size of this one request. Vendors have no code for it.
func neverFits(message string) bool {
	text := strings.ToLower(message)
	if strings.Contains(text, "request too large") || strings.Contains(text, "request is too large") || strings.Contains(text, "tokens must be reduced") {
		return true
	}
	m := limitAndRequested.FindStringSubmatch(strings.ReplaceAll(text, ",", ""))
	if m == nil {
		return false
	}
	limit, err := strconv.Atoi(m[1])
	requested, err2 := strconv.Atoi(m[2])
	return err == nil && err2 == nil && requested > limit
}

// aboutSchema guesses whether a 400 complains of the schema of a structured
// output. Vendors have no code for it; their messages name the parameter, or
// speak of schemas in a way that the schemas of tools are spoken of too.
func aboutSchema(e *dialogue.Error) bool {
	text := strings.ToLower(e.Message + " " + e.Param)
	has := func(word string) bool { return strings.Contains(text, word) }
	if slices.ContainsFunc(outputParameters, has) {
		return true
	}
	return (has("schema") || has("structured output")) && !has("tool") && !has("function")
}

// outputParameters are the names under which shapes ask for structured output.
var outputParameters = []string{"response_format", "output_config", "output_format", "text.format",
	"responseschema", "response_schema", "response_json_schema", "responsejsonschema"}

// StatusClientLeft is the status of a request whose client has left. It is never sent.
const StatusClientLeft = 499

// MaxClientRetryAfter is the longest Retry-After a client is sent: SDKs sleep
// for whatever they are told.
const MaxClientRetryAfter = 60 * time.Second

// RetryAfter reads retry-after-ms and Retry-After (seconds or HTTP date),
// clamped to an hour; garbage and the past count as absent.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampRetry(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return clampRetry(s)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent // the upstream's clock, which its date is by
	}
	return clampRetry(at.Sub(now).Seconds())
}

func clampRetry(seconds float64) time.Duration {
	if !(seconds > 0) { // NaN too
		return 0
	}
	return time.Duration(min(seconds, 3600) * float64(time.Second))
}

// errNotTaken ends the transport's own attempts: nothing was looked at.
var errNotTaken = &unreached{errors.New("no connection takes the request")}

var errSwitched = errors.New("the upstream switched to another protocol unasked")

var errManyFields = errors.New("more header fields than anybody needs")

// ErrBody is wrapped by errors of reading a body that is not what it says.
var ErrBody = errors.New("invalid body")

// readAll reads a body of at most limit bytes into buf. grown may refuse that the buffer
// grows.
func readAll(body io.Reader, buf []byte, limit int, grown func(from, to int) error) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= limit {
				return buf, fmt.Errorf("%w: over %d bytes", ErrBody, limit)
			}
			more := make([]byte, len(buf), min(max(2*cap(buf), bytes.MinRead), limit+1))
			if err := grown(cap(buf), cap(more)); err != nil {
				return buf, err
			}
			copy(more, buf)
			buf = more
		}
		n, err := body.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
