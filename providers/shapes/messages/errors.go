package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// statuses are the vendor's error types with their HTTP statuses. An error inside a stream has only
// the type, so the table is read in both directions.
var statuses = map[string]int{
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"permission_error":      403,
	"not_found_error":       404,
	"conflict_error":        409,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"api_error":             500,
	"timeout_error":         504,
	"overloaded_error":      529,
}

// typeOf returns the vendor's word for a status.
func typeOf(status int) string {
	if status == http.StatusServiceUnavailable {
		return dialogue.TypeOverloaded
	}
	for word, s := range statuses {
		if s == status {
			return word
		}
	}
	if status >= 500 {
		return dialogue.TypeAPI
	}
	return dialogue.TypeInvalidRequest
}

// DecodeError returns the error in an upstream's refusal. It reads the vendor's form and those of
// servers that merely imitate the API:
//
//	{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
//	{"error":"Overloaded"}    {"message":"Overloaded"}    {"detail":"Overloaded"}
func (shape) DecodeError(status int, header http.Header, body []byte) *dialogue.Error {
	err := dialogue.Reported(status, typeOf(status), "",
		fmt.Sprintf("the upstream provider returned status %d", status))
	if len(body) <= dialogue.MaxErrorBody && fields.ValidLenient(body) {
		readError(err, gjson.ParseBytes(body))
	}
	err.NoRetry = strings.EqualFold(header.Get("x-should-retry"), "false")
	return err
}

// readError copies the message, type, param and code in doc to err, as far as doc has them. What is
// missing keeps the value that err came with.
func readError(err *dialogue.Error, doc gjson.Result) {
	if doc.IsArray() {
		doc = doc.Get("0")
	}
	inner := doc.Get("error")
	for _, v := range []gjson.Result{inner.Get("message"), inner, doc.Get("message"), doc.Get("detail")} {
		if v.Type == gjson.String && strings.TrimSpace(v.Str) != "" {
			err.Message = dialogue.ErrorText(v.Str)
			break
		}
	}
	if !inner.IsObject() {
		return
	}
	if t := inner.Get("type"); t.Type == gjson.String && t.Str != "" {
		err.Type = t.Str
	}
	err.Param = inner.Get("param").String()
	switch code := inner.Get("code"); code.Type {
	case gjson.Null:
	case gjson.String:
		err.Code = code.Str
	default:
		err.Code = json.RawMessage(bytes.ToValidUTF8([]byte(code.Raw), []byte("\uFFFD")))
	}
}

// streamed returns the error in an event, or in a body that came with status 200. Its status
// follows from its type, and is 500 if the type is not one of the vendor's.
func streamed(doc gjson.Result) *dialogue.Error {
	err := dialogue.Reported(http.StatusInternalServerError, dialogue.TypeAPI, "", "the upstream provider failed")
	readError(err, doc)
	if status, known := statuses[err.Type]; known {
		err.Status = status
	}
	return err
}
