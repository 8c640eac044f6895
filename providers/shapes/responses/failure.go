package responses

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
)

// Envelope returns the body of an error reply, which has exactly four members.
func (shape) Envelope(err *dialogue.Error) []byte {
	w := jsonw.Writer{Buf: []byte(`{"error":`)}
	return append(err.AppendJSON(w.Buf), '}')
}

// DecodeError reads {"error": {...}}, and the looser forms that servers of this
// family are known to send: {"error": "text"}, {"message"}, {"detail"}.
func (shape) DecodeError(status int, _ http.Header, body []byte) *dialogue.Error {
	e := dialogue.Reported(status, dialogue.TypeOf(status), "", "the upstream provider refused the request")
	if len(body) > dialogue.MaxErrorBody || !fields.ValidLenient(body) {
		return e
	}
	root := gjson.ParseBytes(body)
	if root.IsArray() {
		root = root.Get("0")
	}
	readError(e, root)
	return e
}

// readError fills e from an error object or the object around one.
func readError(e *dialogue.Error, v gjson.Result) {
	if inner := v.Get("error"); inner.IsObject() {
		v = inner
	}
	for _, name := range []string{"message", "error", "detail"} {
		if m := v.Get(name); m.Type == gjson.String && m.Str != "" {
			e.Message = dialogue.ErrorText(m.Str)
			break
		}
	}
	if t := v.Get("type"); t.Type == gjson.String && t.Str != "" && t.Str != "error" {
		e.Type = t.Str
	}
	if p := v.Get("param"); p.Type == gjson.String {
		e.Param = p.Str
	}
	switch code := v.Get("code"); code.Type {
	case gjson.String:
		e.Code = code.Str
	case gjson.Number:
		e.Code = int(code.Int())
	}
}

// statusOf gives the HTTP status that the upstream would have answered had it
// failed before the first byte: an error inside a 200 has only a code or a type.
var statusOf = map[string]int{
	"rate_limit_exceeded":                  http.StatusTooManyRequests,
	"rate_limit_error":                     http.StatusTooManyRequests,
	"insufficient_quota":                   http.StatusTooManyRequests,
	"tokens":                               http.StatusTooManyRequests,
	"requests":                             http.StatusTooManyRequests,
	"invalid_request_error":                http.StatusBadRequest,
	"invalid_prompt":                       http.StatusBadRequest,
	"context_length_exceeded":              http.StatusBadRequest,
	"bio_policy":                           http.StatusBadRequest,
	"invalid_image":                        http.StatusBadRequest,
	"invalid_image_format":                 http.StatusBadRequest,
	"invalid_base64_image":                 http.StatusBadRequest,
	"invalid_image_url":                    http.StatusBadRequest,
	"image_too_large":                      http.StatusBadRequest,
	"image_too_small":                      http.StatusBadRequest,
	"image_parse_error":                    http.StatusBadRequest,
	"image_content_policy_violation":       http.StatusBadRequest,
	"invalid_image_mode":                   http.StatusBadRequest,
	"image_file_too_large":                 http.StatusBadRequest,
	"unsupported_image_media_type":         http.StatusBadRequest,
	"empty_image_file":                     http.StatusBadRequest,
	"failed_to_download_image":             http.StatusBadRequest,
	"image_file_not_found":                 http.StatusBadRequest,
	"previous_response_not_found":          http.StatusBadRequest,
	"invalid_api_key":                      http.StatusUnauthorized,
	"authentication_error":                 http.StatusUnauthorized,
	"permission_error":                     http.StatusForbidden,
	"unsupported_country_region_territory": http.StatusForbidden,
	"not_found_error":                      http.StatusNotFound,
	"model_not_found":                      http.StatusNotFound,
	"overloaded_error":                     http.StatusServiceUnavailable,
	"server_is_overloaded":                 http.StatusServiceUnavailable,
	"slow_down":                            http.StatusServiceUnavailable,
	"timeout_error":                        http.StatusGatewayTimeout,
	"vector_store_timeout":                 http.StatusGatewayTimeout,
	"data_residency_mismatch":              http.StatusForbidden,
}

