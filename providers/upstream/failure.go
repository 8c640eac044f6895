package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stagedoor/providers/dialogue"
)

// Class says what a failed call means for the next attempt. The engine's decide has the rules.
type Class uint8

// Failure classes. The comments say what they mean for the next attempt.
const (
	// OK means that there is no failure.
	OK Class = iota
	// NotSent means that the request never reached the upstream. Any route may be tried.
	NotSent
	// MaybeSent means that the upstream may have the request. A request for text may be tried once more.
	MaybeSent
	// RateLimited means that the request may succeed with another key or route, or later.
	RateLimited
	// Overloaded means that the upstream sheds load.
	Overloaded
	// Transient means a server error that may not occur again.
	Transient
	// CallerFault means that the request itself is wrong, so no other attempt will help.
	CallerFault
	// Credential means that the upstream refused the gateway's key.
	Credential
	// Cancelled means that the client left or the gateway stopped the request.
	Cancelled
	// TimedOut means that the upstream was too slow.
	TimedOut
)

// Failure is the error of a call that did not succeed. It wraps the error that the client will see.
type Failure struct {
	Class Class
	Err   *dialogue.Error
	// RetryAfter is the wait that the upstream asked for, or 0.
	RetryAfter time.Duration
	// Schema is set if the upstream may have refused the request because of the schema of a structured output, so that
	// a request with one may be sent again without it.
	Schema bool
	// LongPrompt is set if the prompt does not fit the model's context window. PromptSize has the numbers, if the
	// upstream gives any.
	LongPrompt bool
	PromptSize PromptSize
	// Filtered is set if the upstream's moderation refused the request, or the whole reply.
	Filtered bool
	// Reasoning is set if the upstream may have refused the proof of reasoning that another model gave out.
	Reasoning bool
	// CallIDs is set if the upstream may have refused the ids of calls that another upstream made.
	CallIDs bool
	// Compaction is set if the upstream may have failed because it does not compact conversations.
	Compaction bool
	// Context is set if the upstream has refused to edit the conversation, which the client asked for.
	Context bool
	// TopK is set if the upstream does not know the parameter top_k, which clients of every shape may send.
	TopK bool
	// Amended is set once the attempt loop has changed the request because of this failure, so that it may be sent
	// again at once.
	Amended bool
	// TooLarge is set if the request is larger than the provider's rate limit ever allows. Waiting does
	// not help then, and the failure says nothing about other requests.
	TooLarge bool
	// Answered is set if the upstream sent an error status.
	Answered bool
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error for the client.
func (f *Failure) Unwrap() error { return f.Err }

// Causes with which the context of a call may be cancelled.
var (
	ErrFirstByte = errors.New("no first byte in time")
	ErrIdle      = errors.New("upstream went silent")
	ErrTotal     = errors.New("call took too long in all")
	ErrClient    = errors.New("client left")
	ErrDraining  = errors.New("gateway is shutting down")
)

// failed classifies an error of the transport or of reading a body. answered is set if the headers of the reply
// had been read. The class is MaybeSent unless ctx has ended or no connection was made.
func failed(ctx context.Context, err error, answered bool) *Failure {
	if cause := context.Cause(ctx); cause != nil {
		return CancelledBy(cause)
	}
	f := &Failure{Class: MaybeSent, Err: dialogue.UpstreamReset(err)}
	switch {
	case answered && (errors.Is(err, ErrEventTooLarge) || errors.Is(err, ErrBody)):
		f.Err = dialogue.InvalidReply(err)
	case !answered && notConnected(err):
		f.Class, f.Err = NotSent, dialogue.UpstreamUnreachable(err, timedOut(err))
	case !answered && (errors.Is(err, errManyFields) || errors.Is(err, errSwitched) ||
		strings.Contains(err.Error(), "malformed HTTP")):
		f.Err = dialogue.InvalidReply(err)
	}
	return f
}

// CancelledBy returns the failure of a call whose context ended with cause. If cause is a *dialogue.Error,
// the client sees that error.
func CancelledBy(cause error) *Failure {
	var e *dialogue.Error
	switch {
	case errors.As(cause, &e):
		return &Failure{Class: Cancelled, Err: e}
	case errors.Is(cause, ErrFirstByte),
		errors.Is(cause, ErrIdle),
		errors.Is(cause, ErrTotal),
		errors.Is(cause, context.DeadlineExceeded):
		return &Failure{Class: TimedOut, Err: dialogue.UpstreamTimeout(cause)}
	case errors.Is(cause, ErrDraining):
		return &Failure{Class: Cancelled, Err: dialogue.ShuttingDown(cause)}
	default:
		return &Failure{Class: Cancelled, Err: dialogue.ClientClosed(cause)}
	}
}

// Broken returns the failure of a reply that was cut off or cannot be read. Its class is MaybeSent, and err its cause.
func Broken(err error) *Failure { return failed(context.Background(), err, true) }

// Refused classifies a reply with an error status. decoded is the error that the shape read from the body,
// client has the traits of the client's shape, and secrets are those of the provider. The Err of the result
// may be shown to the client, because addresses and secrets are removed from it.
func Refused(client dialogue.Traits, status int, h http.Header, decoded *dialogue.Error, secrets ...string) *Failure {
	e := scrubbed(decoded, secrets)
	e.Status, e.Foreign = status, true
	f := &Failure{Class: CallerFault, Err: &e, RetryAfter: retryAfter(h, decoded), Answered: true}
	e.RetryAfter = min(f.RetryAfter, MaxClientRetryAfter)
	what := meaningOf(status, decoded)
	if what == longPrompt {
		f.LongPrompt, f.PromptSize = true, promptSize(decoded.Message)
	}
	f.Filtered = what == badContent
	express(&e, what, f.PromptSize, client)
	switch {
	case what == noCredit, decoded.Status == 401,
		what != badContent && (status == 401 || status == 402 || status == 403):
		f.Class = Credential
		logged := e // for the log, which no key may get into either
		*f.Err = *dialogue.UpstreamAuth(&logged)
	case what == longPrompt, what == largeBody, what == badContent: // the request is at fault, whatever the status
	case status == 429 && what == rateLimited:
		f.Class = RateLimited
		f.TooLarge = f.RetryAfter == 0 && neverFits(decoded.Message)
		e.NoRetry = e.NoRetry || f.TooLarge
	case what == busy:
		f.Class = Overloaded
		if e.Status = 503; client.Overloaded529 && status == 529 {
			e.Status = 529
		}
	case status == 408, status == 409, status == 425:
		f.Class = Transient
		e.Status = 503
	case status == dialogue.StatusClientClosed: // some proxies report that the gateway closed the request
		f.Class = Transient
		e.Status = 502
	case status >= 500:
		f.Class = Transient
		f.Schema = namesGrammar(decoded)
	case status < 400:
		return &Failure{Class: Transient, Err: dialogue.BadUpstream(fmt.Sprintf("status %d", status))}
	case status == 400 || status == 422:
		f.Schema = true
	}
	return f
}

// TooLong returns the failure of a prompt that the gateway sends to no target, because of their context windows.
// size.Limit is the largest of these.
func TooLong(client dialogue.Traits, size PromptSize) *Failure {
	if size.Prompt > size.Limit {
		size.Answer = 0 // it is not the reason
	}
	e := dialogue.BadRequest("", fmt.Sprintf("the prompt has about %d tokens and the reply may have %d, but the "+
		"largest context window of this model's targets has %d tokens", size.Prompt, size.Answer, size.Limit))
	express(e, longPrompt, size, client)
	return &Failure{Class: CallerFault, Err: e, LongPrompt: true, PromptSize: size}
}

// FilteredReply returns the failure of a reply that the upstream's moderation withheld as a whole.
func FilteredReply() *Failure {
	e := dialogue.BadRequest("content_policy_violation", "the provider's content filter withheld the reply")
	return &Failure{Class: CallerFault, Err: e, Filtered: true}
}

// retryAfter returns the time that a refusal gives: in its headers, in its body (google.rpc.RetryInfo) or in words.
func retryAfter(h http.Header, e *dialogue.Error) time.Duration {
	if d := RetryAfter(h, time.Now()); d > 0 {
		return d
	}
	if d := clampRetry(e.RetryAfter.Seconds()); d > 0 {
		return d
	}
	return waitIn(e.Message)
}

// InStream classifies an error event that arrived inside a 200 reply.
func InStream(client dialogue.Traits, e *dialogue.Error, secrets ...string) *Failure {
	f := Refused(client, max(e.Status, 400), nil, e, secrets...)
	f.Answered = false
	return f
}

// limitAndRequested finds the numbers in "Limit 30,000, Requested 41,000" after the text was changed to lower
// case and the commas were removed.
var limitAndRequested = regexp.MustCompile(`\blimit:? ?([0-9]{1,12})\b[^.]{0,80}?\brequested:? ?([0-9]{1,12})\b`)

// neverFits guesses from the message of a 429 without a Retry-After whether this one request is larger than
// the limit. Vendors have no code for that.
func neverFits(message string) bool {
	text := strings.ToLower(message)
	if strings.Contains(text, "request too large") || strings.Contains(text, "request is too large") ||
		strings.Contains(text, "tokens must be reduced") {
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

// namesGrammar guesses from the message of a server error whether it is about the form of a structured output. Servers
// that compile a schema to a grammar fail with a 500 where they do not know a keyword. For a 400 or a 422 Refused does
// not look at the message, because the vendors have too many words for that, and one more attempt costs less than a
// failed request.
func namesGrammar(e *dialogue.Error) bool {
	return containsAny(strings.ToLower(e.Message), []string{"grammar", "schema", "guided", "structured output"})
}

// MaxClientRetryAfter is the longest Retry-After that is sent to a client, because SDKs sleep for any time
// that a server names.
const MaxClientRetryAfter = 60 * time.Second

// RetryAfter returns the wait that retry-after-ms or Retry-After (seconds or an HTTP date) asks for, at most
// an hour. It is 0 if the headers are missing or malformed or name a time in the past.
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
		now = sent // the date in Retry-After is by the upstream's clock
	}
	return clampRetry(at.Sub(now).Seconds())
}

// clampRetry returns a wait of an upstream, at most an hour, or 0 if it is not positive.
func clampRetry(seconds float64) time.Duration {
	if !(seconds > 0) { // also true of NaN
		return 0
	}
	return time.Duration(min(seconds, 3600) * float64(time.Second))
}

// errNotTaken stops the transport from trying further connections. The request was not sent.
var errNotTaken = &unreached{errors.New("no connection takes the request")}

var errSwitched = errors.New("the upstream switched to another protocol without being asked")

var errManyFields = fmt.Errorf("more than %d header fields", maxFields)

// ErrBody is wrapped by the errors of a body that is too large or not encoded as its headers say.
var ErrBody = errors.New("invalid body")

// readAll reads a body of at most limit bytes into buf. grown may refuse that the buffer grows.
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
