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

// words maps the status words of providers to states. Any other word is
// unknown.
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

// defaultCode is the code of a failure for which the provider gives none.
const defaultCode = "video_generation_failed"

func orDefaultCode(code string) string {
	if code == "" {
		return defaultCode
	}
	return code
}

// decode reads a job. ok is false if body is not one. The fault of a failed job has the provider's
// words, which are not safe for clients.
func decode(body []byte) (id string, s video.Status, ok bool) {
	if !fields.ValidLenient(body) {
		return "", s, false
	}
	doc := gjson.ParseBytes(body)
	id = doc.Get("id").Str
	if !doc.IsObject() || !isJobID(id) {
		return "", s, false
	}
	s.State = words[strings.ToLower(doc.Get("status").Str)]
	s.Progress = progress(doc.Get("progress"), s.State)
	if at := doc.Get("expires_at"); at.Type == gjson.Number && at.Num > 0 && at.Num < maxUnix {
		s.Expires = time.Unix(int64(at.Num), 0)
	}
	if s.State == video.Completed {
		s.Seconds, s.Size = seconds(doc.Get("seconds")), size(doc.Get("size").Str)
	}
	if s.State == video.Failed {
		s.Error = fault(doc.Get("error"))
	}
	return id, s, true
}

// maxUnix is the end of the year 9999.
const maxUnix = 253_402_300_800

// progress returns 0 to 100, or -1 if the provider reports none. Some providers send "33%".
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

// seconds returns the length of a finished video, rounded up, or 0 if the provider reports none
// that a video can have. Some providers send a number in place of a string.
func seconds(v gjson.Result) int {
	n := v.Num
	if v.Type == gjson.String {
		var err error
		if n, err = strconv.ParseFloat(v.Str, 64); err != nil {
			return 0
		}
	}
	if math.IsNaN(n) || n <= 0 {
		return 0
	}
	return int(math.Ceil(min(n, math.MaxInt32)))
}

// size returns the size of a finished video, or the zero value for a text that is none.
func size(text string) video.Size {
	const most = 1 << 16
	width, height, _ := strings.Cut(text, "x")
	w, errW := strconv.Atoi(width)
	h, errH := strconv.Atoi(height)
	if errW != nil || errH != nil || w < 1 || w > most || h < 1 || h > most {
		return video.Size{}
	}
	return video.Size{Width: w, Height: h}
}

// fault reads the error of a failed job, which is an object or a text.
func fault(v gjson.Result) *video.Fault {
	f := &video.Fault{Code: defaultCode, Message: "the provider failed to make the video"}
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

// pollAfter returns the time after which the provider wants the next poll, or 0.
func pollAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseInt(h.Get("Openai-Poll-After-Ms"), 10, 32); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return upstream.RetryAfter(h, time.Now())
}
