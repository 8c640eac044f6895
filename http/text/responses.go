package text

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/sjson"

	"stagedoor/actors/background"
	"stagedoor/actors/text"
	"stagedoor/http/accesslog"
	"stagedoor/http/attach"
	"stagedoor/http/auth"
	"stagedoor/http/overload"
	"stagedoor/http/sse"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

// serveResponses serves a request that may store its response, continue another one by
// previous_response_id, or run in the background.
//
// The steps have a fixed order. Room in the store is looked at before the model is called, so that no
// response is made that cannot be kept. The request's own input is remembered before the history is put
// before it (own), since only that belongs to the new record.
func (rc *requestContext) serveResponses() {
	sent := len(rc.payload)
	rc.claim = memory.NewClaim(rc.handlers.Env.Memory, string(rc.owner()))
	defer rc.claim.End()
	if err := rc.resolve(); err != nil {
		rc.refuse(err)
		return
	}
	if rc.head.Store || rc.head.Background {
		if err := work.CheckResponseRoom(rc.handlers.Store, rc.owner()); err != nil {
			rc.refuse(storeError(err, "store"))
			return
		}
	}
	// The body gets the form that the reply repeats, which is an object, although a client may write the id
	// alone.
	if rc.head.Conversation != "" {
		rc.payload = responses.WithConversation(rc.payload, rc.head.Conversation)
	}
	rc.recall()
	own := rc.payload
	previous, err := rc.continueFrom()
	if err != nil {
		rc.refuse(err)
		return
	}
	if err := rc.claim.Grow(rc.storedBytes(sent, own)); err != nil {
		rc.refuse(dialogue.NoMemory(err))
		return
	}
	defer func() { rc.turn.End() }()
	if err := rc.beginTurn(&rc.claim); err != nil {
		rc.refuse(err)
		return
	}
	if whole := rc.remember(previous); rc.warmsUp() {
		rc.warmUp(whole)
		return
	}
	if rc.head.Background {
		rc.runInBackground(own, previous)
		return
	}
	o := rc.textRequest()
	if rc.head.Compaction != dialogue.CompactionObject { // which names no response
		o.PreviousResponseID = previous
	}
	o.Translate = rc.head.Conversation != "" // the provider must not see the conversation, whose id is the gateway's
	switch {
	case rc.head.Store:
		rc.record = &record{requestContext: rc, own: own}
		o.Complete = rc.record.complete
	case rc.turn != nil:
		o.Complete = rc.completeTurn
	}
	rc.run(o)
}

// storedBytes estimates the memory for storing the request and for the history that was put before it. sent is
// the length of the request without the history.
func (rc *requestContext) storedBytes(sent int, own []byte) int64 {
	const perByte = 4 // copies: items, record, encoded record, transaction
	n := 2 * int64(max(len(rc.payload)-sent, 0))
	if rc.head.Store || rc.head.Background {
		n += perByte * int64(len(own))
	}
	return n
}

func (rc *requestContext) owner() state.Owner { return state.OwnerOf(rc.key.ID, rc.key.User) }

// continueFrom resolves previous_response_id. If a provider of the plan made the response, the id is sent
// to that provider. Otherwise the history is put into the body, and the id is returned for the reply to
// echo. The id of another owner's response is never sent to a provider, which cannot tell the gateway's
// users apart. An unknown id may also belong to another user or be deleted, so it is sent only to a
// provider that is configured with PassUnknownResponses.
func (rc *requestContext) continueFrom() (string, error) {
	id := rc.head.PreviousResponseID
	if id == "" {
		return "", nil
	}
	h, err := work.FindResponse(rc.handlers.Store.View(), id, rc.owner())
	if err != nil {
		native := rc.plan[0].Provider.Serves(rc.shape.Name) && !rc.head.Background
		if native && rc.plan[0].Provider.PassUnknownResponses && !work.KnowsResponse(rc.handlers.Store.View(), id) {
			return "", nil
		}
		return "", previousNotFound()
	}
	if !h.Finished() {
		return "", dialogue.Invalid("previous_response_id", "the response has not ended yet")
	}
	if h.Provider != "" && !rc.head.Background && !rc.remembered() {
		for i := range rc.plan {
			if rc.plan[i].Provider.Name == h.Provider && rc.plan[i].Provider.Serves(rc.shape.Name) {
				rc.plan = rc.plan[i : i+1]
				return "", nil
			}
		}
	}
	return id, rc.expand(id)
}

