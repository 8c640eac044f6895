package text

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/share"
	"stagedoor/state/work"
)

const (
	// maxItems bounds the index of items.
	maxItems = 100_000
	// maxSearch is how many of an owner's latest responses are searched for an item that
	// is not in the index, as after a restart.
	maxSearch = 200
)

// itemIndex remembers which response an output item of an owner belongs to. It only saves a search,
// because the response is looked up in the store with its owner.
type itemIndex struct{ *share.Cache[string] }

func newItemIndex(most int) itemIndex { return itemIndex{share.NewCache[string](most, 0, nil)} }

// add adds the output items of an owner's response. Providers choose the ids, so long ones are left out to bound the
// memory of the index. A reference to such an item costs a search.
func (x itemIndex) add(owner state.Owner, response string, doc []byte) {
	for _, it := range responses.OutputItems(doc) {
		if id := gjson.GetBytes(it, "id").String(); id != "" && len(id) <= state.MaxID {
			x.Put(string(owner), id, response, 1)
		}
	}
}

// resolve replaces references to stored items with the items. A reference is never sent to a provider,
// which cannot tell the gateway's users apart and would return the items of any of them (faults.md
// S9).
func (rc *requestContext) resolve() error {
	if !bytes.Contains(rc.payload, []byte("item_reference")) {
		return nil
	}
	l := library{ctx: rc.r.Context(), handlers: rc.handlers, owner: rc.owner(), known: make(map[string]json.RawMessage)}
	body, err := responses.Resolve(rc.payload, l.find)
	switch {
	case l.err != nil:
		return storeError(l.err, "input")
	case err != nil:
		return err
	}
	rc.payload = body
	return nil
}

// library looks up stored items of an owner for one request.
type library struct {
	ctx      context.Context
	handlers *Handlers
	owner    state.Owner
	known    map[string]json.RawMessage // the items of the responses read so far
	queue    []string                   // the responses to search next; nil before they are listed
	err      error
}

func (l *library) find(id string) (json.RawMessage, bool) {
	if it, ok := l.known[id]; ok {
		return it, true
	}
	if response, ok := l.handlers.items.Get(string(l.owner), id); ok {
		l.read(response)
	}
	for l.known[id] == nil && l.next() {
	}
	it, ok := l.known[id]
	return it, ok
}

// next reads one more response, newest first. It reports false after the last one.
func (l *library) next() bool {
	if l.queue == nil {
		l.queue = l.list()
	}
	if len(l.queue) == 0 || l.err != nil {
		return false
	}
	l.read(l.queue[0])
	l.queue = l.queue[1:]
	return true
}

func (l *library) list() []string {
	all := work.ListResponses(l.handlers.Store.View(), work.ResponseFilter{Owner: l.owner})
	if len(all) > maxSearch {
		all = all[len(all)-maxSearch:]
	}
	ids := make([]string, 0, len(all))
	for _, h := range slices.Backward(all) {
		ids = append(ids, h.ID)
	}
	return ids
}

// read adds the items of a response to known. A deleted response adds none.
func (l *library) read(response string) {
	stored, err := work.ReadResponse(l.ctx, l.handlers.Store, response, l.owner)
	if err != nil {
		if e := storeError(err, "input"); e.Status >= 500 {
			l.err = e
		}
		return
	}
	input := gjson.ParseBytes(stored.Input).Array()
	for _, it := range input {
		l.take(json.RawMessage(it.Raw))
	}
	for _, it := range responses.OutputItems(stored.Body) {
		l.take(it)
	}
}

func (l *library) take(item json.RawMessage) {
	if id := gjson.GetBytes(item, "id").String(); id != "" {
		l.known[id] = item
	}
}
