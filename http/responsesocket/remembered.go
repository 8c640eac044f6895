package responsesocket

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/http/text"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes/responses"
)

// remembered is a response that is not stored, with all that a request which continues from it has to repeat.
type remembered struct {
	id    string
	items []json.RawMessage // the whole input and the output; never written to
	claim memory.Claim
	since int  // connection.clock when it was used last
	whole bool // items has the output
}

// itemBytes is the memory of an item beside its text.
const itemBytes = 48

// remembering returns what the request uses of the connection.
func (cr *create) remembering(c *connection) *text.Connection {
	return &text.Connection{
		WarmUp: cr.warmUp,
		Recall: func(id string) ([]json.RawMessage, bool) { return c.recall(id) },
		Keep:   func(input []json.RawMessage) { c.keepInput(cr, input) },
	}
}

// recall returns the input and output of the response with this id, if it is the newest one of any lane. It counts as
// used, so that it is forgotten later than others.
func (c *connection) recall(id string) ([]json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lanes {
		if l.last != nil && l.last.id == id {
			c.clock++
			l.last.since = c.clock
			return l.last.items, true
		}
	}
	return nil, false
}

// keepInput copies the input of a request, so that its response can be remembered.
func (c *connection) keepInput(cr *create, input []json.RawMessage) {
	cr.kept = &remembered{claim: memory.NewClaim(c.handlers.options.Memory, c.owner)}
	size := int64(0)
	for _, item := range input {
		size += int64(len(item)) + itemBytes
	}
	if c.grow(&cr.kept.claim, size) != nil {
		cr.drop()
		return
	}
	cr.kept.items = make([]json.RawMessage, 0, len(input)+4)
	for _, item := range input {
		cr.kept.items = append(cr.kept.items, slices.Clone(item))
	}
}

// keepOutput adds an output item of the response.
func (c *connection) keepOutput(cr *create, item string) {
	if cr.kept == nil || item == "" {
		return
	}
	if c.grow(&cr.kept.claim, int64(len(item))+itemBytes) != nil {
		cr.drop()
		return
	}
	cr.kept.items, cr.kept.whole = append(cr.kept.items, json.RawMessage(item)), true
}

// grow adds bytes to a claim. If there is no room, the connection forgets the responses that were not used for longest.
func (c *connection) grow(claim *memory.Claim, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		err := claim.Grow(size)
		if err == nil || errors.Is(err, memory.ErrTooLarge) {
			return err
		}
		var oldest *lane
		for _, l := range c.lanes {
			if l.last != nil && (oldest == nil || l.last.since < oldest.last.since) {
				oldest = l
			}
		}
		if oldest == nil {
			return err
		}
		oldest.forget()
	}
}

// remember makes a response that has ended the newest one of its lane.
func (c *connection) remember(cr *create, response []byte) {
	if cr.kept != nil && !cr.kept.whole {
		for _, item := range responses.OutputItems(response) {
			c.keepOutput(cr, string(item))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cr.lane.forget()
	if cr.kept == nil {
		return
	}
	c.clock++
	cr.kept.id, cr.kept.since = gjson.GetBytes(response, "id").Str, c.clock
	cr.lane.last, cr.kept = cr.kept, nil
}

// evict forgets the response that a failed request named, if it belongs to the same lane, so that the client sends the
// whole conversation again. A response of another lane stays.
func (c *connection) evict(cr *create) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := cr.lane; l.last != nil && l.last.id == cr.previous {
		l.forget()
	}
}

// drop forgets what was kept of a request.
func (cr *create) drop() {
	if cr.kept != nil {
		cr.kept.claim.End()
		cr.kept = nil
	}
}

// forget forgets the newest response of the lane. connection.mu must be held.
func (l *lane) forget() {
	if l.last != nil {
		l.last.claim.End()
		l.last = nil
	}
}

// forgetAll releases all that the connection remembers.
func (c *connection) forgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lanes {
		l.forget()
	}
}
