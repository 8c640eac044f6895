package videos

import (
	"strconv"
	"time"

	"stagedoor/providers/jsonw"
	"stagedoor/state/work"
)

// Object returns a job as its client sees it. All thirteen members are always present, because
// clients rely on each of them.
func Object(v *work.Video) []byte { return AppendObject(nil, v) }

// AppendObject appends Object to dst.
func AppendObject(dst []byte, v *work.Video) []byte {
	w := jsonw.Writer{Buf: dst}
	appendObject(&w, v)
	return w.Buf
}

// appendObject writes a job as the vendor's API has it.
func appendObject(w *jsonw.Writer, v *work.Video) {
	w.Object().Key("id").String(v.ID).Key("object").String("video").Key("model").String(v.Model)
	w.Key("status").String(v.Status()).Key("progress").Int(int64(v.Progress)).Key("created_at").Int(v.Created.Unix())
	completed, expires := v.Completed, v.Expires
	if !v.Final() {
		completed, expires = time.Time{}, time.Time{} // what is known is not settled yet
	}
	appendTime(w.Key("completed_at"), completed)
	appendTime(w.Key("expires_at"), expires)
	w.Key("prompt").StringOrNull(v.Prompt).Key("size").String(v.Size).Key("seconds").String(strconv.FormatInt(v.Seconds,
		10))
	w.Key("remixed_from_video_id").StringOrNull(v.RemixedFrom).Key("error")
	if v.Error == nil || v.Phase != work.VideoFailed {
		w.Null()
	} else {
		w.Object().Key("code").String(v.Error.Code).Key("message").String(v.Error.Message).End()
	}
	w.End()
}

// appendTime writes a time in seconds, or null for the zero time.
func appendTime(w *jsonw.Writer, t time.Time) {
	if t.IsZero() {
		w.Null()
		return
	}
	w.Int(t.Unix())
}
