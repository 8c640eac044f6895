package portal

import (
	"testing"
	"time"
)

func TestFormIsSentOnceUnlessItWasRefused(t *testing.T) {
	now := time.Unix(0, 0)
	s := newSent(func() time.Time { return now })
	id := newFormID()
	if !s.first(1, id) || s.first(1, id) {
		t.Error("a form is sent once")
	}
	s.again(1, id)
	if !s.first(1, id) {
		t.Error("a refused form may be sent again")
	}
	for _, id := range []string{"", "x", id[:8], id + "00"} {
		if s.first(1, id) {
			t.Errorf("%q is an id", id)
		}
	}
	now = now.Add(sentLife)
	s.first(2, newFormID())
	if len(s.users) != 1 {
		t.Errorf("old forms of %d users are kept", len(s.users)-1)
	}
}

func TestAFloodOfFormsOfOneUserForgetsNobodyElses(t *testing.T) {
	s := newSent(time.Now)
	id := newFormID()
	s.first(1, id)
	for range 20_000 {
		s.first(2, newFormID())
	}
	if s.first(1, id) {
		t.Error("the form of another user was forgotten")
	}
	if n := len(s.users[2]); n != maxSent {
		t.Errorf("%d forms of one user are kept", n)
	}
}
