package state_test

import (
	"errors"
	"testing"

	"stagedoor/state"
	"stagedoor/state/journal"
)

func TestARequestIsKeptUntilItsResponseHasEnded(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	r := newResponse(1, "queued")
	r.Request, r.Runs = []byte(`{"a":1}`), 1
	put(t, s, r)
	sound(t, store, "queued")
	if got, err := s.ResponseRequest(t.Context(), r.ID, r.Owner); err != nil || string(got) != `{"a":1}` {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.ResponseRequest(t.Context(), r.ID, "key:other"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if h, err := s.UpdateResponse(t.Context(), r.ID, r.Owner, state.ResponseUpdate{Run: true}); err != nil ||
		h.Runs != 2 ||
		h.RequestSize != 7 {
		t.Errorf("begun again: %+v, %v", h, err)
	}
	h, err := s.UpdateResponse(t.Context(), r.ID, r.Owner, state.ResponseUpdate{Status: "completed"})
	if err != nil || h.Runs != 2 || h.RequestSize != 0 {
		t.Errorf("ended: %+v, %v", h, err)
	}
	if _, err := s.ResponseRequest(t.Context(), r.ID, r.Owner); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("after the end: %v", err)
	}
	sound(t, store, "ended")
	r = newResponse(2, "queued")
	r.Request = []byte(`{"a":`)
	if err := s.PutResponse(t.Context(), r); !errors.Is(err, state.ErrInvalid) {
		t.Errorf("a broken request: %v", err)
	}
	r.Request = make([]byte, state.MaxResponseBytes+1)
	if err := s.PutResponse(t.Context(), r); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("a request without bounds: %v", err)
	}
}
