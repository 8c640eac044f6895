package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/actors/background"
	"stagedoor/actors/text"
	"stagedoor/http/accesslog"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/http/overload"
	"stagedoor/http/sse"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/share"
)

// serveResponses adds to the door what only the responses shape has: history by
// previous_response_id, storage, background.
func (v *visit) serveResponses() {
	if err := v.resolve(); err != nil {
		v.refuse(err)
		return
	}
	if v.head.Store || v.head.Background {
		if err := v.doors.Store.ResponseRoom(v.owner()); err != nil {
			v.refuse(storeError(err, "store"))
			return
		}
	}
	own := v.payload
	previous, err := v.continueFrom()
	if err != nil {
		v.refuse(err)
		return
	}
	claim := memory.NewClaim(v.doors.Env.Memory, string(v.owner()))
	defer claim.End()
	if err := claim.Grow(v.storedBytes(own)); err != nil {
		v.refuse(dialogue.NoMemory(err))
		return
	}
	if v.head.Background {
		v.runInBackground(own, previous)
		return
	}
	o := v.textRequest()
	o.PreviousResponseID = previous
	if v.head.Store {
		v.record = &record{visit: v, own: own}
		o.Complete = v.record.complete
	}
	v.run(o)
}

// storedBytes is about what storing the request takes in memory for a while, and the
// history that was put before it.
func (v *visit) storedBytes(own []byte) int64 {
	const perByte = 4 // items, their record and its way into the store
	n := 2 * int64(len(v.payload)-len(own))
	if v.head.Store || v.head.Background {
		n += perByte * int64(len(own))
	}
	return n
}

func (v *visit) owner() state.Owner { return state.OwnerOf(v.key.ID, v.key.User) }

// continueFrom resolves previous_response_id. A response that this very
// provider made is left to it; any other history is put into the body, and the
// id returned, so that the reply can echo it. An id that is kept for somebody
// else is never passed on: to its provider all gateway keys are one. One that is
// not known here may be anybody's, too, or deleted, so it is passed on only to a
// provider that is configured so.
func (v *visit) continueFrom() (string, error) {
	id := v.head.PreviousResponseID
	if id == "" {
		return "", nil
	}
	h, err := v.doors.Store.ResponseHeader(id, v.owner())
	if err != nil {
		native := v.plan[0].Provider.Serves(v.shape.Name) && !v.head.Background
		if native && v.plan[0].Provider.PassUnknownResponses && !v.doors.Store.KnowsResponse(id) {
			return "", nil
		}
		return "", previousNotFound()
	}
	if !h.Finished() {
		return "", dialogue.Invalid("previous_response_id", "the response has not ended yet")
	}
	if h.Provider != "" && !v.head.Background {
		for i := range v.plan {
			if v.plan[i].Provider.Name == h.Provider && v.plan[i].Provider.Serves(v.shape.Name) {
				v.plan = v.plan[i : i+1]
				return "", nil
			}
		}
	}
	return id, v.expand(id)
}

// expand puts the history up to a response before the input. Instructions are
// not part of it (gateway.md 4.5).
func (v *visit) expand(id string) error {
	history, err := v.doors.Store.Chain(v.r.Context(), id, v.owner())
	switch {
	case errors.Is(err, state.ErrNotFound):
		return previousNotFound()
	case err != nil:
		return storeError(err, "previous_response_id")
	}
	v.payload = responses.Prepend(v.payload, history)
	return nil
}

func previousNotFound() *dialogue.Error {
	return &dialogue.Error{Status: 404, Type: dialogue.TypeNotFound, Param: "previous_response_id",
		Code: "previous_response_not_found", Message: "previous_response_id: there is no stored response with this id"}
}

// items makes a JSON array of stored items.
func items(list []jsonRaw) []byte {
	var j jsonw.Writer
	j.Array()
	for _, it := range list {
		j.Raw(it)
	}
	j.End()
	return j.Buf
}

// storeError is what a client hears of the store.
func storeError(err error, param string) *dialogue.Error {
	var quota *state.QuotaError
	switch {
	case errors.As(err, &quota):
		return overQuota(quota)
	case errors.Is(err, state.ErrNotFound):
		return &dialogue.Error{Status: 404, Type: dialogue.TypeNotFound, Param: param, Code: "not_found", Message: "there is no stored response with this id"}
	case errors.Is(err, state.ErrChainTooLong), errors.Is(err, state.ErrTooLarge):
		return dialogue.Invalid(param, "the stored conversation is too long")
	default:
		return &dialogue.Error{Status: 503, Type: dialogue.TypeAPI, Code: "storage_unavailable", RetryAfter: 5 * time.Second,
			Message: "the gateway cannot store responses at the moment, try again later or send store: false", Cause: err}
	}
}