// expand puts the history up to a response before the input. The history contains no instructions (gateway.md
// 4.5). The history is collected from the records of all responses before, because each record has only the
// items of its own request and reply. The memory for them is claimed before they are read, because the history can be
// far larger than the request. What is left of it afterwards is claimed by the caller.
func (rc *requestContext) expand(id string) error {
	const perByte = 3 // copies: the records, their items, and the body with these
	claim := memory.NewClaim(rc.handlers.Env.Memory, string(rc.owner()))
	defer claim.End()
	size, err := work.ChainBytes(rc.handlers.Store, id, rc.owner())
	if err == nil {
		if err := claim.Grow(perByte * size); err != nil {
			return dialogue.NoMemory(err)
		}
	}
	history, err := work.ReadChain(rc.r.Context(), rc.handlers.Store, id, rc.owner())
	switch {
	case errors.Is(err, state.ErrNotFound):
		return previousNotFound()
	case err != nil:
		return storeError(err, "previous_response_id")
	}
	rc.payload = responses.Prepend(rc.payload, history)
	return nil
}

// previousNotFound returns the error for a response that is not stored. A response of another owner is not found
// either.
func previousNotFound() *dialogue.Error {
	return dialogue.NotStored("previous_response_id", "previous_response_not_found",
		"there is no stored response with this id")
}

// items returns a JSON array of stored items.
func items(list []jsonRaw) []byte {
	var j jsonw.Writer
	j.Array()
	for _, it := range list {
		j.Raw(it)
	}
	j.End()
	return j.Buf
}

// storeError returns the error to send for an error of the store. param names the member of the request that
// cannot be served, and is "" for the id in a path. The member store has an error of its own, because such a
// request can be sent again with store: false.
func storeError(err error, param string) *dialogue.Error {
	var quota *work.QuotaError
	switch {
	case errors.As(err, &quota):
		return overQuota(quota, param)
	case errors.Is(err, state.ErrNotFound):
		return dialogue.NotFound(param, "stored response with this id")
	case errors.Is(err, work.ErrChainTooLong), errors.Is(err, state.ErrTooLarge):
		return dialogue.Invalid(param, "the stored conversation is too long")
	case param != "store":
		return dialogue.StorageUnavailable("read and store responses and conversations", err)
	default:
		return dialogue.Unavailable("storage_unavailable",
			"the gateway cannot store responses at the moment, try again later or send store: false",
			5*time.Second, err)
	}
}

// overQuota returns the error for an owner whose quota of stored responses and conversations is used up.
func overQuota(e *work.QuotaError, param string) *dialogue.Error {
	refused := dialogue.StorageQuota(fmt.Sprintf(
		"%s: %d stored responses and %d conversations with %d MiB are kept for this user or key, which may keep %s: "+
			"delete some of them", cmp.Or(param, "body"), e.Kept.Responses, e.Kept.Conversations, e.Kept.Bytes>>20,
		quotaText(e.Quota))).About(param)
	if param == "store" {
		refused.Message += ", or send store: false"
	}
	return refused
}

// quotaText says which quotas are in force, for the error of an owner who has used them up.
func quotaText(q work.Quota) string {
	text := []string{}
	if q.Responses > 0 {
		text = append(text, strconv.Itoa(q.Responses)+" responses")
	}
	if q.Conversations > 0 {
		text = append(text, strconv.Itoa(q.Conversations)+" conversations")
	}
	if q.Bytes > 0 {
		text = append(text, strconv.FormatInt(q.Bytes>>20, 10)+" MiB")
	}
	return strings.Join(text, " and ")
}

