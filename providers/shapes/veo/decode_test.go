package veo

import (
	"testing"

	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"name":"a/b"}`, `{"name":"o","done":true,"error":{}}`, `{"name":"o","done":true,"response":{"raiMediaFilteredReasons":["x"]}}`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		op, ok := decode(body)
		if !ok {
			return
		}
		s := op.status
		if !transfer.ValidID(op.name) || (s.State == video.Failed) != (s.Error != nil) ||
			(s.State == video.Completed) != (op.uri != "") {
			t.Errorf("%+v", op)
		}
	})
}
