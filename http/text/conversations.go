package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/actors/background"
	"stagedoor/actors/text"
	"stagedoor/http/auth"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/work"
)

const (
	// maxFirstItems is the vendor's bound of the items of a new conversation.
	maxFirstItems = 20
	// maxAddedItems bounds the items that one request adds. The vendor documents 20, but an SDK adds all items of a
	// turn at once, and a turn may have many calls.
	maxAddedItems = 1000
)

// beginTurn begins the use of the conversation that the request names, and puts its items before the input. A
// turn excludes all others of the conversation until the response has ended. Two at a time would both continue
// the same items, and one of the replies would be an answer to a conversation that never took place.
func (rc *requestContext) beginTurn(claim *memory.Claim) error {
	if rc.head.Conversation == "" || rc.dry != nil || rc.warmsUp() {
		return rc.readConversation(claim)
	}
	turn, err := work.BeginTurn(rc.r.Context(), rc.handlers.Store, rc.head.Conversation, rc.owner())
	if err != nil {
		return conversationError(err, "conversation")
	}
	rc.turn = turn
	return conversationError(rc.putConversation(&turn.Conversation, claim), "conversation")
}

// readConversation puts the items of the conversation that the request names before its input without using the
// conversation, for a request that adds nothing or whose turn begins elsewhere.
func (rc *requestContext) readConversation(claim *memory.Claim) error {
	if rc.head.Conversation == "" {
		return nil
	}
	c, err := work.FindConversation(rc.handlers.Store.View(), rc.head.Conversation, rc.owner())
	if err == nil {
		err = rc.putConversation(&c, claim)
	}
	return conversationError(err, "conversation")
}

// putConversation puts the items of a conversation before the input, and keeps the items of the input as they are
// added later. It refuses an input that does not fit the items.
// The memory is claimed before anything is read, because the conversation of a client can be far
// larger than its request.
func (rc *requestContext) putConversation(c *work.Conversation, claim *memory.Claim) error {
	const perByte = 4 // copies: the items, the body with them, and what the checks and the commit take
	if err := claim.Grow(perByte * (c.Bytes + int64(len(rc.payload)))); err != nil {
		return dialogue.NoMemory(err)
	}
	history, err := work.ReadAllItems(rc.r.Context(), rc.handlers.Store, c.ID, c.Next)
	if err != nil {
		return err
	}
	input := responses.InputItems(rc.payload, rc.handlers.Env.ID)
	if len(history)+len(input) == 0 && !rc.warmsUp() && !gjson.GetBytes(rc.payload, "prompt").Exists() {
		return dialogue.Missing("input")
	}
	if bad := responses.CheckItems("input", history, input); bad != nil {
		return bad
	}
	if bad := responses.CheckCalls(history, input); bad != nil && !rc.warmsUp() {
		return bad
	}
	rc.input = items(input)
	rc.payload = responses.Prepend(rc.payload, history)
	return nil
}

// inputItems returns the items of a request's own input as they are stored.
func (rc *requestContext) inputItems(own []byte) []byte {
	if rc.turn != nil {
		return rc.input
	}
	return items(responses.InputItems(own, rc.handlers.Env.ID))
}

// completeTurn adds the items of a response that is not stored to its conversation, before the client learns
// that the response has ended. It implements text.Request.Complete. The context of the request is not used,
// because the client may have left, and the conversation must have the reply that was made and charged for.
// If the items cannot be added, the client gets a failed response in place of the completed one, because it
// would otherwise build on items that are not there.
func (rc *requestContext) completeTurn(_ context.Context, _ text.Meta, last []byte) ([]byte, *dialogue.Error) {
	doc := endedResponse(last)
	if doc == nil {
		return nil, nil
	}
	ctx := context.WithoutCancel(rc.r.Context())
	added, err := background.TurnItems(ctx, rc.turn, rc.input, doc)
	if err == nil {
		err = rc.turn.Add(ctx, added)
	}
	if err != nil {
		e := storeError(err, "conversation")
		return failedEvent(doc, last, e), e
	}
	rc.turn.End()
	rc.handlers.items.add(rc.owner(), rc.turn.Conversation.ID, added)
	return nil, nil
}

// conversationError returns the error to send for an error about a conversation, or nil.
// All errors of the state that concern conversations are translated here, so that the routes and
// the responses that use a conversation answer alike.
func conversationError(err error, param string) error {
	var known *dialogue.Error
	var quota *work.QuotaError
	var twice *work.DuplicateItemError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, state.ErrNotFound):
		e := dialogue.NotFound(param, "conversation with this id")
		e.Code = "conversation_not_found"
		return e
	case errors.Is(err, work.ErrNoItem):
		return dialogue.NotStored("item_id", "item_not_found", "is not the id of an item of the conversation")
	case errors.Is(err, work.ErrConversationInUse):
		return dialogue.ConversationLocked()
	case errors.Is(err, work.ErrConversationFull):
		return dialogue.Invalid(param, fmt.Sprintf("a conversation has at most %d items and %d MiB: begin another one",
			work.MaxConversationItems, work.MaxConversationBytes>>20))
	case errors.As(err, &twice):
		return responses.DuplicateItem(param, twice.ID)
	case errors.As(err, &quota), errors.Is(err, state.ErrUnavailable):
		return storeError(err, param)
	}
	return err
}

