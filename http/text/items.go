package text

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

const (
	// maxItems bounds the index of items.
	maxItems = 100_000
	// maxSearch limits the owner's latest responses that are searched for an item that is not in the index, as after
	// a restart, and maxSearchedConversations limits its conversations.
	maxSearch                = 200
	maxSearchedConversations = 50
	// maxSearchBytes limits the bytes of the responses and conversations that are read for one request, which may be
	// far shorter. Each of them may have 32 MiB.
	maxSearchBytes = 64 << 20
)

// itemIndex remembers which response or conversation an item of an owner belongs to. It only saves a search,
// because the response or conversation is looked up in the store with its owner.
type itemIndex struct{ *share.Cache[string] }

func newItemIndex(most int) itemIndex { return itemIndex{share.NewCache[string](most, 0, nil)} }

// add adds items of an owner's response or conversation. Providers and clients choose the ids, so long ones are left
// out to bound the memory of the index. A reference to such an item costs a search.
func (x itemIndex) add(owner state.Owner, source string, items []json.RawMessage) {
	for _, it := range items {
		if id := gjson.GetBytes(it, "id").String(); id != "" && len(id) <= state.MaxID {
			x.Put(string(owner), id, source, 1)
		}
	}
}

// resolve replaces references to stored items with the items. Another reference is sent to a provider only if the
// provider is configured with PassUnknownResponses, because it cannot tell the gateway's users apart and would return
// the items of any of them (faults.md S9). A conversation needs the item itself.
func (rc *requestContext) resolve() error {
	if !bytes.Contains(rc.payload, []byte("item_reference")) {
		return nil
	}
	ids := responses.References(rc.payload)
	if len(ids) == 0 {
		return nil
	}
	l := library{ctx: rc.r.Context(), handlers: rc.handlers, owner: rc.owner(), wanted: make(map[string]bool, len(ids)),
		known: make(map[string]json.RawMessage), seen: make(map[string]bool), left: maxSearchBytes, claim: &rc.claim}
	for _, id := range ids {
		l.wanted[id] = true
	}
	l.search(ids)
	if l.err != nil {
		return l.err
	}
	forward := rc.plan != nil && rc.plan[0].Provider.Serves(rc.shape.Name) &&
		rc.plan[0].Provider.PassUnknownResponses && rc.head.Conversation == ""
	body, bad := responses.Resolve(rc.payload, l.known, forward, maxBody, func(n int64) *dialogue.Error {
		if err := rc.claim.Grow(n); err != nil {
			return dialogue.NoMemory(err)
		}
		return nil
	})
	if bad != nil {
		return bad
	}
	rc.payload = body
	return nil
}

// library looks up stored items of an owner for one request.
type library struct {
	ctx      context.Context
	handlers *Handlers
	owner    state.Owner
	wanted   map[string]bool            // the ids that are not known yet
	known    map[string]json.RawMessage // the items that were found
	seen     map[string]bool            // the responses and conversations that were read
	left     int64                      // bytes that may still be read
	claim    *memory.Claim              // for the items that were found
	err      *dialogue.Error
}

// errAllFound ends the reading of a conversation.
var errAllFound = errors.New("all items are found")

// search looks for the wanted items: first where the index says, then in the owner's latest responses and
// conversations, the newest first.
func (l *library) search(ids []string) {
	for _, id := range ids {
		if source, ok := l.handlers.items.Get(string(l.owner), id); ok && l.wanted[id] {
			l.read(source)
		}
	}
	if len(l.wanted) == 0 || l.err != nil {
		return
	}
	v := l.handlers.Store.View()
	var sources []string
	for _, h := range work.LatestResponses(v, l.owner, maxSearch) {
		sources = append(sources, h.ID)
	}
	for _, c := range work.LatestConversations(v, l.owner, "", work.Place{}, maxSearchedConversations) {
		sources = append(sources, c.ID)
	}
	for _, source := range sources {
		if len(l.wanted) == 0 || l.err != nil {
			return
		}
		l.read(source)
	}
}

// read takes the wanted items of a response or conversation, unless it was read before or is longer than what may
// still be read. A deleted one has none.
func (l *library) read(source string) {
	s := l.handlers.Store
	c, noConversation := work.FindConversation(s.View(), source, l.owner)
	h, noResponse := work.FindResponse(s.View(), source, l.owner)
	size := c.Bytes + h.BodySize + h.InputSize // one of them is zero
	if l.seen[source] || size > l.left || noConversation != nil && noResponse != nil {
		return
	}
	l.seen[source] = true
	l.left -= size
	var err error
	if noConversation == nil {
		err = work.ReadItems(l.ctx, s, c.ID, c.Next, func(item []byte) error {
			if l.take(item); len(l.wanted) == 0 || l.err != nil {
				return errAllFound
			}
			return nil
		})
	} else {
		err = l.readResponse(&h)
	}
	var refused *dialogue.Error
	switch {
	case l.err != nil || err == nil || errors.Is(err, errAllFound):
	case errors.As(err, &refused):
		l.err = refused
	default:
		if e := storeError(err, "input"); e.Status >= 500 {
			l.err = e
		}
	}
}

// readResponse takes the wanted items of a response.
func (l *library) readResponse(h *work.ResponseHeader) error {
	claim := memory.NewClaim(l.handlers.Env.Memory, string(l.owner))
	defer claim.End()
	stored, err := readStored(l.ctx, l.handlers.Store, h, &claim)
	if err != nil {
		return err
	}
	for _, list := range [][]json.RawMessage{responses.OutputItems(stored.Body), responses.Elements(stored.Input)} {
		for _, it := range list {
			l.take(it)
		}
	}
	return nil
}

// take keeps a copy of an item if it is wanted.
func (l *library) take(item []byte) {
	id := gjson.GetBytes(item, "id").String()
	if !l.wanted[id] {
		return
	}
	if err := l.claim.Grow(int64(len(item))); err != nil {
		l.err = dialogue.NoMemory(err)
		return
	}
	delete(l.wanted, id)
	l.known[id] = bytes.Clone(item)
}
