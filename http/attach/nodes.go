package attach

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"stagedoor/actors/kept"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// Between gateways a kept reply is a line with a beginning, as JSON, and then its bytes. A reply that is cut off ends
// with its connection. These headers come before, as soon as the record is found.
const (
	scopeHeader = "Stagedoor-Scope"
	modelHeader = "Stagedoor-Model" // escaped as in a query
	placeHeader = "Stagedoor-Place" // a kept.Place
)

// beginning has the status and the carried headers of a reply. It is a line of the body and not the head of
// the reply between the gateways, because it is often not known when the head is sent: the request may still
// wait for its provider.
type beginning struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
}

// mostBeginning bounds the line of a beginning.
const mostBeginning = 64 << 10

// findTime bounds the wait for the other gateways when the reply of a request is looked for.
const findTime = 2 * time.Second

// serveNode sends another gateway the reply of a request that this one serves. It counts as a client of the record, so
// that a request with the policy cancel goes on.
func (s *Service) serveNode(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	owner := state.Owner(q.Get("owner"))
	record := s.Records.Find(owner, r.PathValue("id"))
	if record == nil {
		http.Error(w, "no such request here", http.StatusNotFound)
		return
	}
	defer record.Leave()
	leave, ok := s.Nodes.Relay(w, owner)
	if !ok {
		return
	}
	defer leave()
	offset, place := placeOf(record, q.Get("after"))
	sendRecord(w, r, record, offset, place)
}

