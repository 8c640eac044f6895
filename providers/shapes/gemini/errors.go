package gemini

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// Limits on what of an upstream's refusal is read and shown.
const (
	maxErrorBody = 64 << 10
	maxMessage   = 2 << 10
)

// word is one of Google's status words and what it means elsewhere.
type word struct {
	name   string
	status int
	kind   string
}

// words is searched from the top: for a status the first one with it is used.
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

func wordNamed(name string) (word, bool) {
	for _, w := range words {
		if w.name == name {
			return w, true
		}
	}
	return word{}, false
}

// wordFor is Google's word for an HTTP status.
func wordFor(status int) word {
	for _, w := range words {
		if w.status == status {
			return w
		}
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

// DecodeError reads a refusal in any of the forms seen in the wild.
func (shape) DecodeError(status int, _ http.Header, body []byte) *dialogue.Error {
	err := unreadable(status)
	if len(body) <= maxErrorBody && fields.ValidLenient(body) {
		err = readError(status, gjson.ParseBytes(body))
	}
	return err
}

func unreadable(status int) *dialogue.Error {
	return dialogue.Reported(status, wordFor(status).kind, "", fmt.Sprintf("upstream returned status %d", status))
}

// readError reads an error document. status 0 means that it came with status
// 200: then the document says which one is meant. Google puts the errors of a
// streamed call inside an array.
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
		err.Message = shorten(message)
	}
	if w, ok := wordNamed(name); ok {
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

// statusOf returns the status an error inside a stream means.
func statusOf(code gjson.Result, name string) int {
	if n, ok := integer(code); ok && n >= 400 && n <= 599 {
		return int(n)
	}
	if w, ok := wordNamed(name); ok {
		return w.status
	}
	return http.StatusBadGateway
}

func firstText(inner, doc gjson.Result) string {
	for _, v := range []gjson.Result{field(inner, "message"), field(doc, "error"), field(doc, "message"),
		field(doc, "detail")} {
		if v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// readDetails learns when to try again, and that a 400 is about the key: Google
// refuses a bad API key with the status of a bad argument.
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

// shorten cuts a message between two characters.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// Envelope returns the gateway's envelope as Google's SDKs can read it: code is the
// HTTP status as an integer, status is Google's word. A code that was a string
// moves to details.
func (shape) Envelope(err *dialogue.Error) []byte { return appendEnvelope(nil, err) }

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
