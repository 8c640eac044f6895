package veo

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// operation is the state of a long-running operation. Its fault has the provider's words, which are
// not safe for clients.
type operation struct {
	name   string
	status video.Status
	uri    string // of the result
}

// Codes of failed jobs.
const (
	codeFailed  = "video_generation_failed"
	codeBlocked = "moderation_blocked"
)

// decode reads an operation. ok is false if body is not one.
func decode(body []byte) (op operation, ok bool) {
	if !fields.ValidLenient(body) {
		return op, false
	}
	doc := gjson.ParseBytes(body)
	op.name = doc.Get("name").Str
	if !doc.IsObject() || !transfer.ValidID(op.name) {
		return op, false
	}
	op.status = video.Status{State: video.InProgress, Progress: -1}
	if !doc.Get("done").Bool() {
		return op, true
	}
	if e := doc.Get("error"); e.IsObject() {
		op.fail(codeFailed, e.Get("message").Str)
		return op, true
	}
	op.finish(doc.Get("response"))
	return op, true
}

// finish reads the result of an operation that is done. A video that moderation withheld is missing
// from a response that otherwise reports success.
func (op *operation) finish(response gjson.Result) {
	made := response.Get("generateVideoResponse")
	if !made.IsObject() {
		made = response
	}
	for _, path := range []string{"generatedSamples.0.video.uri", "generatedVideos.0.video.uri"} {
		if uri := made.Get(path).Str; uri != "" {
			op.uri = uri
			op.status.State, op.status.Progress = video.Completed, 100
			return
		}
	}
	reason := made.Get("raiMediaFilteredReasons.0").Str
	if reason != "" || made.Get("raiMediaFilteredCount").Int() > 0 {
		op.fail(codeBlocked, orElse(reason, "the provider's moderation withheld the video"))
		return
	}
	op.fail(codeFailed, "the provider finished without a video")
}

// fail sets the state of a job that the provider could not make.
func (op *operation) fail(code, message string) {
	op.status.State = video.Failed
	op.status.Error = &video.Fault{Code: code, Message: orElse(message, "the provider failed to make the video")}
}

// orElse returns s, or standard if s is empty.
func orElse(s, standard string) string {
	if s == "" {
		return standard
	}
	return s
}

// kinds maps Google's status words to error types.
var kinds = map[string]string{
	"INVALID_ARGUMENT": dialogue.TypeInvalidRequest, "FAILED_PRECONDITION": dialogue.TypeInvalidRequest,
	"OUT_OF_RANGE": dialogue.TypeInvalidRequest, "UNAUTHENTICATED": dialogue.TypeAuthentication,
	"PERMISSION_DENIED": dialogue.TypePermission, "NOT_FOUND": dialogue.TypeNotFound,
	"RESOURCE_EXHAUSTED": dialogue.TypeRateLimit, "UNAVAILABLE": dialogue.TypeOverloaded,
	"DEADLINE_EXCEEDED": dialogue.TypeTimeout,
}

// decodeError reads a refusal. Google refuses a bad key with the status 400, which this turns into
// 401.
func decodeError(status int, header http.Header, body []byte) *dialogue.Error {
	e := chunks.DecodeError(status, header, body)
	e.Code = nil // it only repeats the status
	if !fields.ValidLenient(body) {
		return e
	}
	inner := gjson.GetBytes(body, "error")
	word := inner.Get("status").Str
	if kind := kinds[word]; kind != "" {
		e.Type, e.Code = kind, strings.ToLower(word)
	}
	inner.Get("details").ForEach(func(_, v gjson.Result) bool {
		if strings.HasPrefix(v.Get("reason").Str, "API_KEY_") {
			e.Status, e.Type = http.StatusUnauthorized, dialogue.TypeAuthentication
		}
		return true
	})
	return e
}