// runInBackground starts a background response. The reply is the response with the status queued, or its
// stream of events. Both end without an effect on the response, which goes on until it has ended or is
// cancelled.
func (rc *requestContext) runInBackground(own []byte, previous string) {
	if rc.head.Stream {
		leave, err := rc.watch()
		if err != nil {
			rc.refuse(err)
			return
		}
		defer leave()
	}
	id := "resp_" + rc.handlers.Env.ID()
	o, err := rc.backgroundRequest(id, previous)
	if err != nil {
		rc.refuse(err)
		return
	}
	// A dry run stores nothing, so it runs as if the client waited for the response.
	if rc.dry != nil {
		rc.writeDry(rc.handlers.Requests.Begin(rc.r.Context(), o))
		return
	}
	queued := responses.Queued(own, id, rc.handlers.Env.Now())
	err = rc.handlers.Background.Start(
		rc.r.Context(),
		background.Job{ID: id, Owner: rc.owner(), Request: o, Previous: rc.head.PreviousResponseID,
			Queued: queued, Input: rc.inputItems(own), Turn: rc.turn, Streamed: rc.head.Stream, Kept: rc.keep(own)},
	)
	if err == nil {
		rc.turn = nil // the job ends it
	} else {
		var e *dialogue.Error
		var full *share.Refused
		if !errors.As(err, &e) && !errors.As(err, &full) {
			err = storeError(err, "background")
		}
		rc.refuse(err)
		return
	}
	rc.pass.Release(-1) // charges the estimate, because the usage is not known yet
	rc.note(nil)
	if rc.head.Stream {
		rc.follow(id, -1)
		return
	}
	writeJSON(rc.w, http.StatusOK, queued)
}

// watch counts a stream of a background response against its owner's share of watchers. The caller calls
// leave when the stream has ended.
func (rc *requestContext) watch() (leave func(), err error) {
	owner := string(rc.owner())
	if err := rc.handlers.Watchers.Take(owner, 1); err != nil {
		return nil, err
	}
	return func() { rc.handlers.Watchers.Give(owner, 1) }, nil
}

// follow streams the events of a background response after a sequence number, live or from the store.
// Background.Watch follows a response in flight, in this process or in another one. The events of a response
// that has ended are read from the store. Its whole log may be one record, so all of it counts as memory.
func (rc *requestContext) follow(id string, after int64) {
	claim := memory.NewClaim(rc.handlers.Env.Memory, string(rc.owner()))
	defer claim.End()
	counted, err := rc.claimLog(&claim, id)
	if err != nil {
		rc.refuse(err)
		return
	}
	rc.w.Header()[attach.SurvivesRestart] = attach.Survives(rc.handlers.Durable)
	out := sse.NewWriter(rc.w, "text/event-stream", rc.handlers.Env.Now)
	ctx, leave := rc.handlers.Auth.Watch(rc.r, &rc.key)
	defer leave()
	stop := rc.keepAlive(ctx, out)
	defer stop()
	live, err := rc.handlers.Background.Watch(ctx, id, rc.owner(), after, func(ev background.Event) error {
		after = ev.Sequence
		return out.SendLocked(ev.Raw)
	})
	if !live && !counted {
		_, err = rc.claimLog(&claim, id)
	}
	if !live && err == nil {
		_ = work.ReadEvents(ctx, rc.handlers.Store, id, rc.owner(), after, func(log []byte) error {
			return eachPiece(log, after, func(piece []byte, last int64) error {
				if after = last; ctx.Err() != nil {
					return ctx.Err()
				}
				return out.SendLocked(piece)
			})
		})
	}
	var refused *dialogue.Error
	if !errors.As(err, &refused) && errors.Is(err, state.ErrUnavailable) {
		refused = storeError(err, "")
	}
	if refused != nil || errors.As(context.Cause(ctx), &refused) {
		_ = out.SendLocked(responses.StreamError(refused, max(after, 0))) // the stream is over either way
	}
}