// inBandError returns the error that came with status 200: in an error event, in the member error
// of a failed response, or as the body. Its status is 502 unless the code or the type says more.
// The status decides whether another target is tried, so a wrong one has a price: a rate limit that
// is taken for a bad request ends the client's request at the first target.
func inBandError(v gjson.Result) *dialogue.Error {
	e := dialogue.Reported(http.StatusBadGateway, "", "", "the upstream provider failed")
	readError(e, v)
	code, _ := e.Code.(string)
	if s, ok := statusOf[code]; ok {
		e.Status = s
	} else if s, ok := statusOf[e.Type]; ok {
		e.Status = s
	}
	if e.Type == "" {
		e.Type = dialogue.TypeOf(e.Status)
	}
	return e
}

// failureCodes are the documented values of response.error.code, and those that the vendor sends besides and that its
// clients act upon.
var failureCodes = []string{"context_length_exceeded", "insufficient_quota", "usage_not_included",
	"server_is_overloaded", "slow_down", "server_error", "rate_limit_exceeded", "invalid_prompt",
	"data_residency_mismatch",
	"bio_policy", "vector_store_timeout", "invalid_image", "invalid_image_format", "invalid_base64_image",
	"invalid_image_url", "image_too_large", "image_too_small", "image_parse_error", "image_content_policy_violation",
	"invalid_image_mode", "image_file_too_large", "unsupported_image_media_type", "empty_image_file",
	"failed_to_download_image", "image_file_not_found"}

// failureCode returns the value of response.error.code for err. It is one of failureCodes, because
// SDKs parse it into a closed set.
func failureCode(err *dialogue.Error) string {
	code, _ := err.Code.(string)
	switch {
	case slices.Contains(failureCodes, code):
		return code
	case err.Type == dialogue.TypeOverloaded:
		return "server_is_overloaded"
	case err.Status == http.StatusTooManyRequests || strings.HasPrefix(err.Type, "rate_limit"):
		return "rate_limit_exceeded"
	case err.Status == http.StatusBadRequest || err.Status == http.StatusUnprocessableEntity:
		return "invalid_prompt"
	}
	return "server_error"
}

// failureMessage returns the text of an error inside a stream. A stream has no Retry-After, so clients read the wait
// from the text.
// The wording is the vendor's, because agents look for the words "try again in" followed by a
// number.
func failureMessage(err *dialogue.Error) string {
	if err.RetryAfter <= 0 || strings.Contains(err.Message, "try again in") {
		return err.Message
	}
	seconds := strconv.FormatFloat(err.RetryAfter.Seconds(), 'f', -1, 64)
	return strings.TrimSuffix(err.Message, ".") + ". Please try again in " + seconds + "s."
}

// StreamError returns the event that ends a stream of a response which itself goes on: a
// client that resumes behind the event's number gets all that follows it.
func StreamError(err *dialogue.Error, sequence int64) []byte {
	return appendErrorEvent(nil, err, sequence)
}

// appendErrorEvent writes the error event of a stream that has no response object yet. It has the
// vendor's flat members and the nested object as well, because some clients look only for one of
// them.
func appendErrorEvent(dst []byte, err *dialogue.Error, seq int64) []byte {
	w := jsonw.Writer{Buf: append(dst, "event: error\ndata: "...)}
	w.Object()
	w.Key("type").String("error")
	w.Key("sequence_number").Int(seq)
	w.Key("code").String(failureCode(err))
	w.Key("message").String(failureMessage(err))
	w.Key("param").StringOrNull(err.Param)
	w.Key("error").Raw(err.AppendJSON(nil))
	w.End()
	return append(w.Buf, "\n\n"...)
}
