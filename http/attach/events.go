package attach

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"stagedoor/actors/kept"
	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// retryStored is sent as Retry-After when a stored reply cannot be read.
const retryStored = 5 * time.Second

// Events serves GET /v1/requests/{id}/events. It sends what follows the event that Last-Event-ID names, or the reply
// from its beginning, and goes on while the request runs. Errors are in the envelope of the API, because the shape of a
// request that is not found is not known.
func (s *Service) Events(w http.ResponseWriter, r *http.Request) {
	if err := s.resume(w, r); err != nil {
		auth.Refuse(w, s.Logger, envelope.Plain, err)
	}
}

func (s *Service) resume(w http.ResponseWriter, r *http.Request) error {
	key, err := s.Auth.Authenticate(r, false)
	if err != nil {
		return err
	}
	accesslog.Note(w, slog.String("key", key.ID))
	if err := auth.AdmitWatcher(w, r, s.Limits, &key, s.Records.Now()); err != nil {
		return err
	}
	owner := state.OwnerOf(key.ID, key.User)
	record := s.Records.Find(owner, r.PathValue("id"))
	if record == nil {
		return dialogue.Refusal(http.StatusNotFound, "request_not_found",
			"there is no request with this id whose reply is kept")
	}
	defer record.Leave()
	offset, err := s.place(r, &key, record)
	if err != nil {
		return err
	}
	if err := s.Watchers.Take(string(owner), 1); err != nil {
		return err
	}
	defer s.Watchers.Give(string(owner), 1)
	w.Header()[originHeader] = []string{record.ID()}
	return s.follow(w, r, &key, record, offset, dropped)
}

// place checks that a key may read a record, and returns the offset from which the client goes on.
func (s *Service) place(r *http.Request, key *identity.Key, record *kept.Record) (int64, error) {
	scope, model := record.Needs()
	if err := s.Auth.Permit(key, r, scope, model); err != nil {
		return 0, err
	}
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil || n < 0 {
		return 0, dialogue.Invalid("Last-Event-ID", "must be the number of an event")
	}
	offset, place := record.After(n)
	switch place {
	case kept.Ahead:
		return 0, dialogue.Invalid("Last-Event-ID", "the request has sent no event with this number")
	case kept.Gone:
		return 0, dropped()
	}
	return offset, nil
}

// dropped refuses to resume a reply at a place whose bytes are no longer kept.
func dropped() *dialogue.Error {
	e := dialogue.Refusal(http.StatusGone, "events_not_kept",
		"the events that follow are no longer kept, because the reply is too long or there is no room")
	e.NoRetry = true
	return e
}
