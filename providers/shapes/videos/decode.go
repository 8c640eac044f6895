package videos

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/fields"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// words are how providers of this shape say how a job stands (wire/videos.md 3).
// Any other word says nothing.
var words = map[string]video.State{
	"queued":      video.Queued,
	"pending":     video.Queued,
	"submitted":   video.Queued,
	"not_start":   video.Queued,
	"in_progress": video.InProgress,
	"processing":  video.InProgress,
	"running":     video.InProgress,
	"completed":   video.Completed,
	"success":     video.Completed,
	"succeeded":   video.Completed,
	"failed":      video.Failed,
	"failure":     video.Failed,
	"cancelled":   video.Failed,
	"canceled":    video.Failed,
	"expired":     video.Failed,
	"error":       video.Failed,
}

const standardCode = "video_generation_failed"

func orStandard(code string) string {
	if code == "" {
		return standardCode
	}
	return code
}

// decode reads a job object; ok is false if body is none. Of a failed job the
// fault is as the provider says it, and not fit for clients yet.
func decode(body []byte) (id string, s video.Status, ok bool) {
	if !fields.ValidLenient(body) {
		return "", s, false
	}
	doc := gjson.ParseBytes(body)
	id = doc.Get("id").Str
	if !doc.IsObject() || !known(id) {
		return "", s, false
	}
	s.State = words[strings.ToLower(doc.Get("status").Str)]
	s.Progress = progress(doc.Get("progress"), s.State)
	if at := doc.Get("expires_at"); at.Type == gjson.Number && at.Num > 0 && at.Num < maxUnix {
		s.Expires = time.Unix(int64(at.Num), 0)
	}
	if s.State == video.Failed {
		s.Error = fault(doc.Get("error"))
	}
	return id, s, true
}

// maxUnix is the end of the year 9999.
const maxUnix = 253_402_300_800

// progress is 0 to 100, or -1; some providers send it as "33%".
func progress(v gjson.Result, state video.State) int {
	if state == video.Completed {
		return 100
	}
	n := v.Num
	if v.Type == gjson.String {
		var err error
		if n, err = strconv.ParseFloat(strings.TrimSuffix(v.Str, "%"), 64); err != nil {
			return -1
		}
	} else if v.Type != gjson.Number {
		return -1
	}
	if math.IsNaN(n) || n < 0 {
		return -1
	}
	return int(min(n, 100))
}

// fault reads the error of a failed job: an object or a text.
func fault(v gjson.Result) *video.Fault {
	f := &video.Fault{Code: standardCode, Message: "the provider failed to make the video"}
	if v.Type == gjson.String && v.Str != "" {
		f.Message = v.Str
		return f
	}
	if code := v.Get("code"); code.Type == gjson.String && code.Str != "" {
		f.Code = code.Str
	}
	if message := v.Get("message"); message.Type == gjson.String && message.Str != "" {
		f.Message = message.Str
	}
	return f
}

// pollAfter is when the provider wants to be asked again.
func pollAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseInt(h.Get("Openai-Poll-After-Ms"), 10, 32); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return upstream.RetryAfter(h, time.Now())
}
