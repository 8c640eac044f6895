package portal

import (
	"testing"
	"time"
)

func TestFormIsSentOnceUnlessItWasRefused(t *testing.T) {
	now := time.Unix(0, 0)
	s := newSent(func() time.Time { return now })
	id := newFormID()
	if !s.first(id) || s.first(id) {
		t.Error("a form is sent once")
	}
	s.again(id)
	if !s.first(id) {
		t.Error("a refused form may be sent again")
	}
	for _, id := range []string{"", "x", id[:8], id + "00"} {
		if s.first(id) {
			t.Errorf("%q is an id", id)
		}
	}
	for range maxSent + 10 {
		s.first(newFormID())
	}
	if len(s.ids) != maxSent || s.list.Len() != maxSent {
		t.Errorf("%d forms are kept", len(s.ids))
	}
	now = now.Add(sentLife + time.Second)
	s.first(newFormID())
	if len(s.ids) != 1 {
		t.Errorf("%d old forms are kept", len(s.ids))
	}
}
