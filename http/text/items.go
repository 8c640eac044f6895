package text

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/share"
)

const (
	// maxItems bounds how many items' whereabouts are remembered.
	maxItems = 100_000
	// maxSearch is how many of an owner's latest responses are read for an item
	// whose whereabouts are not known, as after a restart.
	maxSearch = 200
)

// itemIndex remembers which response an output item belongs to. It only saves a search: the
// response it names is looked up in the store, with its owner. When it is full, the owner
// with most items loses its oldest, so no owner pushes out the items of others.
type itemIndex struct {
	mu        sync.Mutex
	responses map[itemKey]string // by item, the id of the response
	latest    *share.Latest[itemKey]
}

// itemKey is an item of an owner. Providers choose the ids of items, so two owners may have
// items of the same id.
type itemKey struct {
	owner state.Owner
	id    string
}

func newItemIndex(most int) *itemIndex {
	return &itemIndex{responses: make(map[itemKey]string), latest: share.NewLatest[itemKey](most)}
}

// add notes the output items of an owner's response.
func (x *itemIndex) add(owner state.Owner, response string, doc []byte) {
	items := responses.OutputItems(doc)
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, it := range items {
		key := itemKey{owner, gjson.GetBytes(it, "id").String()}
		if key.id == "" {
			continue
		}
		if _, known := x.responses[key]; !known {
			if gone, full := x.latest.Add(string(owner), key); full {
				delete(x.responses, gone)
			}
		}
		x.responses[key] = response
	}
}

func (x *itemIndex) find(owner state.Owner, item string) (response string, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	response, ok = x.responses[itemKey{owner, item}]
	return response, ok
}

// resolve puts stored items in the place of references to them. A reference is
// never passed on: to its provider all gateway keys are one, so that it would
// hand out whatever item its id was guessed or learnt (faults.md S9).
func (v *visit) resolve() error {
	if !bytes.Contains(v.payload, []byte("item_reference")) {
		return nil
	}
	l := library{ctx: v.r.Context(), doors: v.doors, owner: v.owner(), known: make(map[string]json.RawMessage)}
	body, err := responses.Resolve(v.payload, l.find)
	switch {
	case l.err != nil:
		return storeError(l.err, "input")
	case err != nil:
		return err
	}
	v.payload = body
	return nil
}

// library finds an owner's stored items for one request.
type library struct {
	ctx   context.Context
	doors *Doors
	owner state.Owner
	known map[string]json.RawMessage // of the responses read so far
	queue []string                   // the responses to be searched, nil: not listed yet
	err   error
}

func (l *library) find(id string) (json.RawMessage, bool) {
	if it, ok := l.known[id]; ok {
		return it, true
	}
	if response, ok := l.doors.items.find(l.owner, id); ok {
		l.read(response)
	}
	for l.known[id] == nil && l.next() {
	}
	it, ok := l.known[id]
	return it, ok
}

// next reads one more response, the latest first.
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
	all := l.doors.Store.Responses(state.ResponseFilter{Owner: l.owner})
	if len(all) > maxSearch {
		all = all[len(all)-maxSearch:]
	}
	ids := make([]string, 0, len(all))
	for _, h := range slices.Backward(all) {
		ids = append(ids, h.ID)
	}
	return ids
}

// read takes the items of a response in. One that is gone has none.
func (l *library) read(response string) {
	stored, err := l.doors.Store.Response(l.ctx, response, l.owner)
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