// claimLog claims the memory for the stored events of a response that has ended, and reports whether it has ended.
func (rc *requestContext) claimLog(claim *memory.Claim, id string) (ended bool, err error) {
	const perByte = 2 // copies: the log, and the event of it that is sent
	h, err := work.FindResponse(rc.handlers.Store.View(), id, rc.owner())
	if err != nil || !h.Finished() {
		return false, nil
	}
	if err := claim.Grow(perByte * h.EventSize); err != nil {
		return true, dialogue.NoMemory(err)
	}
	return true, nil
}

// readStored returns a stored response, which counts as memory while the claim lasts, together with the items that are
// made of it and the reply.
func readStored(ctx context.Context, s *state.State, h *work.ResponseHeader,
	claim *memory.Claim) (work.StoredResponse, error) {
	const perByte = 4 // copies: the record, its text, the items, and the reply
	if err := claim.Grow(perByte * (h.BodySize + h.InputSize)); err != nil {
		return work.StoredResponse{}, dialogue.NoMemory(err)
	}
	return work.ReadResponse(ctx, s, h.ID, h.Owner)
}

// refuseStored writes the error of a stored response that cannot be read.
func (rc *requestContext) refuseStored(err error) {
	var refused *dialogue.Error
	if !errors.As(err, &refused) {
		refused = storeError(err, "")
	}
	rc.refuse(refused)
}

// keepAlive sends heartbeats while another goroutine waits for events to send.
func (rc *requestContext) keepAlive(ctx context.Context, out *sse.Writer) (stop func()) {
	return out.Beat(ctx, rc.shape.Heartbeat(streamMode))
}

// identified identifies a request about something that is stored. It writes the error if that fails.
func (hs *Handlers) identified(w http.ResponseWriter, r *http.Request) (*requestContext, bool) {
	rc := &requestContext{handlers: hs, shape: responses.Shape, w: w, r: r}
	err := rc.identify()
	if err == nil {
		err = overload.Claim(r.Context(), rc.owner())
		rc.claim = memory.NewClaim(hs.Env.Memory, string(rc.owner()))
	}
	if err != nil {
		rc.refuse(err)
		return nil, false
	}
	accesslog.Note(w, slog.String("key", rc.key.ID))
	return rc, true
}

// stored identifies a request about a stored response and finds the response. It writes the error if
// that fails.
func (hs *Handlers) stored(w http.ResponseWriter, r *http.Request) (*requestContext, work.ResponseHeader, bool) {
	rc, ok := hs.identified(w, r)
	if !ok {
		return nil, work.ResponseHeader{}, false
	}
	h, err := work.FindResponse(hs.Store.View(), r.PathValue("id"), rc.owner())
	if err != nil {
		e := storeError(err, "")
		e.Code = "response_not_found"
		rc.refuse(e)
		return nil, h, false
	}
	return rc, h, true
}

