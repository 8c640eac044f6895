package chunks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// DecodeError reads an upstream's refusal. Beside the envelope it reads the other forms of
// servers of this family: {"error":"text"}, {"message"}, {"detail"}, a list of mistakes in either of
// the last two, and each of them in an array of one element. The header has nothing that the body does
// not have.
func DecodeError(status int, _ http.Header, body []byte) *dialogue.Error {
	e := dialogue.Reported(status, dialogue.TypeOf(status), "",
		fmt.Sprintf("the upstream provider returned status %d", status))
	if len(body) > dialogue.MaxErrorBody || !fields.ValidLenient(body) {
		return e
	}
	readError(e, gjson.ParseBytes(body))
	return e
}

// HasError reports whether a chunk or a reply has an error member that is not null.
func HasError(v gjson.Result) bool {
	e := v.Get("error")
	return e.Exists() && e.Type != gjson.Null
}

// DecodeFailure reads the error object of a reply whose HTTP status was 200. The status of the
// result follows from the type and the code of the error.
func DecodeFailure(v gjson.Result) *dialogue.Error {
	e := dialogue.Reported(0, dialogue.TypeAPI, "", "the upstream provider reported an error")
	readError(e, v)
	e.Status = statusOf(e)
	return e
}

// readError fills e from any of the forms that DecodeError lists.
func readError(e *dialogue.Error, v gjson.Result) {
	if v.IsArray() {
		v = v.Get("0")
	}
	if inner := v.Get("error"); inner.Exists() && inner.Type != gjson.Null {
		v = inner
	}
	if v.Type == gjson.String {
		e.Message = dialogue.ErrorText(v.Str)
		return
	}
	for _, m := range []gjson.Result{v.Get("message"), v.Get("detail"), v.Get("msg"), v.Get("message.detail")} {
		if text := cmp.Or(m.Str, fieldFaults(m)); text != "" {
			e.Message = dialogue.ErrorText(text)
			break
		}
	}
	if t := v.Get("type"); t.Type == gjson.String && t.Str != "" {
		e.Type = dialogue.ErrorText(t.Str)
	}
	if p := v.Get("param"); p.Type == gjson.String {
		e.Param = dialogue.ErrorText(p.Str)
	}
	switch c := v.Get("code"); {
	case c.Type == gjson.String:
		e.Code = dialogue.ErrorText(c.Str)
	case c.Exists() && c.Type != gjson.Null && len(c.Raw) <= dialogue.MaxErrorText:
		e.Code = json.RawMessage(c.Raw)
	}
}

// maxFaults is the number of mistakes of a request that one message lists.
const maxFaults = 4

// fieldFaults returns a message for a list of mistakes, the form of servers that check requests against a model of
// them, or "" if v is no such list:
//
//	[{"loc":["body","messages",0,"name"],"msg":"Extra inputs are not permitted"}]
//	body.messages.0.name: Extra inputs are not permitted
func fieldFaults(v gjson.Result) string {
	var faults []string
	OnlyArray(v).ForEach(func(_, fault gjson.Result) bool {
		var place []string
		OnlyArray(fault.Get("loc")).ForEach(func(_, step gjson.Result) bool {
			place = append(place, step.String())
			return true
		})
		if msg := fault.Get("msg").Str; msg != "" {
			faults = append(faults, strings.TrimPrefix(strings.Join(place, ".")+": "+msg, ": "))
		}
		return len(faults) < maxFaults
	})
	return strings.Join(faults, "; ")
}

// LongPrompt has the words of this family about a prompt that does not fit.
var LongPrompt = dialogue.LongPrompt{
	Known:  []string{"maximum context length", "context_length_exceeded"},
	Phrase: "The prompt exceeds this model's maximum context length",
	WithSizes: "This model's maximum context length is %[2]d tokens. However, your messages resulted in %[1]d " +
		"tokens. Please reduce the length of the messages.",
}

// statusByWord gives the status for the code or the type of an error that came with status 200, as
// it does inside a stream. Retries and the client's own status depend on it.
var statusByWord = map[string]int{
	dialogue.TypeInvalidRequest: 400, "context_length_exceeded": 400,
	dialogue.TypeAuthentication: 401, "invalid_api_key": 401,
	dialogue.TypePermission: 403,
	dialogue.TypeNotFound:   404, "model_not_found": 404,
	dialogue.TypeTooLarge:  413,
	dialogue.TypeRateLimit: 429, "rate_limit_exceeded": 429, "requests": 429, "tokens": 429, "insufficient_quota": 429,
	dialogue.TypeTimeout:    504,
	dialogue.TypeOverloaded: 503, "service_unavailable": 503, "slow_down": 503,
}

// statusOf returns the status that fits an error's code or type, or 502. Some servers use the
// status itself as the code.
func statusOf(e *dialogue.Error) int {
	word, _ := e.Code.(string)
	if raw, ok := e.Code.(json.RawMessage); ok {
		word = string(raw)
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 400 && n <= 599 {
		return n
	}
	if status, ok := statusByWord[word]; ok {
		return status
	}
	if status, ok := statusByWord[e.Type]; ok {
		return status
	}
	return http.StatusBadGateway
}

// Envelope returns the body of an error reply.
func Envelope(err *dialogue.Error) []byte {
	return append(err.AppendJSON([]byte(`{"error":`)), '}')
}

// AppendFailure appends the event that ends a failed stream. It has no event line, because some
// clients fail on one, and no [DONE] after it, which would look like success.
func AppendFailure(dst []byte, err *dialogue.Error) []byte {
	dst = append(dst, `data: {"error":`...)
	return append(err.AppendJSON(dst), "}\n\n"...)
}

// Done is the event that ends a complete stream.
const Done = "data: [DONE]\n\n"

// Heartbeat is a comment without a blank line after it, which every client ignores.
const Heartbeat = ": keep-alive\n"
