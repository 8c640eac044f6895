package work_test

import (
	"errors"
	"testing"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

func TestARequestIsKeptUntilItsResponseHasEnded(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	r := newResponse(1, "queued")
	r.Request, r.Runs = []byte(`{"a":1}`), 1
	put(t, s, r)
	sound(t, store, "queued")
	if got, err := work.ReadResponseRequest(t.Context(), s, r.ID, r.Owner); err != nil || string(got) != `{"a":1}` {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := work.ReadResponseRequest(t.Context(), s, r.ID, "key:other"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("another owner's: %v", err)
	}
	if h, err := work.UpdateResponse(t.Context(), s, r.ID, r.Owner, work.ResponseUpdate{Run: true}); err != nil ||
		h.Runs != 2 ||
		h.RequestSize != 7 {
		t.Errorf("begun again: %+v, %v", h, err)
	}
	h, err := work.UpdateResponse(t.Context(), s, r.ID, r.Owner, work.ResponseUpdate{Status: "completed"})
	if err != nil || h.Runs != 2 || h.RequestSize != 0 {
		t.Errorf("ended: %+v, %v", h, err)
	}
	if _, err := work.ReadResponseRequest(t.Context(), s, r.ID, r.Owner); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("after the end: %v", err)
	}
	sound(t, store, "ended")
	r = newResponse(2, "queued")
	r.Request = []byte(`{"a":`)
	if err := work.PutResponse(t.Context(), s, r); !errors.Is(err, state.ErrInvalid) {
		t.Errorf("a broken request: %v", err)
	}
	r.Request = make([]byte, work.MaxResponseBytes+1)
	if err := work.PutResponse(t.Context(), s, r); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("a request without bounds: %v", err)
	}
}