// sendRecord sends another gateway a record from offset on. It sends only the headers if place is not kept.At, because
// the record does not have that part then. A reply that cannot be sent whole ends the connection without the end of its
// body, which the other gateway sees as a cut.
func sendRecord(w http.ResponseWriter, r *http.Request, record *kept.Record, offset int64, place kept.Place) {
	scope, model := record.Needs()
	h := w.Header()
	h.Set(originHeader, record.ID())
	h.Set(scopeHeader, scope)
	h.Set(modelHeader, url.QueryEscape(model))
	h.Set(placeHeader, strconv.Itoa(int(place)))
	w.WriteHeader(http.StatusOK)
	if http.NewResponseController(w).Flush() != nil || place != kept.At {
		return
	}
	_, err := readRecord(r.Context(), record, offset, func(status int, header http.Header) {
		line, _ := json.Marshal(beginning{status, header})
		_, _ = w.Write(append(line, '\n')) // the next write fails, too
	}, func(p []byte) error { return send(w, p) })
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// repeatTime bounds the wait for the other gateways before a request with an idempotency key is made. A busy gateway
// needs part of a second, and a request that is made twice is paid twice.
const repeatTime = 2 * time.Second

// serveRepeat sends another gateway the reply of the request that this one serves under an idempotency key. One that it
// refuses for want of room is not made a second time.
func (s *Service) serveRepeat(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	owner := state.Owner(q.Get("owner"))
	record, asked := s.Records.FindKey(owner, q.Get("key"))
	if record == nil {
		http.Error(w, "no such key here", http.StatusNotFound)
		return
	}
	defer record.Leave()
	if hex.EncodeToString(asked[:]) != q.Get("asked") {
		w.Header().Set(placeHeader, reusedKey)
		return
	}
	leave, ok := s.Nodes.Relay(w, owner)
	if !ok {
		return
	}
	defer leave()
	offset, place := record.After(0)
	sendRecord(w, r, record, offset, place)
}

// reusedKey is sent in placeHeader for a key that was used for something else.
const reusedKey = "reused"

// repeatElsewhere answers a request whose idempotency key another gateway serves or has served shortly ago, and reports
// whether one does. Gateways that do not answer are not waited for: they may be dead, and then the request has to be
// made again. It returns a *share.Refused if there is no room for the reply between the gateways.
func (s *Service) repeatElsewhere(w http.ResponseWriter, r *http.Request, key *identity.Key, q *kept.Request) (
	bool, error) {
	if s.Nodes == nil || s.Records.Has(q.Owner, q.Key) {
		return false, nil
	}
	if _, stored := work.FindReply(s.Store.View(), q.Owner, q.Key); stored {
		return false, nil
	}
	res, _, err := s.Nodes.First(r.Context(), q.Owner, repeatTime, "/repeats",
		url.Values{"owner": {string(q.Owner)}, "key": {q.Key}, "asked": {hex.EncodeToString(q.Asked[:])}})
	if refused := (*share.Refused)(nil); errors.As(err, &refused) {
		return true, refused
	}
	if err != nil || res == nil {
		return false, nil
	}
	defer res.Body.Close()
	switch res.Header.Get(placeHeader) {
	case reusedKey:
		return true, dialogue.IdempotencyKeyReused("was used for another request")
	case strconv.Itoa(int(kept.At)):
		repeats(w, res.Header.Get(originHeader))
		return true, s.relay(w, r, key, res.Body, false)
	}
	return true, notKept()
}

// resumeElsewhere does the work of resume for a request that another gateway may serve. It finds that gateway and
// passes its events on.
func (s *Service) resumeElsewhere(w http.ResponseWriter, r *http.Request, key *identity.Key, id, last string) error {
	owner := state.OwnerOf(key.ID, key.User)
	res, silent, err := s.Nodes.First(r.Context(), owner, findTime, "/requests/"+url.PathEscape(id),
		url.Values{"owner": {string(owner)}, "after": {last}})
	var refused *share.Refused
	switch {
	case errors.As(err, &refused):
		return refused
	case err != nil, res == nil && len(silent) > 0:
		return dialogue.Unavailable("gateway_silent", "the request may be served by another gateway, which does not "+
			"answer at the moment, try again later", retryStored, err)
	case res == nil:
		return dialogue.Refusal(http.StatusNotFound, "request_not_found",
			"there is no request with this id whose reply is kept")
	}
	defer res.Body.Close()
	model, err := url.QueryUnescape(res.Header.Get(modelHeader))
	if err == nil {
		err = s.Auth.Permit(key, r, res.Header.Get(scopeHeader), model)
	}
	if err != nil {
		return err
	}
	if place, err := strconv.Atoi(res.Header.Get(placeHeader)); err != nil || place != int(kept.At) {
		return refusalOf(kept.Place(place))
	}
	if err := s.Watchers.Take(string(owner), 1); err != nil {
		return err
	}
	defer s.Watchers.Give(string(owner), 1)
	w.Header()[originHeader] = []string{strings.Clone(id)}
	return s.relay(w, r, key, res.Body, last != "")
}

// relay sends a client the reply that another gateway keeps, until it ends or the client leaves. It returns an error
// only if nothing was sent. A reply that is cut off later cuts off the client's, by the panic http.ErrAbortHandler.
func (s *Service) relay(w http.ResponseWriter, r *http.Request, key *identity.Key, from io.ReadCloser,
	resumed bool) error {
	ctx, leave := s.Auth.Watch(r, key)
	defer leave()
	stop := context.AfterFunc(ctx, func() { from.Close() })
	defer stop()
	in := bufio.NewReaderSize(from, mostBeginning)
	line, err := in.ReadSlice('\n')
	var begun beginning
	if err == nil {
		err = json.Unmarshal(line, &begun)
	}
	switch {
	case ctx.Err() != nil && r.Context().Err() == nil:
		return context.Cause(ctx)
	case err != nil:
		return dialogue.Unavailable("gateway_silent",
			"the gateway that serves the request has ended or does not answer, try again later", retryStored, err)
	}
	begin(w, begun.Status, begun.Header, resumed)
	for piece := make([]byte, 32<<10); ; {
		n, err := in.Read(piece)
		if n > 0 && send(w, piece[:n]) != nil {
			return nil // the client has left
		}
		switch {
		case err == io.EOF && ctx.Err() == nil:
			return nil
		case err != nil:
			panic(http.ErrAbortHandler) // so that the client notices that its reply is cut off
		}
	}
}