// conversation identifies a request about a conversation, finds the conversation and runs serve. It writes an error.
func (hs *Handlers) conversation(
	w http.ResponseWriter, r *http.Request, serve func(*requestContext, *work.Conversation) error,
) {
	rc, ok := hs.identified(w, r)
	if !ok {
		return
	}
	defer rc.claim.End()
	c, err := work.FindConversation(hs.Store.View(), r.PathValue("id"), rc.owner())
	if err == nil {
		err = serve(rc, &c)
	}
	if err != nil {
		rc.refuse(conversationError(err, ""))
	}
}

// change identifies a request that creates or changes a conversation, counts it against the limits of its
// key, reads its body with at most maxItems items, and runs serve. It writes an error. Reads are not counted
// against the limits, see conversation.
func (hs *Handlers) change(w http.ResponseWriter, r *http.Request, maxItems int,
	serve func(*requestContext, responses.ConversationRequest) error) {
	rc := &requestContext{handlers: hs, shape: responses.Shape, w: w, r: r}
	defer func() { rc.pass.Release(0) }()
	if err := rc.change(maxItems, serve); err != nil {
		rc.refuse(conversationError(err, "items"))
	}
	if rc.body != nil {
		rc.body.free()
	}
}

// change serves a request that changes a conversation. It reads the body under the same limits as a request to a
// model, since items are as large as prompts.
func (rc *requestContext) change(
	maxItems int, serve func(*requestContext, responses.ConversationRequest) error,
) (err error) {
	if err = rc.identify(); err != nil {
		return err
	}
	if rc.pass, err = auth.Admit(rc.w, rc.r, rc.handlers.Limits, &rc.key, rc.handlers.Env.Now()); err != nil {
		return err
	}
	if rc.body, err = readBody(rc.w, rc.r); err != nil {
		return err
	}
	body := rc.body.b
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err = fields.CheckBody(body, rc.shape.Members); err != nil {
		return err
	}
	rc.claim = memory.NewClaim(rc.handlers.Env.Memory, string(rc.owner()))
	defer rc.claim.End()
	if err = rc.claim.Grow(memory.OfTranslation(body)); err != nil {
		return dialogue.NoMemory(err)
	}
	q, bad := responses.ReadConversation(body, maxItems)
	if bad != nil {
		return bad
	}
	return serve(rc, q)
}

// newItems returns the items of a request as they are added to a conversation, with references replaced by items.
// References are replaced when the items are added and not when they are read, so that the
// conversation does not depend on what they name, which may be deleted.
func (rc *requestContext) newItems(q *responses.ConversationRequest) ([]jsonRaw, error) {
	if q.Input == nil {
		return nil, nil
	}
	rc.payload = q.Input
	if err := rc.resolve(); err != nil {
		var refused *dialogue.Error
		if errors.As(err, &refused) {
			refused.About("items")
		}
		return nil, err
	}
	list := responses.InputItems(rc.payload, rc.handlers.Env.ID)
	if bad := responses.CheckItems("items", nil, list); bad != nil {
		return nil, bad
	}
	return list, nil
}

// CreateConversation serves POST /v1/conversations.
func (hs *Handlers) CreateConversation(w http.ResponseWriter, r *http.Request) {
	hs.change(w, r, maxFirstItems, func(rc *requestContext, q responses.ConversationRequest) error {
		list, err := rc.newItems(&q)
		if err != nil {
			return err
		}
		if q.Metadata == nil {
			q.Metadata = jsonRaw("{}")
		}
		c := work.Conversation{ID: "conv_" + hs.Env.ID(), Owner: rc.owner()}
		if c, err = work.PutConversation(r.Context(), hs.Store, c, q.Metadata, list); err != nil {
			return err
		}
		hs.items.add(c.Owner, c.ID, list)
		return rc.writeConversation(&c, q.Metadata)
	})
}

// writeConversation writes a conversation. metadata is read if it is nil.
func (rc *requestContext) writeConversation(c *work.Conversation, metadata jsonRaw) (err error) {
	if metadata == nil {
		if metadata, err = work.ReadMetadata(rc.r.Context(), rc.handlers.Store, c.ID, c.Owner); err != nil {
			return err
		}
	}
	rc.note(nil)
	writeJSON(rc.w, http.StatusOK, responses.Conversation(c.ID, c.Created.Unix(), metadata))
	return nil
}

// Conversation serves GET /v1/conversations/{id}.
func (hs *Handlers) Conversation(w http.ResponseWriter, r *http.Request) {
	hs.conversation(w, r, func(rc *requestContext, c *work.Conversation) error { return rc.writeConversation(c, nil) })
}