// overQuota is the error of an owner that keeps as many responses as it may. It is no
// 429, because it does not pass by itself and SDKs would try again.
func overQuota(e *state.QuotaError) *dialogue.Error {
	return &dialogue.Error{Status: http.StatusForbidden, Type: dialogue.TypePermission, Param: "store", Code: "storage_quota_exceeded", NoRetry: true,
		Message: fmt.Sprintf("store: %d stored responses with %d MiB are kept for this user or key, which may keep %s: delete some of them, or send store: false",
			e.Kept.Responses, e.Kept.Bytes>>20, quotaText(e.Quota))}
}

func quotaText(q state.Quota) string {
	text := []string{}
	if q.Responses > 0 {
		text = append(text, strconv.Itoa(q.Responses))
	}
	if q.Bytes > 0 {
		text = append(text, strconv.FormatInt(q.Bytes>>20, 10)+" MiB")
	}
	return strings.Join(text, " and ")
}

// runInBackground starts a response nobody waits for.
func (v *visit) runInBackground(own []byte, previous string) {
	if v.head.Stream {
		leave, err := v.watch()
		if err != nil {
			v.refuse(err)
			return
		}
		defer leave()
	}
	id := "resp_" + v.doors.Env.ID()
	o, err := v.backgroundRequest(id, previous)
	if err != nil {
		v.refuse(err)
		return
	}
	queued := responses.Queued(own, id, v.doors.Env.Now())
	err = v.doors.Background.Start(v.r.Context(), background.Job{ID: id, Owner: v.owner(), Request: o, Previous: v.head.PreviousResponseID,
		Queued: queued, Input: items(responses.InputItems(own, v.doors.Env.ID)), Streamed: v.head.Stream, Kept: v.keep(own)})
	if err != nil {
		var e *dialogue.Error
		var full *share.Refused
		if !errors.As(err, &e) && !errors.As(err, &full) {
			err = storeError(err, "background")
		}
		v.refuse(err)
		return
	}
	v.pass.Release(-1) // what it will use is not known yet
	v.note(nil)
	if v.head.Stream {
		v.follow(id, -1)
		return
	}
	writeJSON(v.w, http.StatusOK, queued)
}

// watch counts a stream of a background response in. The caller calls leave when it
// has ended.
func (v *visit) watch() (leave func(), err error) {
	owner := string(v.owner())
	if err := v.doors.Watchers.Take(owner, 1); err != nil {
		return nil, err
	}
	return func() { v.doors.Watchers.Give(owner, 1) }, nil
}

// follow streams a background response from an event on: live, or from the store.
func (v *visit) follow(id string, after int64) {
	out := sse.NewWriter(v.w, "text/event-stream", v.doors.Env.Now)
	ctx, leave := v.doors.Auth.Watch(v.r, &v.key)
	defer leave()
	stop := v.keepAlive(ctx, out)
	defer stop()
	var last []byte // event that was sent
	live, _ := v.doors.Background.Watch(ctx, id, v.owner(), after, func(raw []byte) error {
		last = raw
		return out.SendLocked(raw)
	})
	if !live {
		_ = v.doors.Store.Events(ctx, id, v.owner(), after, func(log []byte) error {
			return out.SendLocked(eventsAfter(log, after))
		})
	}
	var refused *dialogue.Error
	if errors.As(context.Cause(ctx), &refused) {
		_ = out.SendLocked(responses.StreamError(refused, numberOf(last, after))) // the stream is over either way
	}
}

// numberOf is the sequence number of an event, otherwise one that is 0 or more.
func numberOf(raw []byte, otherwise int64) int64 {
	if ev, err := upstream.NewEventReader(bytes.NewReader(raw)).Next(); err == nil {
		return gjson.GetBytes(ev.Data, "sequence_number").Int()
	}
	return max(otherwise, 0)
}

// keepAlive sends heartbeats beside a sender that waits elsewhere.
func (v *visit) keepAlive(ctx context.Context, out *sse.Writer) (stop func()) {
	return out.Beat(ctx, v.shape.Heartbeat(streamMode))
}

