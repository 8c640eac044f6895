package gemini

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// word is one of Google's status words (google.rpc.Code), with its HTTP status and the type that
// other shapes have for it.
type word struct {
	name   string
	status int
	kind   string
}

// words are searched from the top: of several with the same status the first one is used.
var words = []word{
	{"INVALID_ARGUMENT", 400, dialogue.TypeInvalidRequest},
	{"FAILED_PRECONDITION", 400, dialogue.TypeInvalidRequest},
	{"OUT_OF_RANGE", 400, dialogue.TypeInvalidRequest},
	{"UNAUTHENTICATED", 401, dialogue.TypeAuthentication},
	{"PERMISSION_DENIED", 403, dialogue.TypePermission},
	{"NOT_FOUND", 404, dialogue.TypeNotFound},
	{"ABORTED", 409, dialogue.TypeInvalidRequest},
	{"ALREADY_EXISTS", 409, dialogue.TypeInvalidRequest},
	{"RESOURCE_EXHAUSTED", 429, dialogue.TypeRateLimit},
	{"CANCELLED", 499, dialogue.TypeAPI},
	{"INTERNAL", 500, dialogue.TypeAPI},
	{"UNKNOWN", 500, dialogue.TypeAPI},
	{"DATA_LOSS", 500, dialogue.TypeAPI},
	{"UNIMPLEMENTED", 501, dialogue.TypeAPI},
	{"UNAVAILABLE", 503, dialogue.TypeOverloaded},
	{"DEADLINE_EXCEEDED", 504, dialogue.TypeTimeout},
}

// wordNamed returns the entry of a status word.
func wordNamed(name string) (word, bool) {
	if i := slices.IndexFunc(words, func(w word) bool { return w.name == name }); i >= 0 {
		return words[i], true
	}
	return word{}, false
}

// wordFor returns the status word for an HTTP status, also for one that Google does not use.
func wordFor(status int) word {
	if i := slices.IndexFunc(words, func(w word) bool { return w.status == status }); i >= 0 {
		return words[i]
	}
	switch {
	case status == http.StatusRequestTimeout:
		return word{"DEADLINE_EXCEEDED", status, dialogue.TypeTimeout}
	case status == http.StatusRequestEntityTooLarge:
		return word{"INVALID_ARGUMENT", status, dialogue.TypeTooLarge}
	case status == 529:
		return word{"UNAVAILABLE", status, dialogue.TypeOverloaded}
	case status >= 500:
		return word{"UNAVAILABLE", status, dialogue.TypeAPI}
	}
	return word{"INVALID_ARGUMENT", status, dialogue.TypeInvalidRequest}
}

// DecodeError implements shapes.Outbound. It reads Google's form, the same in an array, and those
// of relays:
//
//	{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[...]}}
func (shape) DecodeError(status int, _ http.Header, body []byte) *dialogue.Error {
	err := unreadable(status)
	if len(body) <= dialogue.MaxErrorBody && fields.ValidLenient(body) {
		err = readError(status, gjson.ParseBytes(body))
	}
	return err
}

// unreadable returns the error for a refusal of which only the status is known.
func unreadable(status int) *dialogue.Error {
	return dialogue.Reported(status, wordFor(status).kind, "", fmt.Sprintf("upstream returned status %d", status))
}

// readError returns the error in a document. status is 0 for an error that came with status 200;
// the document then says which status is meant. Google wraps errors of streamed calls in an array.
func readError(status int, doc gjson.Result) *dialogue.Error {
	if doc.IsArray() {
		doc = doc.Get("0")
	}
	inner := field(doc, "error")
	if !inner.IsObject() {
		inner = doc
	}
	code, name := field(inner, "code"), str(field(inner, "status"))
	if status == 0 {
		status = statusOf(code, name)
	}
	err := unreadable(status)
	if message := firstText(inner, doc); message != "" {
		err.Message = dialogue.ErrorText(message)
	}
	if w, ok := wordNamed(name); ok && status != http.StatusRequestEntityTooLarge { // for which Google has no word
		err.Type = w.kind
	}
	if kind := str(field(inner, "type")); kind != "" { // a relay that speaks for another vendor
		err.Type = kind
	}
	err.Param = str(field(inner, "param"))
	switch {
	case name != "":
		err.Code = name
	case code.Exists():
		err.Code = json.RawMessage(code.Raw)
	}
	readDetails(err, field(inner, "details"))
	return err
}

// statusOf returns the status for the code or the status word of an error, or 502.
func statusOf(code gjson.Result, name string) int {
	if n, ok := integer(code); ok && n >= 400 && n <= 599 {
		return int(n)
	}
	if w, ok := wordNamed(name); ok {
		return w.status
	}
	return http.StatusBadGateway
}

// firstText returns the message of an error, wherever it stands, or "".
func firstText(inner, doc gjson.Result) string {
	for _, v := range []gjson.Result{field(inner, "message"), field(doc, "error"), field(doc, "message"),
		field(doc, "detail")} {
		if v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// readDetails reads the wait of google.rpc.RetryInfo, and whether a 400 is about the key: Google
// refuses an unknown API key with the status of a bad argument.
func readDetails(err *dialogue.Error, details gjson.Result) {
	if !details.IsArray() {
		return
	}
	details.ForEach(func(_, v gjson.Result) bool {
		if wait, e := time.ParseDuration(str(field(v, "retryDelay"))); e == nil && wait > 0 {
			err.RetryAfter = wait
		}
		if strings.HasPrefix(str(field(v, "reason")), "API_KEY_") {
			err.Status, err.Type = http.StatusUnauthorized, dialogue.TypeAuthentication
		}
		return true
	})
}

// Envelope implements shapes.Inbound. Google's SDKs require an integer in code and one of Google's
// words in status, so a code that is a string moves to details.
func (shape) Envelope(err *dialogue.Error) []byte { return appendEnvelope(nil, err) }

// appendEnvelope appends an error in the vendor's form. The code that other shapes have becomes a reason in the
// details, because the vendor has a number and a word of its own list in their places.
func appendEnvelope(dst []byte, err *dialogue.Error) []byte {
	code, _ := err.Code.(string)
	if raw, ok := err.Code.(json.RawMessage); ok {
		code = str(gjson.ParseBytes(raw))
	}
	status := wordFor(err.Status).name
	if w, ok := wordNamed(code); ok {
		status, code = w.name, ""
	}
	w := jsonw.Writer{Buf: dst}
	w.Object().Key("error").Object()
	w.Key("message").String(err.Message)
	w.Key("type").StringOrNull(err.Type)
	w.Key("param").StringOrNull(err.Param)
	w.Key("code").Int(int64(err.Status))
	w.Key("status").String(status)
	if code != "" || err.RetryAfter > 0 {
		w.Key("details").Array()
		if code != "" {
			w.Object().Key("@type").String("type.googleapis.com/google.rpc.ErrorInfo")
			w.Key("reason").String(strings.ToUpper(code)).Key("domain").String("gateway").End()
		}
		if err.RetryAfter > 0 { // Google's clients read the wait here and not in the header
			w.Object().Key("@type").String("type.googleapis.com/google.rpc.RetryInfo")
			seconds := strconv.FormatFloat(err.RetryAfter.Seconds(), 'f', -1, 64)
			w.Key("retryDelay").String(seconds + "s").End()
		}
		w.End()
	}
	w.End().End()
	return w.Buf
}
