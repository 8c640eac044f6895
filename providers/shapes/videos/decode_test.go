package videos

import (
	"testing"

	"stagedoor/providers/video"
)

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"id":"v","status":"failed","error":"no"}`, `{"id":"v","progress":1e300,"expires_at":-1}`, `{"id":1}`, `[]`, `{"id":"v","status":"completed","progress":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id, s, ok := decode(body)
		if !ok {
			return
		}
		if !isJobID(id) || s.Progress < -1 || s.Progress > 100 || (s.State == video.Failed) != (s.Error != nil) {
			t.Errorf("%q %+v", id, s)
		}
	})
}
