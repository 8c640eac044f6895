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

// resume does the work of Events. It checks the key, finds the record here or on another gateway, and sends the events
// that follow. After an error nothing was sent.
func (s *Service) resume(w http.ResponseWriter, r *http.Request) error {
	key, err := s.Auth.Authenticate(r, false)
	if err != nil {
		return err
	}
	accesslog.Note(w, slog.String("key", key.ID))
	if err := auth.AdmitWatcher(w, r, s.Limits, &key, s.Records.Now()); err != nil {
		return err
	}
	owner, id, last := state.OwnerOf(key.ID, key.User), r.PathValue("id"), r.Header.Get("Last-Event-ID")
	if n, err := strconv.ParseInt(last, 10, 64); last != "" && (err != nil || n < 0) {
		return dialogue.Invalid("Last-Event-ID", "must be the number of an event")
	}
	record := s.Records.Find(owner, id)
	if record == nil {
		return s.resumeElsewhere(w, r, &key, id, last)
	}
	defer record.Leave()
	scope, model := record.Needs()
	if err := s.Auth.Permit(&key, r, scope, model); err != nil {
		return err
	}
	offset, place := placeOf(record, last)
	if err := refusalOf(place); err != nil {
		return err
	}
	if err := s.Watchers.Take(string(owner), 1); err != nil {
		return err
	}
	defer s.Watchers.Give(string(owner), 1)
	w.Header()[originHeader] = []string{record.ID()}
	return s.follow(w, r, &key, record, offset, dropped)
}

// placeOf returns the offset from which a client goes on. last is the number of the last event that it received, or ""
// if it received none.
func placeOf(record *kept.Record, last string) (offset int64, place kept.Place) {
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return 0, kept.At
	}
	return record.After(n)
}

// refusalOf returns the error for a client that cannot go on at a place, or nil.
func refusalOf(place kept.Place) error {
	switch place {
	case kept.Ahead:
		return dialogue.Invalid("Last-Event-ID", "the request has sent no event with this number")
	case kept.Gone:
		return dropped()
	}
	return nil
}

// dropped refuses to resume a reply at a place whose bytes are no longer kept.
func dropped() *dialogue.Error {
	e := dialogue.Refusal(http.StatusGone, "events_not_kept",
		"the events that follow are no longer kept, because the reply is too long or there is no room")
	e.NoRetry = true
	return e
}
