package videos_test

import (
	"testing"
	"time"

	"stagedoor/http/media/videos"
	"stagedoor/state/work"
)

func TestObjectHasAllThirteenMembers(t *testing.T) {
	at := time.Unix(1_760_000_000, 0)
	base := work.Video{ID: "video_1", Model: "video-2", Prompt: "a \"cat\"", Size: "720x1280", Seconds: 4, Created: at}
	for _, c := range []struct {
		name   string
		change func(*work.Video)
		want   string
	}{
		{"submitting", func(v *work.Video) { v.Phase = work.VideoSubmitting },
			`{"id":"video_1","object":"video","model":"video-2","status":"queued","progress":0,"created_at":1760000000,"completed_at":null,"expires_at":null,` +
				`"prompt":"a \"cat\"","size":"720x1280","seconds":"4","remixed_from_video_id":null,"error":null}`},
		{"finalizing", func(v *work.Video) {
			v.Phase, v.Progress, v.Completed, v.Expires = work.VideoFinalizing, 99, at, at
			v.Error = &work.VideoError{Code: "x"}
		}, `{"id":"video_1","object":"video","model":"video-2","status":"in_progress","progress":99,"created_at":1760000000,"completed_at":null,"expires_at":null,` +
			`"prompt":"a \"cat\"","size":"720x1280","seconds":"4","remixed_from_video_id":null,"error":null}`},
		{"completed remix", func(v *work.Video) {
			v.Phase, v.Progress, v.Completed, v.Expires = work.VideoCompleted, 100, at.Add(time.Minute),
				at.Add(time.Hour)
			v.RemixedFrom, v.Prompt = "video_0", ""
		}, `{"id":"video_1","object":"video","model":"video-2","status":"completed","progress":100,"created_at":1760000000,"completed_at":1760000060,"expires_at":1760003600,` +
			`"prompt":null,"size":"720x1280","seconds":"4","remixed_from_video_id":"video_0","error":null}`},
		{"failed", func(v *work.Video) {
			v.Phase, v.Completed, v.Error = work.VideoFailed, at,
				&work.VideoError{Code: "moderation_blocked", Message: "no"}
		}, `{"id":"video_1","object":"video","model":"video-2","status":"failed","progress":0,"created_at":1760000000,"completed_at":1760000000,"expires_at":null,` +
			`"prompt":"a \"cat\"","size":"720x1280","seconds":"4","remixed_from_video_id":null,"error":{"code":"moderation_blocked","message":"no"}}`},
	} {
		v := base
		c.change(&v)
		if got := string(videos.Object(&v)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