// Response serves GET /v1/responses/{id}. With stream=true it resumes the stream of a background
// response.
func (hs *Handlers) Response(w http.ResponseWriter, r *http.Request) {
	rc, h, ok := hs.stored(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	if q.Get("stream") == "true" {
		after := int64(-1)
		if s := q.Get("starting_after"); s != "" {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < 0 {
				rc.refuse(dialogue.Invalid("starting_after", "must be a sequence number, 0 or more"))
				return
			}
			after = n
		}
		if !h.Background || !h.Streamed {
			rc.refuse(
				dialogue.Invalid("stream",
					"only a background response that was created with stream: true can be streamed again"),
			)
			return
		}
		if err := auth.AdmitWatcher(w, r, hs.Limits, &rc.key, hs.Env.Now()); err != nil {
			rc.refuse(err)
			return
		}
		leave, err := rc.watch()
		if err != nil {
			rc.refuse(err)
			return
		}
		defer leave()
		rc.follow(h.ID, after)
		return
	}
	defer rc.claim.End()
	stored, err := readStored(r.Context(), hs.Store, &h, &rc.claim)
	if err != nil {
		rc.refuseStored(err)
		return
	}
	body := stored.Body
	// The store has the status of the moment at which the record was written. A running response is asked for
	// the present one.
	if status := hs.Background.Status(h.ID, rc.owner()); status != "" && !responses.Terminal(responses.Status(body)) {
		body, _ = sjson.SetBytes(bytes.Clone(body), "status", status)
	}
	writeJSON(w, http.StatusOK, body)
}

// DeleteResponse serves DELETE /v1/responses/{id}. A running background response is cancelled first. The copy
// of the provider is deleted before that of the gateway, so that a failure leaves something that a client can
// delete again.
func (hs *Handlers) DeleteResponse(w http.ResponseWriter, r *http.Request) {
	rc, h, ok := hs.stored(w, r)
	if !ok {
		return
	}
	hs.Background.Cancel(r.Context(), h.ID, rc.owner())
	if err := hs.deleteUpstream(r.Context(), &h); err != nil {
		rc.refuse(err)
		return
	}
	if err := work.DeleteResponse(r.Context(), hs.Store, h.ID, rc.owner()); err != nil {
		rc.refuse(storeError(err, ""))
		return
	}
	writeJSON(w, http.StatusOK, responses.Deleted(h.ID))
}

// deleteUpstream deletes a response at the provider that made it. If that fails, the gateway keeps its
// own copy, so that the client can try again.
func (hs *Handlers) deleteUpstream(ctx context.Context, h *work.ResponseHeader) error {
	if h.Provider == "" {
		return nil
	}
	err := hs.Requests.DeleteStored(ctx, responses.Shape, string(h.Owner), h.Provider, responses.StoredPath(h.ID))
	if errors.Is(err, text.ErrNoProvider) {
		return nil
	}
	return err
}

// CancelResponse serves POST /v1/responses/{id}/cancel. The reply is the stored response. Cancelling one that
// has ended changes nothing and is no error.
func (hs *Handlers) CancelResponse(w http.ResponseWriter, r *http.Request) {
	rc, h, ok := hs.stored(w, r)
	if !ok {
		return
	}
	if !h.Background {
		rc.refuse(
			dialogue.Invalid("id",
				"only a background response can be cancelled; end others by closing their connection"),
		)
		return
	}
	hs.Background.Cancel(r.Context(), h.ID, rc.owner())
	defer rc.claim.End()
	stored, err := readStored(r.Context(), hs.Store, &h, &rc.claim)
	if err != nil {
		rc.refuseStored(err)
		return
	}
	writeJSON(w, http.StatusOK, stored.Body)
}

// InputItems serves GET /v1/responses/{id}/input_items.
func (hs *Handlers) InputItems(w http.ResponseWriter, r *http.Request) {
	rc, h, ok := hs.stored(w, r)
	if !ok {
		return
	}
	page, bad := itemPage(r.URL.Query())
	if bad != nil {
		rc.refuse(bad)
		return
	}
	defer rc.claim.End()
	stored, err := readStored(r.Context(), hs.Store, &h, &rc.claim)
	if err != nil {
		rc.refuseStored(err)
		return
	}
	for _, it := range responses.Elements(stored.Input) {
		if page.Add(it) {
			break
		}
	}
	rc.writePage(page, func(it jsonRaw) jsonRaw { return it })
}

// itemPage returns the page of a list of items that a query asks for. A limit that is no number, or 0,
// becomes -1, which NewItemPage refuses. Without a limit it is 0, which stands for the vendor's default.
func itemPage(q url.Values) (*responses.ItemPage, *dialogue.Error) {
	limit := 0
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n == 0 {
			n = -1
		}
		limit = n
	}
	return responses.NewItemPage(limit, q.Get("order"), q.Get("after"))
}

// writePage writes a page of items as show returns them.
func (rc *requestContext) writePage(page *responses.ItemPage, show func(jsonRaw) jsonRaw) {
	body, bad := page.List(show)
	if bad != nil {
		rc.refuse(bad)
		return
	}
	writeJSON(rc.w, http.StatusOK, body)
}