// stored is a request about a stored response.
func (d *Doors) stored(w http.ResponseWriter, r *http.Request) (*visit, state.ResponseHeader, bool) {
	v := &visit{doors: d, shape: responses.Shape, w: w, r: r}
	err := v.identify()
	if err == nil {
		err = overload.Claim(r.Context(), v.owner())
	}
	if err != nil {
		v.refuse(err)
		return nil, state.ResponseHeader{}, false
	}
	accesslog.Note(w, slog.String("key", v.key.ID))
	h, err := d.Store.ResponseHeader(r.PathValue("id"), v.owner())
	if err != nil {
		e := storeError(err, "")
		e.Code = "response_not_found"
		v.refuse(e)
		return nil, h, false
	}
	return v, h, true
}

// Response is GET /v1/responses/{id}, also as a stream to be resumed.
func (d *Doors) Response(w http.ResponseWriter, r *http.Request) {
	v, h, ok := d.stored(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	if q.Get("stream") == "true" {
		after := int64(-1)
		if s := q.Get("starting_after"); s != "" {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < 0 {
				v.refuse(dialogue.Invalid("starting_after", "must be a sequence number, 0 or more"))
				return
			}
			after = n
		}
		if !h.Background || !h.Streamed {
			v.refuse(dialogue.Invalid("stream", "only a background response that was created with stream: true can be streamed again"))
			return
		}
		if err := auth.AdmitWatcher(w, r, d.Limits, &v.key, d.Env.Now()); err != nil {
			v.refuse(err)
			return
		}
		leave, err := v.watch()
		if err != nil {
			v.refuse(err)
			return
		}
		defer leave()
		v.follow(h.ID, after)
		return
	}
	stored, err := d.Store.Response(r.Context(), h.ID, v.owner())
	if err != nil {
		v.refuse(storeError(err, ""))
		return
	}
	body := stored.Body
	if status := d.Background.Status(h.ID, v.owner()); status != "" && !responses.Terminal(responses.Status(body)) {
		body, _ = sjson.SetBytes(bytes.Clone(body), "status", status)
	}
	writeJSON(w, http.StatusOK, body)
}

// DeleteResponse is DELETE /v1/responses/{id}.
func (d *Doors) DeleteResponse(w http.ResponseWriter, r *http.Request) {
	v, h, ok := d.stored(w, r)
	if !ok {
		return
	}
	d.Background.Cancel(r.Context(), h.ID, v.owner())
	if err := d.deleteUpstream(r.Context(), &h); err != nil {
		v.refuse(err)
		return
	}
	if err := d.Store.DeleteResponse(r.Context(), h.ID, v.owner()); err != nil {
		v.refuse(storeError(err, ""))
		return
	}
	writeJSON(w, http.StatusOK, responses.Deleted(h.ID))
}

// deleteUpstream deletes a response where its provider keeps it. The response is
// kept here if that fails, so that the client can try again.
func (d *Doors) deleteUpstream(ctx context.Context, h *state.ResponseHeader) error {
	if h.Provider == "" {
		return nil
	}
	err := d.Requests.DeleteStored(ctx, responses.Shape, h.Provider, responses.StoredPath(h.ID))
	if errors.Is(err, text.ErrNoProvider) {
		return nil
	}
	return err
}

// CancelResponse is POST /v1/responses/{id}/cancel.
func (d *Doors) CancelResponse(w http.ResponseWriter, r *http.Request) {
	v, h, ok := d.stored(w, r)
	if !ok {
		return
	}
	if !h.Background {
		v.refuse(dialogue.Invalid("id", "only a background response can be cancelled; end others by closing their connection"))
		return
	}
	d.Background.Cancel(r.Context(), h.ID, v.owner())
	stored, err := d.Store.Response(r.Context(), h.ID, v.owner())
	if err != nil {
		v.refuse(storeError(err, ""))
		return
	}
	writeJSON(w, http.StatusOK, stored.Body)
}

// InputItems is GET /v1/responses/{id}/input_items.
func (d *Doors) InputItems(w http.ResponseWriter, r *http.Request) {
	v, h, ok := d.stored(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	limit := 20
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 100 {
			v.refuse(dialogue.Invalid("limit", "must be between 1 and 100"))
			return
		}
		limit = n
	}
	stored, err := d.Store.Response(r.Context(), h.ID, v.owner())
	if err != nil {
		v.refuse(storeError(err, ""))
		return
	}
	var list []jsonRaw
	for _, it := range gjson.ParseBytes(stored.Input).Array() {
		list = append(list, jsonRaw(it.Raw))
	}
	page, bad := responses.ItemList(list, limit, q.Get("order"), q.Get("after"))
	if bad != nil {
		envelope.Write(w, v.shape.Envelope, bad)
		return
	}
	writeJSON(w, http.StatusOK, page)
}
