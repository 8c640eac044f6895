package portal

import (
	"testing"
	"time"
)

func TestFormIsSentOnceUnlessItWasRefused(t *testing.T) {
	now := time.Unix(0, 0)
	s := newSentForms(func() time.Time { return now })
	id := newFormID()
	if !s.markSent(1, id) || s.markSent(1, id) {
		t.Error("a form is sent once")
	}
	s.allowAgain(1, id)
	if !s.markSent(1, id) {
		t.Error("a refused form may be sent again")
	}
	for _, id := range []string{"", "x", id[:8], id + "00"} {
		if s.markSent(1, id) {
			t.Errorf("%q is an id", id)
		}
	}
	now = now.Add(sentLife)
	if !s.markSent(1, id) {
		t.Error("a form is remembered for ever")
	}
}

func TestAFloodOfFormsOfOneUserForgetsNoFormOfAnother(t *testing.T) {
	s := newSentForms(time.Now)
	id := newFormID()
	s.markSent(1, id)
	for range 2 * maxSent {
		s.markSent(2, newFormID())
	}
	if s.markSent(1, id) {
		t.Error("the form of another user was forgotten")
	}
	if s.Len() != maxSent {
		t.Errorf("%d forms are kept", s.Len())
	}
}