// UpdateConversation serves POST /v1/conversations/{id}, which replaces the metadata as a whole: a key that the
// body leaves out is gone.
func (hs *Handlers) UpdateConversation(w http.ResponseWriter, r *http.Request) {
	hs.change(w, r, 0, func(rc *requestContext, q responses.ConversationRequest) error {
		if q.Metadata == nil {
			return dialogue.Missing("metadata")
		}
		c, err := work.SetMetadata(r.Context(), hs.Store, r.PathValue("id"), rc.owner(), q.Metadata)
		if err != nil {
			return conversationError(err, "")
		}
		return rc.writeConversation(&c, q.Metadata)
	})
}

// DeleteConversation serves DELETE /v1/conversations/{id}. A conversation that a response uses is not deleted
// (ErrConversationInUse).
func (hs *Handlers) DeleteConversation(w http.ResponseWriter, r *http.Request) {
	hs.conversation(w, r, func(_ *requestContext, c *work.Conversation) error {
		if err := work.DeleteConversation(r.Context(), hs.Store, c.ID, c.Owner); err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, responses.DeletedConversation(c.ID))
		return nil
	})
}

// AddConversationItems serves POST /v1/conversations/{id}/items.
func (hs *Handlers) AddConversationItems(w http.ResponseWriter, r *http.Request) {
	hs.change(w, r, maxAddedItems, func(rc *requestContext, q responses.ConversationRequest) error {
		c, err := work.FindConversation(hs.Store.View(), r.PathValue("id"), rc.owner())
		if err != nil {
			return conversationError(err, "")
		}
		if q.Input == nil {
			return dialogue.Missing("items")
		}
		list, err := rc.newItems(&q)
		if err != nil {
			return err
		}
		if c, err = work.AddItems(r.Context(), hs.Store, c.ID, c.Owner, list); err != nil {
			return err
		}
		hs.items.add(c.Owner, c.ID, list)
		rc.note(nil)
		writeJSON(w, http.StatusOK, responses.ShownItems(list, includes(r)))
		return nil
	})
}

// includes returns the values of include in the query: repeated, with brackets or as a list with commas.
func includes(r *http.Request) (list []string) {
	q := r.URL.Query()
	for _, v := range append(q["include"], q["include[]"]...) {
		list = append(list, strings.Split(v, ",")...)
	}
	return list
}

// ConversationItems serves GET /v1/conversations/{id}/items.
func (hs *Handlers) ConversationItems(w http.ResponseWriter, r *http.Request) {
	hs.conversation(w, r, func(rc *requestContext, c *work.Conversation) error {
		page, bad := itemPage(r.URL.Query())
		if bad != nil {
			return bad
		}
		if err := rc.eachItem(c, page.Add); err != nil {
			return err
		}
		include := includes(r)
		rc.writePage(page, func(it jsonRaw) jsonRaw { return responses.ShownItem(it, include) })
		return nil
	})
}

// errEnough ends the reading of items.
var errEnough = errors.New("no more items are needed")

// eachItem calls fn with the items of a conversation until it returns true. The conversation counts as memory
// of its owner until the reply was sent, because fn may keep copies.
func (rc *requestContext) eachItem(c *work.Conversation, fn func(item []byte) (enough bool)) error {
	const perByte = 2 // copies: the items and the reply
	if err := rc.claim.Grow(perByte * c.Bytes); err != nil {
		return dialogue.NoMemory(err)
	}
	err := work.ReadItems(rc.r.Context(), rc.handlers.Store, c.ID, c.Next, func(item []byte) error {
		if fn(item) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// ConversationItem serves GET /v1/conversations/{id}/items/{item_id}.
// There is no index of items by their ids, which would cost memory for every conversation. The
// items are read until the right one comes.
func (hs *Handlers) ConversationItem(w http.ResponseWriter, r *http.Request) {
	hs.conversation(w, r, func(rc *requestContext, c *work.Conversation) error {
		var found jsonRaw
		err := rc.eachItem(c, func(item []byte) bool {
			if gjson.GetBytes(item, "id").Str == r.PathValue("item_id") {
				found = bytes.Clone(item)
			}
			return found != nil
		})
		switch {
		case err != nil:
			return err
		case found == nil:
			return work.ErrNoItem
		}
		writeJSON(w, http.StatusOK, responses.ShownItem(found, includes(r)))
		return nil
	})
}

// DeleteConversationItem serves DELETE /v1/conversations/{id}/items/{item_id}. It answers with the conversation.
func (hs *Handlers) DeleteConversationItem(w http.ResponseWriter, r *http.Request) {
	hs.conversation(w, r, func(rc *requestContext, c *work.Conversation) error {
		left, err := work.DeleteItem(r.Context(), hs.Store, c.ID, c.Owner, r.PathValue("item_id"))
		if err != nil {
			return err
		}
		return rc.writeConversation(&left, nil)
	})
}
